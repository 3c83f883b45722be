//! libomptarget of the releases of clang that finish programs in the tests. Debian's packages of them exclude each other, so they
//! are unpacked into a folder and not installed.

use std::fs;
use std::process::Command;

use crate::command::{Context, Failure, run};
use crate::env::Workspace;

/// The packages with libomp and libomptarget of 16, 19 and 22, clang 16's runtime for devices, and the header of liboffload.
const PACKAGES: [&str; 5] = [
    "libomp5-16",
    "libomp-16-dev",
    "libomp5-19",
    "liboffload-22",
    "liboffload-22-dev",
];
/// The file in the folder that says what it was made from.
const STAMP: &str = ".packages";

/// Unpacks what is not there; true when something was.
pub fn install(workspace: &Workspace) -> Result<bool, Failure> {
    let folder = workspace.toolkit().join("openmp");
    let stamp = folder.join(STAMP);
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(false);
    }
    if folder.exists() {
        fs::remove_dir_all(&folder).context(|| format!("remove {}", folder.display()))?;
    }
    let packages = folder.join("packages");
    fs::create_dir_all(&packages).context(|| format!("create {}", packages.display()))?;
    println!("setup: unpacking {}", PACKAGES.join(" "));
    let mut download = Command::new("apt-get");
    run(download.args(["download", "-q"]).args(PACKAGES).current_dir(&packages))?;
    for file in fs::read_dir(&packages).context(|| format!("read {}", packages.display()))? {
        let file = file.context(|| format!("read {}", packages.display()))?;
        run(Command::new("dpkg-deb").arg("-x").arg(file.path()).arg(&folder))?;
    }
    fs::remove_dir_all(&packages).context(|| format!("remove {}", packages.display()))?;
    fs::write(&stamp, wanted).context(|| format!("write {}", stamp.display()))?;
    Ok(true)
}
