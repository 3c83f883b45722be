//! NVIDIA's tools without a CUDA installation: wheels from PyPI, unpacked into one tree that works as a toolkit.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use zip::ZipArchive;

use crate::command::{Context, Failure, capture, succeeds};
use crate::env::Workspace;

/// One pinned wheel.
#[derive(Debug)]
pub struct Wheel {
    pub name: &'static str,
    pub version: &'static str,
    /// SHA-256 of the wheel on PyPI for Linux on x86-64; pip refuses any other file.
    x86_64: &'static str,
    /// And of that for AArch64, which NVIDIA calls sbsa.
    aarch64: &'static str,
    /// What gpulower or its tests take from it.
    pub brings: &'static str,
}

/// Whose wheels: all of them exist for both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Machine {
    X86_64,
    AArch64,
}

impl Machine {
    /// The machine that this program runs on, where there are wheels for it.
    fn own() -> Option<Self> {
        match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") => Some(Self::X86_64),
            ("linux", "aarch64") => Some(Self::AArch64),
            _ => None,
        }
    }

    /// What pip has to be told to take the wheels of another machine than its own.
    fn platform(self) -> &'static [&'static str] {
        match self {
            _ if Some(self) == Self::own() => &[],
            Self::X86_64 => &["--platform", "manylinux2014_x86_64"],
            Self::AArch64 => &["--platform", "manylinux2014_aarch64"],
        }
    }
}

impl Wheel {
    fn sha256(&self, machine: Machine) -> &'static str {
        match machine {
            Machine::X86_64 => self.x86_64,
            Machine::AArch64 => self.aarch64,
        }
    }
}

/// CUDA 13.0 is the last release that the serializers were tested against in every detail, so all that takes part in
/// making a cubin is of 13.0. cuobjdump and nvdisasm only read cubins; as wheels they exist from 13.2 on, and 13.5.37
/// is the version that the descriptions of the formats were checked with.
pub const WHEELS: &[Wheel] = &[
    Wheel {
        name: "nvidia-cuda-nvcc",
        version: "13.0.88",
        x86_64: "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
        aarch64: "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
        brings: "ptxas, nvlink, fatbinary",
    },
    Wheel {
        name: "nvidia-nvvm",
        version: "13.0.88",
        x86_64: "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0",
        aarch64: "c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1",
        brings: "libdevice.10.bc",
    },
    Wheel {
        name: "nvidia-nvjitlink",
        version: "13.0.88",
        x86_64: "13a74f429e23b921c1109976abefacc69835f2f433ebd323d3946e11d804e47b",
        aarch64: "e931536ccc7d467a98ba1d8b89ff7fa7f1fa3b13f2b0069118cd7f47bff07d0c",
        brings: "libnvJitLink",
    },
    Wheel {
        name: "nvidia-nvfatbin",
        version: "13.0.85",
        x86_64: "5e05287b34c02cb6a7c6d9bbb0bbe6da34665fad49878f30e3a722b4747eb676",
        aarch64: "df13bfe5301c8a4209fccd69b88f2bb2342341b668c9a62d18ff995a6bd87e70",
        brings: "libnvfatbin",
    },
    Wheel {
        name: "nvidia-nvptxcompiler",
        version: "13.0.88",
        x86_64: "7579fc2d9928030ee45626694a9062e02a691594c481bf2bbd46cdd090b33fa3",
        aarch64: "d2a0105fe387448725934437e42b0d490467f3946e984d4daa333a4909113399",
        brings: "libnvptxcompiler_static.a",
    },
    Wheel {
        name: "nvidia-cuda-cuobjdump",
        version: "13.5.37",
        x86_64: "38780fee50863252a0b8926357faa91615ca1c8346490563f33a06100cd73f58",
        aarch64: "f48e3148535365161a268547b285fd01d92c80e4b457275375933825b5fc26b2",
        brings: "cuobjdump",
    },
    Wheel {
        name: "nvidia-cuda-nvdisasm",
        version: "13.5.37",
        x86_64: "d3fdbdd49fa53e2e4aacd3db8259d052bd2b049ececdcb69e92e083c6728e7ca",
        aarch64: "a3a8248074edb9fba63b74c38a5416b712a91ab09e70b8ab37186c3d293fc605",
        brings: "nvdisasm",
    },
    Wheel {
        name: "nvidia-cuda-runtime",
        version: "13.0.96",
        x86_64: "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
        aarch64: "ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55",
        brings: "libcudart, cuda.h",
    },
    Wheel {
        name: "nvidia-cuda-crt",
        version: "13.0.88",
        x86_64: "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
        aarch64: "ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003",
        brings: "headers that nvcc and clang include",
    },
    Wheel {
        name: OLDER_PTXAS,
        version: "12.4.131",
        x86_64: "e4c9a35435c3b0e36c6397c5696334c9ea6650e524736cbd1c5d345ea099bb04",
        aarch64: "00ba32f3d7928548455baa877e748a4676ba0731cfc73d4213336fc67bdc87e9",
        brings: "an older ptxas for the tests",
    },
];

