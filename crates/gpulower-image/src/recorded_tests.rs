//! What `ptxas` makes of modules. It is kept in `target/ptxas`, so that it is started once, and not for each run of tests that
//! are to take seconds.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use gpulower_testing::nvidia;
use md5::{Digest as _, Md5};

/// `ptxas` of a release for a chip. One test uses each: what it does not use is not kept.
pub struct Ptxas {
    release: &'static str,
    pub chip: &'static str,
    program: PathBuf,
    /// By the hash of what they were made of, and by.
    known: BTreeMap<[u8; 16], Vec<u8>>,
    used: BTreeMap<[u8; 16], Vec<u8>>,
}

impl Ptxas {
    pub fn new(release: &'static str, chip: &'static str) -> Self {
        let mut known = BTreeMap::new();
        let bytes = fs::read(path(release, chip)).unwrap_or_default();
        let mut rest = bytes.as_slice();
        while let Some((key, after)) = rest.split_first_chunk::<16>() {
            let (size, after) = after.split_first_chunk::<4>().expect("a size");
            let (cubin, after) = after.split_at(u32::from_le_bytes(*size) as usize);
            known.insert(*key, cubin.to_vec());
            rest = after;
        }
        let program = nvidia::part(&match release {
            "13.0" => "bin/ptxas".to_owned(),
            release => format!("cuda-{release}/bin/ptxas"),
        });
        Self {
            release,
            chip,
            program,
            known,
            used: BTreeMap::new(),
        }
    }

    /// What it makes of PTX that has no head yet.
    pub fn cubin(&mut self, text: &str, options: &[&str]) -> Vec<u8> {
        let version = if self.release.starts_with("12.") { "8.4" } else { "9.0" };
        let text = format!(".version {version}\n.target {}\n.address_size 64\n{text}", self.chip);
        // Another program has another size.
        let size = fs::metadata(&self.program).expect("it is there").len();
        let key = Md5::new_with_prefix(format!("{text}{options:?}{size}"))
            .finalize()
            .into();
        let cubin = self
            .known
            .get(&key)
            .cloned()
            .unwrap_or_else(|| self.run(&text, options));
        self.used.insert(key, cubin.clone());
        cubin
    }

    fn run(&self, text: &str, options: &[&str]) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let (input, output) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
        fs::write(&input, text).expect("it can be written");
        let mut command = Command::new(&self.program);
        command.args(["-arch", self.chip]).args(options).arg(&input);
        assert!(command.arg("-o").arg(&output).status().expect("it starts").success());
        fs::read(&output).expect("it was written")
    }
}

impl Drop for Ptxas {
    fn drop(&mut self) {
        if self.used == self.known {
            return;
        }
        let mut bytes = Vec::new();
        for (key, cubin) in &self.used {
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&(cubin.len() as u32).to_le_bytes());
            bytes.extend_from_slice(cubin);
        }
        // Whoever reads meanwhile sees the old file or the new one. What cannot be kept is made again.
        let path = path(self.release, self.chip);
        let new = path.with_extension(std::process::id().to_string());
        let _ = fs::create_dir_all(path.parent().expect("a folder"))
            .and_then(|()| fs::write(&new, bytes))
            .and_then(|()| fs::rename(&new, &path));
    }
}

fn path(release: &str, chip: &str) -> PathBuf {
    let target = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/ptxas");
    PathBuf::from(target).join(format!("{release}-{chip}"))
}
