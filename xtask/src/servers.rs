//! What tests use from PyPI beside Debian's packages: moto, an S3 server for those of the shared cache, and Perfetto's viewer for
//! traces.

use std::fs;
use std::process::Command;

use crate::command::{Context, Failure, capture};
use crate::env::Workspace;
use crate::wheels::python_with_pip;

const REQUIREMENTS: &str = "crates/gpulower-testing/servers.txt";

/// What was installed.
const STAMP: &str = ".requirements";

/// Installs both, unless they are there; true when it did.
pub fn install(workspace: &Workspace) -> Result<bool, Failure> {
    let path = workspace.root.join(REQUIREMENTS);
    let wanted = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
    let folder = workspace.toolkit().join("servers");
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|text| text == wanted) {
        return Ok(false);
    }
    println!(
        "setup: installing an S3 server and Perfetto's viewer for tests into {}",
        folder.display()
    );
    let no_python = || Failure::new("there is no python3 with pip (Debian: apt-get install python3-pip python3-venv)");
    let python = python_with_pip().ok_or_else(no_python)?;
    expect(Command::new(python).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ])
    .args(["--no-deps", "--only-binary", ":all:", "--require-hashes"])
    .arg("--requirement")
    .arg(&path);
    expect(&mut pip)?;
    // Last, so that a run that is interrupted starts again.
    fs::write(folder.join(STAMP), wanted).context(|| format!("write {STAMP}"))?;
    Ok(true)
}

fn expect(command: &mut Command) -> Result<(), Failure> {
    let output = capture(command)?;
    if output.status.success() {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the S3 server and the viewer of the tests cannot be installed ({REQUIREMENTS}: x86-64 Linux, Python 3.11):\n{}",
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

/// The tests of the shared cache that need every service; those of the programs are among theirs.
pub fn test(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo("test");
    command.args([
        "--package",
        "gpulower-remote",
        "--features",
        "memcached,http",
        "--locked",
    ]);
    command
}