/// An older ptxas, whose relocatable cubins older toolkits link: what exports for those are tested with.
const OLDER_PTXAS: &str = "nvidia-cuda-nvcc-cu12";

/// The folders inside the wheels whose contents make up the toolkit, and where they go in it.
const TREES: [(&str, &str); 2] = [("nvidia/cu13", ""), ("nvidia/cuda_nvcc", "cuda-12.4")];

/// The file in the toolkit that says what it was made from.
const STAMP: &str = ".pins";

/// Raised when the same wheels have to be laid out in another way.
const LAYOUT: u32 = 1;

/// How the names of folders begin in which a tree is being made.
const WORK_PREFIX: &str = "unpacking-";

/// True when the tree was made from exactly these wheels, for the machine that this program runs on.
pub fn is_current(cuda: &Path) -> bool {
    Machine::own().is_some_and(|machine| is_current_for(machine, cuda))
}

/// True when the tree was made from exactly these wheels.
pub fn is_current_for(machine: Machine, cuda: &Path) -> bool {
    fs::read_to_string(cuda.join(STAMP)).is_ok_and(|text| text == stamp(machine))
}

fn stamp(machine: Machine) -> String {
    format!("layout {LAYOUT}\n{}", requirements(machine))
}

/// The pins in the form in which pip checks the hashes itself.
fn requirements(machine: Machine) -> String {
    let mut text = String::new();
    for wheel in WHEELS {
        let Wheel { name, version, .. } = wheel;
        let sha256 = wheel.sha256(machine);
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{name}=={version} --hash=sha256:{sha256}");
    }
    text
}

/// A python with pip; None when there is none.
pub fn python_with_pip() -> Option<&'static str> {
    // A python of the user's own that comes first in PATH may have no pip where the system's has.
    let candidates = ["python3", "/usr/bin/python3", "python"];
    candidates
        .into_iter()
        .find(|python| succeeds(Command::new(python).args(["-m", "pip", "--version"])))
}

pub fn no_python() -> Failure {
    Failure::new("there is no python3 with pip (Debian: apt-get install python3-pip python3-venv)")
}

/// What an environment of Python was made of, to see whether it has to be made again.
const PINS: &str = ".pins";

/// The environment of Python at `name` in the toolkit's folder with `what` is in `requirements`, made where it is missing or of
/// other versions.
pub fn python_environment(
    workspace: &Workspace,
    name: &str,
    what: &str,
    requirements: &str,
) -> Result<PathBuf, Failure> {
    let path = workspace.root.join(requirements);
    let wanted = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
    let folder = workspace.toolkit().join(name);
    if fs::read_to_string(folder.join(PINS)).is_ok_and(|text| text == wanted) {
        return Ok(folder);
    }
    println!("setup: installing {what} into {}", folder.display());
    let python = python_with_pip().ok_or_else(no_python)?;
    let expect = |command: &mut Command| {
        let output = capture(command)?;
        if output.status.success() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "the environment for {what} cannot be made ({requirements}; Debian: apt-get install python3-venv):\n{}",
            String::from_utf8_lossy(&output.stderr).trim()
        )))
    };
    expect(Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"])
        .arg("--requirement")
        .arg(&path);
    expect(&mut pip)?;
    // Last, so that a run that is interrupted starts again.
    fs::write(folder.join(PINS), wanted).context(|| format!("write {PINS}"))?;
    Ok(folder)
}

/// Downloads the wheels of the machine that this program runs on.
pub fn install(cuda: &Path) -> Result<(), Failure> {
    let machine = Machine::own().ok_or_else(|| {
        Failure::new(
            "the wheels are pinned for Linux on x86-64 and AArch64; elsewhere, install CUDA 13.0 and set CUDA_HOME",
        )
    })?;
    install_for(machine, cuda)
}

