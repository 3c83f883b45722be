//! What `ptxas` made of modules (`tests/ptxas/`), for tests that need no toolkit. `tests/tools/` runs it.
//!
//! `GPULOWER_BLESS=1 cargo test -p gpulower-image --lib` runs it as well, and writes what changed.

use std::{collections::BTreeMap, fs, path::PathBuf, process::Command};

use gpulower_testing::nvidia;
use md5::{Digest as _, Md5};

/// `ptxas` of a release for a chip. One test uses each: what it does not use is not kept.
pub struct Ptxas {
    release: &'static str,
    pub chip: &'static str,
    /// By the hash of what they were made of.
    known: BTreeMap<[u8; 16], Vec<u8>>,
    used: BTreeMap<[u8; 16], Vec<u8>>,
    is_blessed: bool,
}

impl Ptxas {
    pub fn new(release: &'static str, chip: &'static str) -> Self {
        let mut known = BTreeMap::new();
        let bytes = fs::read(path(release, chip)).map(|bytes| zstd::decode_all(bytes.as_slice()).expect("zstd's"));
        let bytes = bytes.unwrap_or_default();
        let mut rest = bytes.as_slice();
        while let Some((key, after)) = rest.split_first_chunk::<16>() {
            let (size, after) = after.split_first_chunk::<4>().expect("a size");
            let (cubin, after) = after.split_at(u32::from_le_bytes(*size) as usize);
            known.insert(*key, cubin.to_vec());
            rest = after;
        }
        Self {
            release,
            chip,
            known,
            used: BTreeMap::new(),
            is_blessed: std::env::var_os("GPULOWER_BLESS").is_some(),
        }
    }

    /// What it makes of PTX that has no head yet.
    pub fn cubin(&mut self, text: &str, options: &[&str]) -> Vec<u8> {
        let version = if self.release.starts_with("12.") { "8.4" } else { "9.0" };
        let text = format!(".version {version}\n.target {}\n.address_size 64\n{text}", self.chip);
        let key = Md5::new_with_prefix(format!("{text}{options:?}")).finalize().into();
        let cubin = match self.known.get(&key) {
            Some(cubin) => cubin.clone(),
            None if self.is_blessed => self.run(&text, options),
            None => panic!("ptxas was not seen with this: GPULOWER_BLESS=1 cargo test -p gpulower-image --lib"),
        };
        self.used.insert(key, cubin.clone());
        cubin
    }

    fn run(&self, text: &str, options: &[&str]) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        let (input, output) = (folder.path().join("k.ptx"), folder.path().join("k.cubin"));
        fs::write(&input, text).expect("it can be written");
        let program = match self.release {
            "13.0" => "bin/ptxas".to_owned(),
            release => format!("cuda-{release}/bin/ptxas"),
        };
        let mut command = Command::new(nvidia::part(&program));
        command.args(["-arch", self.chip]).args(options).arg(&input);
        assert!(command.arg("-o").arg(&output).status().expect("it starts").success());
        fs::read(&output).expect("it was written")
    }
}

impl Drop for Ptxas {
    fn drop(&mut self) {
        if !self.is_blessed || self.used == self.known {
            return;
        }
        let mut bytes = Vec::new();
        for (key, cubin) in &self.used {
            bytes.extend_from_slice(key);
            bytes.extend_from_slice(&(cubin.len() as u32).to_le_bytes());
            bytes.extend_from_slice(cubin);
        }
        let bytes = zstd::bulk::compress(&bytes, 22).expect("it can be compressed");
        let path = path(self.release, self.chip);
        fs::create_dir_all(path.parent().expect("a folder")).expect("the checkout can be written to");
        fs::write(path, bytes).expect("the checkout can be written to");
    }
}

fn path(release: &str, chip: &str) -> PathBuf {
    [
        env!("CARGO_MANIFEST_DIR"),
        "tests/ptxas",
        &format!("{release}-{chip}.zst"),
    ]
    .iter()
    .collect()
}
