//! `cargo xtask wheel`, and the tests of the Python package: in an environment of its own, with the wheel and no LLVM.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use clap::Args;

use crate::command::{Context, Failure, run as run_command};
use crate::env::Workspace;
use crate::wheels::{no_python, python_environment, python_with_pip};

#[derive(Debug, Args)]
pub struct Options {
    /// With the profile `dev`, for tests.
    #[arg(long)]
    dev: bool,
    /// Make a source distribution, too. It has all that the package needs but LLVM.
    #[arg(long)]
    sdist: bool,
    /// The folder to write to.
    #[arg(long, default_value = "target/wheels")]
    out: PathBuf,
}

/// The package.
const PACKAGE: &str = "crates/gpulower-python";

/// Where the tests make it, and the environment that they install it into.
const TESTED: &str = "target/python";

/// What it is made and tested with.
const REQUIREMENTS: &str = "crates/gpulower-python/tests/requirements.txt";

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    make(workspace, options.dev, &options.out)?;
    if options.sdist {
        run_command(&mut sources(workspace, &tools(workspace)?, &options.out))?;
    }
    Ok(())
}

/// Makes the wheel in a folder.
pub fn make(workspace: &Workspace, dev: bool, out: &Path) -> Result<(), Failure> {
    let tools = tools(workspace)?;
    run_command(&mut wheel(workspace, &tools, dev, out)?)
}

/// What makes the wheel for another processor. What it needs of the system is not looked for: that is not here.
pub fn for_target(workspace: &Workspace, target: &str, out: &Path) -> Result<Command, Failure> {
    let tools = tools(workspace)?;
    let mut maturin = maturin(workspace, &tools, "build");
    maturin
        .args(["--locked", "--auditwheel", "skip", "--target", target, "--out"])
        .arg(out);
    maturin.args(["--strip", "--profile", "dev"]);
    Ok(maturin)
}

/// The wheel that the tests made last.
pub fn tested(workspace: &Workspace) -> Result<PathBuf, Failure> {
    only(&workspace.root.join(TESTED).join("wheels"))
        .map_err(|error| Failure::new(format!("{error}: `cargo xtask test python` makes it")))
}

/// The wheel in a folder.
pub fn only(folder: &Path) -> Result<PathBuf, Failure> {
    let mut paths = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let wheel = paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheel.ok_or_else(|| Failure::new(format!("{} has no wheel", folder.display())))
}

/// The part `python` of the tests.
pub fn test(workspace: &Workspace) -> Result<Vec<Command>, Failure> {
    let tools = tools(workspace)?;
    let folder = workspace.root.join(TESTED);
    let wheels = folder.join("wheels");
    let environment = folder.join("environment");
    if wheels.exists() {
        fs::remove_dir_all(&wheels).context(|| format!("remove {}", wheels.display()))?;
    }
    let program = |name: &str| {
        let mut command = workspace.command(tools.join("bin").join(name));
        command.current_dir(workspace.root.join(PACKAGE));
        command
    };
    let python = environment.join("bin/python");
    let mut ruff = program("ruff");
    ruff.args(["check", "--quiet", "."]);
    // scripts/ and integrations/.
    let mut ruff_of_others = workspace.command(tools.join("bin/ruff"));
    ruff_of_others.args(["check", "--quiet", "."]);
    let mut format = program("ruff");
    format.args(["format", "--check", "--quiet", "."]);
    let mut venv = workspace.command(python_with_pip().ok_or_else(no_python)?);
    venv.args(["-m", "venv", "--clear"]).arg(&environment);
    let mut install = workspace.command(&python);
    install
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(["--no-index", "--no-deps", "--only-binary=:all:", "--find-links"])
        .arg(&wheels)
        .arg("gpulower");
    let mut see_tools = workspace.command(&python);
    see_tools.arg("-c").arg(SEE_TOOLS).arg(&tools);
    let mut types = program("mypy");
    types
        .args(["--config-file", "pyproject.toml", "--python-executable"])
        .arg(&python)
        .args(["--cache-dir"])
        .arg(folder.join("mypy"))
        .args(["python", "tests", "examples"]);
    let mut tests = workspace.command(&python);
    tests
        .current_dir(workspace.root.join(PACKAGE))
        .args([
            "-m",
            "pytest",
            "-q",
            "-m",
            "not gpu and not large",
            "-p",
            "no:cacheprovider",
        ])
        .env("PATH", without_llvm(&environment)?)
        .env("GPULOWER_WHEELS", &wheels)
        .env("GPULOWER_DEP_INFO", workspace.binaries()?.join("lib_native.d"))
        .env("GPULOWER_TOOLS", tools.join("bin"))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(vec![
        ruff,
        ruff_of_others,
        format,
        wheel(workspace, &tools, true, &wheels)?,
        sources(workspace, &tools, &wheels),
        venv,
        install,
        see_tools,
        types,
        tests,
    ])
}

/// Makes an environment see the packages of another, after its own.
const SEE_TOOLS: &str = "
import pathlib, sys, sysconfig
version = f'python{sys.version_info.major}.{sys.version_info.minor}'
path = pathlib.Path(sys.argv[1], 'lib', version, 'site-packages')
pathlib.Path(sysconfig.get_path('purelib'), 'tools.pth').write_text(f'{path}\\n')
";

/// The environment's programs and the system's, and none of LLVM's.
fn without_llvm(environment: &Path) -> Result<std::ffi::OsString, Failure> {
    std::env::join_paths([
        environment.join("bin"),
        "/usr/local/bin".into(),
        "/usr/bin".into(),
        "/bin".into(),
    ])
    .context(|| "put together PATH".to_owned())
}

/// What makes the wheel. The library of the last one is removed: maturin changes which libraries it needs in the file that cargo
/// linked, and the names that it gives them are found nowhere the next time.
fn wheel(workspace: &Workspace, tools: &Path, dev: bool, out: &Path) -> Result<Command, Failure> {
    let debug = workspace.binaries()?;
    let built = debug.with_file_name(if dev { "debug" } else { "release" });
    for library in [built.join("deps/lib_native.so"), built.join("lib_native.so")] {
        match fs::remove_file(&library) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).context(|| format!("remove {}", library.display()));
            }
            _ => {}
        }
    }
    let mut maturin = maturin(workspace, tools, "build");
    maturin.args(["--locked", "--auditwheel", "repair", "--out"]).arg(out);
    if dev {
        maturin.args(["--profile", "dev"]);
    } else {
        maturin.args(["--profile", "release", "--strip"]);
    }
    maturin.arg("--interpreter").arg(tools.join("bin/python"));
    Ok(maturin)
}

fn sources(workspace: &Workspace, tools: &Path, out: &Path) -> Command {
    let mut maturin = maturin(workspace, tools, "sdist");
    maturin.arg("--out").arg(out);
    maturin
}

fn maturin(workspace: &Workspace, tools: &Path, subcommand: &str) -> Command {
    let mut command = workspace.command(tools.join("bin/maturin"));
    command.arg(subcommand);
    command
        .arg("--manifest-path")
        .arg(workspace.root.join(PACKAGE).join("Cargo.toml"));
    // patchelf is among the tools.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(tools.join("bin")).chain(std::env::split_paths(&path));
    if let Ok(path) = std::env::join_paths(paths) {
        command.env("PATH", path);
    }
    command
}

/// The environment with maturin, pytest and the rest, made where it is missing or of other versions.
fn tools(workspace: &Workspace) -> Result<PathBuf, Failure> {
    python_environment(workspace, "python", "what makes and tests the wheel", REQUIREMENTS)
}
