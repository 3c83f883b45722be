//! What a program for the other processor is linked with, and what it finds there when it runs: Debian's packages, unpacked and
//! not installed. This machine's architecture, its package lists and its packages stay as they are.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::MULTIARCH;
use crate::command::{Context, Failure, capture, run};
use crate::env::{LLVM_MAJOR, Workspace};

/// Packages of LLVM's sources, which have to be those of this machine: tablegen and llvm-config run here.
const LLVM_PACKAGES: [&str; 4] = ["llvm-22-dev", "libmlir-22-dev", "liblld-22-dev", "libpolly-22-dev"];
/// What linking LLVM statically needs, and what tests run with. With them comes what they depend on.
const PACKAGES: [&str; 5] = [
    "zlib1g-dev",
    "libzstd-dev",
    "libxml2-dev",
    "rocm-device-libs",
    "python3",
];
/// The cross compiler brings what these have.
const OF_THE_COMPILER: [&str; 3] = ["libc6-dev_", "libc-dev-bin_", "linux-libc-dev_"];
/// The file in the folder that says what it was made from.
const STAMP: &str = ".packages";
/// Raised when the same packages have to be laid out in another way.
const LAYOUT: u32 = 1;

/// Makes the folder where it is missing or of other packages; gives it.
pub fn install(workspace: &Workspace) -> Result<PathBuf, Failure> {
    let folder = workspace.toolkit().join("aarch64");
    let version = llvm_version()?;
    let wanted = format!("layout {LAYOUT}\n{}\n", names(&version).join("\n"));
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|found| found == wanted) {
        return Ok(folder);
    }
    let parent = workspace.toolkit();
    fs::create_dir_all(&parent).context(|| format!("make {}", parent.display()))?;
    let work = tempfile::Builder::new()
        .prefix("unpacking-aarch64-")
        .tempdir_in(&parent)
        .context(|| format!("make a folder in {}", parent.display()))?;
    println!(
        "cross: unpacking LLVM {version} for arm64, 1.7 GB, into {}",
        folder.display()
    );
    let tree = work.path().join("tree");
    fs::create_dir(&tree).context(|| format!("make {}", tree.display()))?;
    for package in download(work.path(), &names(&version))? {
        run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&tree))?;
    }
    keep_links_within(&tree)?;
    put_tools_of_this_machine(workspace, &tree)?;
    fs::write(tree.join(STAMP), wanted).context(|| format!("write {STAMP}"))?;
    if folder.exists() {
        fs::remove_dir_all(&folder).context(|| format!("remove {}", folder.display()))?;
    }
    fs::rename(&tree, &folder).context(|| format!("put the tree at {}", folder.display()))?;
    Ok(folder)
}

/// LLVM's prefix in the folder.
pub fn llvm(sysroot: &Path) -> PathBuf {
    sysroot.join("usr/lib").join(format!("llvm-{LLVM_MAJOR}"))
}

/// The version of the packages that are installed here.
fn llvm_version() -> Result<String, Failure> {
    let mut query = Command::new("dpkg-query");
    let output = capture(query.args(["-W", "-f", "${Version}", LLVM_PACKAGES[0]]))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !version.is_empty() {
        return Ok(version);
    }
    Err(Failure::new(format!(
        "{} is not installed: building for another processor takes Debian's packages of LLVM {LLVM_MAJOR}, for this machine and \
         for the other one",
        LLVM_PACKAGES[0]
    )))
}

/// What apt is asked for.
fn names(version: &str) -> Vec<String> {
    let llvm = LLVM_PACKAGES.iter().map(|name| format!("{name}={version}"));
    llvm.chain(PACKAGES.iter().map(ToString::to_string)).collect()
}