/// Downloads the wheels and puts the tree at `cuda`, in one step: a run that is interrupted leaves the old state.
pub fn install_for(machine: Machine, cuda: &Path) -> Result<(), Failure> {
    let python = python_with_pip()
        .ok_or_else(|| Failure::new("there is no python3 with pip (Debian: apt-get install python3-pip)"))?;
    let parent = cuda.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).context(|| format!("create {}", parent.display()))?;
    remove_leftovers(parent)?;
    // Beside the final place, because a rename does not cross file systems.
    let work = tempfile::Builder::new()
        .prefix(WORK_PREFIX)
        .tempdir_in(parent)
        .context(|| format!("create a folder in {}", parent.display()))?;

    println!(
        "setup: downloading NVIDIA's wheels of CUDA 13.0 (190 MB) for {}",
        WHEELS.iter().map(|w| w.brings).collect::<Vec<_>>().join(", ")
    );
    let wheels = download(python, machine, work.path())?;
    let tree = work.path().join("cuda");
    for wheel in &wheels {
        unpack(wheel, &tree)?;
    }
    complete(&tree)?;
    fs::write(tree.join(STAMP), stamp(machine)).context(|| format!("write {STAMP}"))?;

    if cuda.exists() {
        let old = work.path().join("old");
        fs::rename(cuda, &old).context(|| format!("move {} aside", cuda.display()))?;
    }
    fs::rename(&tree, cuda).context(|| format!("put the tree at {}", cuda.display()))
}

/// Removes what a run left that was killed; the caller holds the lock, so no other run is using it.
fn remove_leftovers(parent: &Path) -> Result<(), Failure> {
    for entry in fs::read_dir(parent).context(|| format!("read {}", parent.display()))? {
        let path = entry.context(|| format!("read {}", parent.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(WORK_PREFIX) {
            fs::remove_dir_all(&path).context(|| format!("remove {}", path.display()))?;
        }
    }
    Ok(())
}

fn download(python: &str, machine: Machine, work: &Path) -> Result<Vec<PathBuf>, Failure> {
    let list = work.join("requirements.txt");
    fs::write(&list, requirements(machine)).context(|| format!("write {}", list.display()))?;
    let folder = work.join("wheels");
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "download", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "--no-deps"])
        .args(["--only-binary", ":all:", "--require-hashes"])
        .args(machine.platform())
        .arg("--dest")
        .arg(&folder)
        .arg("--requirement")
        .arg(&list)
        // Nothing is installed into an environment, so the wish to have one does not apply.
        .env("PIP_REQUIRE_VIRTUALENV", "false");
    let output = capture(&mut pip)?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!("pip could not download them:\n{}", errors.trim())));
    }
    let mut wheels = Vec::new();
    for entry in fs::read_dir(&folder).context(|| format!("read {}", folder.display()))? {
        wheels.push(entry.context(|| format!("read {}", folder.display()))?.path());
    }
    wheels.sort();
    if wheels.len() != WHEELS.len() {
        return Err(Failure::new(format!(
            "pip downloaded {} wheels instead of {}",
            wheels.len(),
            WHEELS.len()
        )));
    }
    Ok(wheels)
}

/// Unpacks the part of the wheel that belongs to the toolkit, and the licence beside it.
fn unpack(wheel: &Path, tree: &Path) -> Result<(), Failure> {
    let reading = || format!("unpack {}", wheel.display());
    let file = File::open(wheel).context(reading)?;
    let mut archive = ZipArchive::new(io::BufReader::new(file)).context(reading)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).context(reading)?;
        // None for a name that leads out of the folder.
        let Some(name) = entry.enclosed_name().filter(|_| entry.is_file()) else {
            continue;
        };
        let Some(target) = destination(&name).map(|relative| tree.join(relative)) else {
            continue;
        };
        let writing = || format!("write {}", target.display());
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder).context(writing)?;
        }
        let mut out = File::create(&target).context(writing)?;
        io::copy(&mut entry, &mut out).context(writing)?;
        // The wheels grant execution to the owner alone; a tree in a shared folder serves everybody.
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o100 != 0);
        let mode = if executable { 0o755 } else { 0o644 };
        out.set_permissions(fs::Permissions::from_mode(mode)).context(writing)?;
    }
    Ok(())
}

/// Where a file of a wheel goes below the toolkit; None for the wheel's own bookkeeping.
fn destination(name: &Path) -> Option<PathBuf> {
    let of_tree = |(from, to): &(&str, &str)| Some(Path::new(to).join(name.strip_prefix(from).ok()?));
    if let Some(place) = TREES.iter().find_map(of_tree) {
        return Some(place);
    }
    let mut components = name.components();
    let package = components.next()?.as_os_str().to_str()?;
    let package = package.strip_suffix(".dist-info")?;
    (components.next()?.as_os_str() == "licenses")
        .then(|| Path::new("licenses").join(package).join(components.as_path()))
}

