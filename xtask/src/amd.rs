//! `cargo xtask amd`: AMD code objects, executed without AMD hardware by the Python package in `tests/amd`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::command::{Context, Failure, capture, run as run_command};
use crate::env::{Workspace, set};
use crate::setup::{self, Purpose};
use crate::wheels::python_with_pip;

#[derive(Debug, Args)]
pub struct Options {
    /// Do not look for missing packages and wheels first.
    #[arg(long)]
    no_setup: bool,
    /// A kernel with its launch, or options for the checks; `cargo xtask amd -- --help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// The packages that the executor needs, with their hashes.
const REQUIREMENTS: &str = "tests/amd/requirements.txt";

/// The file in the folder that says what it was made from.
const STAMP: &str = ".pins";

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    if !options.no_setup {
        setup::run(workspace, Purpose::Test)?;
    }
    let gpulower = match set("GPULOWER") {
        Some(named) => PathBuf::from(named),
        None => {
            run_command(workspace.cargo("build").args(["--bins", "--locked"]))?;
            workspace.binaries()?.join("gpulower")
        }
    };
    let mut command = checks(workspace, &gpulower)?;
    // Files that a person names are meant from where they are.
    let here = std::env::current_dir().context(|| "find the current folder".to_owned())?;
    run_command(command.current_dir(here).args(&options.arguments))
}

/// The commands of the part `amd` of the tests: the executor itself, then everything that it executes.
pub fn test(workspace: &Workspace) -> Result<Vec<Command>, Failure> {
    let mut unit = python(workspace)?;
    unit.env("GPULOWER", workspace.binaries()?.join("gpulower")).args([
        "-m",
        "unittest",
        "discover",
        "--start-directory",
        "unit",
        "--top-level-directory",
        ".",
    ]);
    let gpulower = workspace.binaries()?.join("gpulower");
    let mut commands = vec![workspace.build_everything(), unit, checks(workspace, &gpulower)?];
    for target in ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1150", "gfx1201"] {
        commands.push(differ(workspace, target)?);
    }
    Ok(commands)
}

/// Some kernels at random (`docs/lab/differential.md`); the program starts the executor with the words of `DIFFER_AMD`.
fn differ(workspace: &Workspace, target: &str) -> Result<Command, Failure> {
    let mut command = python(workspace)?;
    let python = command.get_program().to_string_lossy().into_owned();
    let mut program = workspace.command(workspace.binaries()?.join("gpulower-checks"));
    program.args([
        "differ",
        "amd",
        "--target",
        target,
        "--count",
        "16",
        "--settings",
        "default,O0",
    ]);
    program.current_dir(workspace.root.join("tests/amd"));
    for (name, value) in command
        .env("DIFFER_AMD", format!("{python}\n-m\nchecks.differ"))
        .get_envs()
    {
        if let Some(value) = value {
            program.env(name, value);
        }
    }
    Ok(program)
}

fn checks(workspace: &Workspace, gpulower: &Path) -> Result<Command, Failure> {
    let mut command = python(workspace)?;
    command.args(["-m", "checks", "--gpulower"]).arg(gpulower);
    Ok(command)
}

/// A Python that sees the packages, in the folder of the executor.
pub fn python(workspace: &Workspace) -> Result<Command, Failure> {
    let program = python_with_pip().ok_or_else(no_python)?;
    let sources = workspace.root.join("tests/amd");
    let path = std::env::join_paths([folder(workspace), sources.clone()])
        .context(|| format!("put {} on Python's path", sources.display()))?;
    let mut command = workspace.command(program);
    command
        .current_dir(sources)
        .env("PYTHONPATH", path)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        // numpy's own threads only stand in the way of two processes.
        .env("OPENBLAS_NUM_THREADS", "1");
    Ok(command)
}

fn no_python() -> Failure {
    Failure::new("there is no python3 with pip (Debian: apt-get install python3-pip)")
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.toolkit().join("amd")
}

fn requirements(workspace: &Workspace) -> Result<String, Failure> {
    let path = workspace.root.join(REQUIREMENTS);
    fs::read_to_string(&path).context(|| format!("read {}", path.display()))
}

/// Installs the packages where they are missing or others; true when it did.
pub fn install(workspace: &Workspace) -> Result<bool, Failure> {
    let wanted = requirements(workspace)?;
    let folder = folder(workspace);
    if fs::read_to_string(folder.join(STAMP)).is_ok_and(|text| text == wanted) {
        return Ok(false);
    }
    let program = python_with_pip().ok_or_else(no_python)?;
    if folder.exists() {
        fs::remove_dir_all(&folder).context(|| format!("remove {}", folder.display()))?;
    }
    println!("setup: installing what executes AMD code into {}", folder.display());
    let mut pip = Command::new(program);
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ])
    .args(["--no-deps", "--only-binary", ":all:", "--require-hashes", "--target"])
    .arg(&folder)
    .arg("--requirement")
    .arg(workspace.root.join(REQUIREMENTS))
    // Nothing is installed into an environment, so the wish to have one does not apply.
    .env("PIP_REQUIRE_VIRTUALENV", "false");
    let output = capture(&mut pip)?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::new(format!(
            "pip could not install what executes AMD code ({REQUIREMENTS}: x86-64 Linux, Python 3.11 to 3.14):\n{}",
            errors.trim()
        )));
    }
    // Last, so that a run that is interrupted starts again.
    fs::write(folder.join(STAMP), wanted).context(|| format!("write {STAMP}"))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::shown;

    fn workspace() -> Workspace {
        Workspace {
            root: Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
            llvm: "/nowhere".into(),
        }
    }

    #[test]
    fn every_requirement_is_pinned_with_a_hash() {
        let text = requirements(&workspace()).unwrap();
        let lines = text.lines().filter(|line| line.contains("=="));
        for line in lines {
            assert!(line.ends_with('\\'), "{line} has no hash");
        }
        for name in ["tinygrad==0.14.0 ", "numpy==", "msgpack=="] {
            assert!(text.contains(name), "{name} is not in:\n{text}");
        }
    }

    #[test]
    fn only_the_same_pins_are_current() {
        let folder = tempfile::tempdir().unwrap();
        let workspace = Workspace {
            root: folder.path().into(),
            llvm: "/nowhere".into(),
        };
        fs::create_dir_all(folder.path().join("tests/amd")).unwrap();
        fs::create_dir_all(folder.path().join(".toolkit/amd")).unwrap();
        fs::write(folder.path().join(REQUIREMENTS), "a==1\n").unwrap();
        fs::write(folder.path().join(".toolkit/amd").join(STAMP), "a==1\n").unwrap();
        assert!(!install(&workspace).unwrap());
    }

    #[test]
    fn the_checks_run_in_their_folder_with_the_program() {
        let command = checks(&workspace(), Path::new("/bin/gpulower")).unwrap();
        assert!(
            shown(&command).ends_with("-m checks --gpulower /bin/gpulower"),
            "{command:?}"
        );
        assert!(command.get_current_dir().unwrap().ends_with("tests/amd"));
    }
}
