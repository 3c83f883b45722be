//! Files of Debian packages that are not installed, and need not be: releases of MLIR cannot be installed beside each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::command::{Context, Failure, run as run_command, shown};
use crate::env::Workspace;

/// Some packages, and what of them is needed, in tar's patterns.
pub struct Packages {
    /// The folder below target/packages.
    pub folder: &'static str,
    pub names: &'static [&'static str],
    pub patterns: &'static [&'static str],
}

/// An `mlir-opt` of MLIR 19 and the headers that plugins for it are compiled against.
pub const MLIR_19: Packages = Packages {
    folder: "mlir-19",
    names: &[
        "mlir-19-tools",
        "libmlir-19",
        "libmlir-19-dev",
        "libllvm19",
        "llvm-19-dev",
    ],
    patterns: &[
        "./usr/lib/llvm-19/bin/mlir-opt",
        "./usr/lib/llvm-19/include*",
        "./usr/include/llvm-19*",
        "./usr/include/llvm-c-19*",
        "*/libMLIR.so*",
        "*/libLLVM*.so*",
    ],
};

/// clang 14, which writes typed pointers.
pub const CLANG_14: Packages = Packages {
    folder: "clang-14",
    names: &["clang-14", "libclang-cpp14", "libllvm14"],
    patterns: &["./usr/lib/llvm-14/bin/clang*", "*/libclang-cpp*", "*/libLLVM*.so*"],
};

pub const CLANG_15: Packages = Packages {
    folder: "clang-15",
    names: &["clang-15", "libclang-cpp15", "libllvm15"],
    patterns: &["./usr/lib/llvm-15/bin/clang*", "*/libclang-cpp*", "*/libLLVM*.so*"],
};

impl Packages {
    /// Downloads the packages and unpacks what is needed of them, unless it is there; gives the folder that has usr/.
    pub fn unpacked(&self, workspace: &Workspace) -> Result<PathBuf, Failure> {
        let all = workspace.root.join("target/packages");
        let folder = all.join(self.folder);
        if folder.exists() {
            return Ok(folder);
        }
        fs::create_dir_all(&all).context(|| format!("make {}", all.display()))?;
        let work = tempfile::Builder::new()
            .prefix("unpacking-")
            .tempdir_in(&all)
            .context(|| format!("make a folder in {}", all.display()))?;
        let mut download = Command::new("apt-get");
        download
            .args(["download", "-q"])
            .args(self.names)
            .current_dir(work.path());
        run_command(&mut download)
            .map_err(|failure| Failure::new(format!("{failure}; `apt-get update` as root may help")))?;
        let tree = work.path().join("tree");
        fs::create_dir(&tree).context(|| format!("make {}", tree.display()))?;
        for entry in fs::read_dir(work.path()).context(|| format!("read {}", work.path().display()))? {
            let path = entry.context(|| format!("read {}", work.path().display()))?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                self.unpack(&path, &tree)?;
            }
        }
        fs::rename(&tree, &folder).context(|| format!("make {}", folder.display()))?;
        Ok(folder)
    }

    /// tar fails where a pattern matches nothing of a package, which is as it should be: what is missing is seen later.
    fn unpack(&self, package: &Path, tree: &Path) -> Result<(), Failure> {
        let mut archive = Command::new("dpkg-deb");
        let mut archive = archive
            .arg("--fsys-tarfile")
            .arg(package)
            .stdout(Stdio::piped())
            .spawn()
            .context(|| "run dpkg-deb".to_owned())?;
        let mut extract = Command::new("tar");
        extract
            .arg("-x")
            .arg("-C")
            .arg(tree)
            .arg("--wildcards")
            .args(self.patterns);
        extract.stderr(Stdio::null());
        extract.stdin(archive.stdout.take().map_or_else(Stdio::null, Stdio::from));
        extract.status().context(|| shown(&extract))?;
        let status = archive.wait().context(|| "wait for dpkg-deb".to_owned())?;
        if status.success() {
            Ok(())
        } else {
            Err(Failure::new(format!("dpkg-deb cannot read {}", package.display())))
        }
    }
}