/// Downloads the packages and what they depend on, with lists of packages of their own below `work`.
fn download(work: &Path, names: &[String]) -> Result<Vec<PathBuf>, Failure> {
    for folder in ["state/lists/partial", "cache/archives/partial"] {
        let folder = work.join(folder);
        fs::create_dir_all(&folder).context(|| format!("make {}", folder.display()))?;
    }
    let configuration = work.join("apt.conf");
    let place = work.display();
    let text = format!(
        "APT::Architecture \"arm64\";\nAPT::Architectures {{ \"arm64\"; }};\nDir::State \"{place}/state\";\n\
         Dir::State::status \"{place}/state/status\";\nDir::Cache \"{place}/cache\";\n"
    );
    for (path, text) in [(&configuration, text.as_str()), (&work.join("state/status"), "")] {
        fs::write(path, text).context(|| format!("write {}", path.display()))?;
    }
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.env("APT_CONFIG", &configuration).args(arguments);
        command
    };
    run(&mut apt_get(&["update", "-qq"]))?;
    let mut install = apt_get(&["install", "-qq", "-y", "--download-only", "--no-install-recommends"]);
    run(install.args(names)).map_err(|failure| {
        Failure::new(format!(
            "{failure}; the sources of packages of this system have to have LLVM {LLVM_MAJOR} for arm64 in the version that is \
             installed here"
        ))
    })?;
    let archives = work.join("cache/archives");
    let mut packages = Vec::new();
    for entry in fs::read_dir(&archives).context(|| format!("read {}", archives.display()))? {
        let path = entry.context(|| format!("read {}", archives.display()))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".deb") && !OF_THE_COMPILER.iter().any(|prefix| name.starts_with(prefix)) {
            packages.push(path.clone());
        }
    }
    packages.sort();
    Ok(packages)
}

/// Links of the libraries to absolute paths, such as that of `libz.so`, lead into the folder.
fn keep_links_within(tree: &Path) -> Result<(), Failure> {
    let libraries = tree.join("usr/lib").join(MULTIARCH);
    for entry in fs::read_dir(&libraries).context(|| format!("read {}", libraries.display()))? {
        let path = entry.context(|| format!("read {}", libraries.display()))?.path();
        let Ok(target) = fs::read_link(&path) else {
            continue;
        };
        if let Ok(below) = target.strip_prefix("/") {
            fs::remove_file(&path).context(|| format!("remove {}", path.display()))?;
            symlink(Path::new("../../..").join(below), &path).context(|| format!("make {}", path.display()))?;
        }
    }
    Ok(())
}

/// `llvm-config` and lld of this machine in LLVM's folder: build scripts ask the one there. It answers with the place that it
/// lies at, but for libraries of the system.
fn put_tools_of_this_machine(workspace: &Workspace, tree: &Path) -> Result<(), Failure> {
    let bin = llvm(tree).join("bin");
    fs::create_dir_all(&bin).context(|| format!("make {}", bin.display()))?;
    let native = workspace.llvm.join("bin");
    for (from, to) in [("llvm-config", "llvm-config.native"), ("ld.lld", "ld.lld")] {
        let (from, to) = (native.join(from), bin.join(to));
        let _ = fs::remove_file(&to);
        if to.ends_with("ld.lld") {
            symlink(&from, &to).context(|| format!("make {}", to.display()))?;
        } else {
            fs::copy(&from, &to).context(|| format!("copy {}", from.display()))?;
        }
    }
    let script = bin.join("llvm-config");
    let _ = fs::remove_file(&script);
    fs::write(&script, LLVM_CONFIG).context(|| format!("write {}", script.display()))?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).context(|| format!("protect {}", script.display()))
}

const LLVM_CONFIG: &str = r#"#!/bin/sh
# The llvm-config of the machine that builds, of the same release. Libraries of the system are those of this folder.
here=$(dirname "$(realpath "$0")")
answer=$("$here/llvm-config.native" "$@") || exit
printf '%s\n' "$answer" | sed "s,/usr/lib/[a-z0-9_]*-linux-gnu/,${here%/llvm-*/bin}/aarch64-linux-gnu/,g"
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_llvm_are_those_of_this_machine() {
        let names = names("1:22.1.8-1");
        assert!(names.contains(&"llvm-22-dev=1:22.1.8-1".to_owned()), "{names:?}");
        assert!(names.contains(&"zlib1g-dev".to_owned()), "{names:?}");
    }

    #[test]
    fn absolute_links_lead_into_the_folder() {
        let tree = tempfile::tempdir().unwrap();
        let libraries = tree.path().join("usr/lib").join(MULTIARCH);
        let real = tree.path().join("lib").join(MULTIARCH);
        fs::create_dir_all(&libraries).unwrap();
        fs::create_dir_all(&real).unwrap();
        fs::write(real.join("libz.so.1"), "z").unwrap();
        symlink(format!("/lib/{MULTIARCH}/libz.so.1"), libraries.join("libz.so")).unwrap();
        keep_links_within(tree.path()).unwrap();
        assert_eq!(fs::read_to_string(libraries.join("libz.so")).unwrap(), "z");
    }
}