/// Adds what a toolkit has and the wheels lack: nvcc and clang look into `lib64`, and for `-lcudart`.
fn complete(tree: &Path) -> Result<(), Failure> {
    let links = [
        ("lib64", "lib"),
        ("lib/libcudart.so", "libcudart.so.13"),
        ("lib/libnvJitLink.so", "libnvJitLink.so.13"),
        ("lib/libnvfatbin.so", "libnvfatbin.so.13"),
    ];
    for (link, target) in links {
        let link = tree.join(link);
        let there = link.parent().is_some_and(|folder| folder.join(target).exists());
        if !there {
            return Err(Failure::new(format!(
                "the wheels were expected to bring {target} for {}",
                link.display()
            )));
        }
        if !link.exists() {
            symlink(target, &link).context(|| format!("create {}", link.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::Write;

    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn every_pin_is_complete_and_stands_once() {
        let names: BTreeSet<_> = WHEELS.iter().map(|wheel| wheel.name).collect();
        let hashes: BTreeSet<_> = WHEELS.iter().flat_map(|wheel| [wheel.x86_64, wheel.aarch64]).collect();
        assert_eq!(names.len(), WHEELS.len());
        assert_eq!(hashes.len(), 2 * WHEELS.len());
        let lower_hex = |c: char| matches!(c, '0'..='9' | 'a'..='f');
        assert!(
            hashes
                .iter()
                .all(|hash| hash.len() == 64 && hash.chars().all(lower_hex)),
            "{hashes:?}"
        );
        for wheel in WHEELS {
            assert!(wheel.name.starts_with("nvidia-"), "{wheel:?}");
            let release = if wheel.name == OLDER_PTXAS { "12.4." } else { "13." };
            assert!(wheel.version.starts_with(release), "{wheel:?}");
            assert!(!wheel.brings.is_empty(), "{wheel:?}");
        }
    }

    #[test]
    fn what_makes_cubins_is_all_of_one_release() {
        let others = ["nvidia-cuda-cuobjdump", "nvidia-cuda-nvdisasm", OLDER_PTXAS];
        for wheel in WHEELS.iter().filter(|wheel| !others.contains(&wheel.name)) {
            assert!(wheel.version.starts_with("13.0."), "{wheel:?}");
        }
    }

    #[test]
    fn only_a_tree_of_these_pins_is_current() {
        let folder = tempfile::tempdir().unwrap();
        let is_current = || is_current_for(Machine::X86_64, folder.path());
        assert!(!is_current());
        let pins = stamp(Machine::X86_64);
        fs::write(folder.path().join(STAMP), &pins).unwrap();
        assert!(is_current());
        fs::write(folder.path().join(STAMP), pins.replace("13.0.96", "13.0.48")).unwrap();
        assert!(!is_current());
        fs::write(folder.path().join(STAMP), stamp(Machine::AArch64)).unwrap();
        assert!(!is_current());
    }

    #[test]
    fn unpacking_keeps_the_tree_the_licence_and_the_right_to_execute() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("a.whl");
        let mut archive = ZipWriter::new(File::create(&wheel).unwrap());
        let entries = [
            ("nvidia/cu13/bin/ptxas", 0o744),
            ("nvidia/cu13/lib/libcudart.so.13", 0o644),
            ("nvidia/cuda_nvcc/bin/ptxas", 0o744),
            ("a-1.dist-info/licenses/License.txt", 0o644),
            ("a-1.dist-info/RECORD", 0o644),
            ("../outside", 0o644),
        ];
        for (name, mode) in entries {
            let options = SimpleFileOptions::default().unix_permissions(mode);
            archive.start_file(name, options).unwrap();
            archive.write_all(name.as_bytes()).unwrap();
        }
        archive.finish().unwrap();

        let tree = folder.path().join("tree");
        unpack(&wheel, &tree).unwrap();
        let mode = |name| fs::metadata(tree.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode("bin/ptxas"), 0o755);
        assert_eq!(mode("cuda-12.4/bin/ptxas"), 0o755);
        assert_eq!(mode("lib/libcudart.so.13"), 0o644);
        assert_eq!(mode("licenses/a-1/License.txt"), 0o644);
        let mut top: Vec<_> = fs::read_dir(&tree)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        top.sort();
        assert_eq!(top, ["bin", "cuda-12.4", "lib", "licenses"]);
        assert!(!folder.path().join("outside").exists());
    }

    #[test]
    fn only_leftovers_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["unpacking-a1/wheels", "cuda"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        remove_leftovers(folder.path()).unwrap();
        assert!(!folder.path().join("unpacking-a1").exists());
        assert!(folder.path().join("cuda").exists());
    }

    #[test]
    fn the_links_of_a_toolkit_are_added_once() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path();
        let message = complete(tree).unwrap_err().to_string();
        assert!(message.contains("expected to bring lib"), "{message}");
        fs::create_dir(tree.join("lib")).unwrap();
        for name in ["libcudart.so.13", "libnvJitLink.so.13", "libnvfatbin.so.13"] {
            fs::write(tree.join("lib").join(name), name).unwrap();
        }
        complete(tree).unwrap();
        complete(tree).unwrap();
        let text = fs::read_to_string(tree.join("lib64/libcudart.so")).unwrap();
        assert_eq!(text, "libcudart.so.13");
    }
}
