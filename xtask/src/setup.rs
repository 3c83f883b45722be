//! Installing what building, testing and the demo need. A second run changes nothing and downloads nothing.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use crate::amd;
use crate::apt::{self, LLVM_PACKAGES, SYSTEM_PACKAGES, TEST_PACKAGES};
use crate::command::{Context, Failure, capture, run as run_command, succeeds};
use crate::env::{DEFAULT_PREFIX, LLVM_MAJOR, PREFIX_VARIABLES, Workspace, set};
use crate::openmp;
use crate::servers;
use crate::wheels;

/// What the installation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Goes on without NVIDIA's tools, with less to show.
    Demo,
    /// Everything has to be there.
    Test,
}

/// What is there after the installation.
#[derive(Debug)]
pub struct Ready {
    /// A CUDA tree with at least `ptxas`; None when it could not be had.
    pub cuda: Option<PathBuf>,
}

pub fn run(workspace: &Workspace, purpose: Purpose) -> Result<Ready, Failure> {
    // Two commands at once would unpack over each other; the second one waits.
    let folder = workspace.toolkit();
    fs::create_dir_all(&folder).context(|| format!("create {}", folder.display()))?;
    let lock = folder.join(".lock");
    let lock_file = File::create(&lock).context(|| format!("create {}", lock.display()))?;
    lock_file.lock().context(|| format!("lock {}", lock.display()))?;

    let mut changed = packages(workspace, purpose)?;
    let llvm_version = check_llvm(workspace)?;
    if purpose == Purpose::Test {
        changed |= rust_components(workspace)?;
        changed |= amd::install(workspace)?;
        changed |= openmp::install(workspace)?;
        changed |= servers::install(workspace)?;
    }
    let (cuda, installed) = cuda(workspace, purpose)?;
    changed |= installed;

    let cuda_text = cuda.as_ref().map_or_else(
        || "no CUDA tree".to_owned(),
        |path| format!("CUDA tree {}", path.display()),
    );
    println!(
        "setup: {}: LLVM {llvm_version} in {}, {cuda_text}",
        match (&cuda, changed) {
            (None, _) => "incomplete",
            (Some(_), true) => "done",
            (Some(_), false) => "nothing to do",
        },
        workspace.llvm.display(),
    );
    Ok(Ready { cuda })
}

/// Installs missing packages where apt can; true when it did.
fn packages(workspace: &Workspace, purpose: Purpose) -> Result<bool, Failure> {
    if !apt::is_available() {
        return Ok(false);
    }
    let mut wanted = Vec::new();
    if workspace.llvm == Path::new(DEFAULT_PREFIX) {
        wanted.extend_from_slice(LLVM_PACKAGES);
    }
    wanted.extend_from_slice(SYSTEM_PACKAGES);
    if purpose == Purpose::Test {
        wanted.extend_from_slice(TEST_PACKAGES);
    }
    let mut missing = apt::missing(&wanted)?;
    let wanted_by_wheels = purpose == Purpose::Test || !wheels::is_current(&workspace.wheel_cuda());
    if wanted_by_wheels && wheels::python_with_pip().is_none() {
        missing.push("python3-pip");
    }
    if missing.is_empty() {
        return Ok(false);
    }
    apt::install(workspace, &missing)?;
    Ok(true)
}

/// The version of LLVM at the prefix, which must be of the release that the bindings are for.
fn check_llvm(workspace: &Workspace) -> Result<String, Failure> {
    let program = workspace.llvm.join("bin/llvm-config");
    let version = capture(workspace.command(&program).arg("--version"))
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match version {
        Some(version) if version.split('.').next() == Some(LLVM_MAJOR) => Ok(version),
        Some(version) => Err(Failure::new(format!(
            "{} is LLVM {version}; gpulower is built with LLVM {LLVM_MAJOR}.\n{}",
            workspace.llvm.display(),
            advice_for_llvm()
        ))),
        None => Err(Failure::new(format!(
            "{} does not run.\n{}",
            program.display(),
            advice_for_llvm()
        ))),
    }
}

fn advice_for_llvm() -> String {
    format!(
        "Install LLVM, MLIR, clang and lld {LLVM_MAJOR} with their static libraries and headers, and set\n  \
         {}\nall to the prefix of that installation. On Debian and Ubuntu these are the packages\n  {}\n  {}\n\
         and the prefix is {DEFAULT_PREFIX}. AMD's device libraries (ocml.bc, ockl.bc) come with ROCm \
         (set ROCM_PATH) or with a package named like rocm-device-libs.",
        PREFIX_VARIABLES.join("\n  "),
        LLVM_PACKAGES.join(" "),
        SYSTEM_PACKAGES.join(" "),
    )
}

/// Installs rustfmt and clippy where they are missing; true when it did.
fn rust_components(workspace: &Workspace) -> Result<bool, Failure> {
    let components = [("rustfmt", "fmt"), ("clippy", "clippy")];
    let missing: Vec<_> = components
        .into_iter()
        .filter(|(_, subcommand)| !succeeds(workspace.cargo(subcommand).arg("--version")))
        .map(|(component, _)| component)
        .collect();
    if missing.is_empty() {
        return Ok(false);
    }
    let mut rustup = workspace.command("rustup");
    rustup.args(["component", "add"]).args(&missing);
    run_command(&mut rustup).map_err(|failure| {
        Failure::new(format!(
            "{} of this Rust toolchain missing, and {failure}; install {} in the way the toolchain was installed",
            missing.join(" and "),
            if missing.len() == 1 { "it" } else { "them" },
        ))
    })?;
    Ok(true)
}

/// The CUDA tree, and whether it was installed just now.
fn cuda(workspace: &Workspace, purpose: Purpose) -> Result<(Option<PathBuf>, bool), Failure> {
    if let Some(path) = set("GPULOWER_CUDA").map(PathBuf::from) {
        if path.join("bin/ptxas").is_file() {
            return Ok((Some(path), false));
        }
        return Err(Failure::new(format!(
            "GPULOWER_CUDA={} has no bin/ptxas; unset it to use the wheels",
            path.display()
        )));
    }
    let wheel_cuda = workspace.wheel_cuda();
    if wheels::is_current(&wheel_cuda) {
        return Ok((Some(wheel_cuda), false));
    }
    let failure = match wheels::install(&wheel_cuda) {
        Ok(()) => return Ok((Some(wheel_cuda), true)),
        Err(failure) => failure,
    };
    let text = without_wheels(&failure);
    if purpose == Purpose::Test {
        return Err(Failure::new(text));
    }
    eprintln!("setup: {text}");
    let own = set("CUDA_HOME").map(PathBuf::from);
    Ok((own.filter(|path| path.join("bin/ptxas").is_file()), false))
}

fn without_wheels(failure: &Failure) -> String {
    let wheels: Vec<_> = wheels::WHEELS
        .iter()
        .map(|wheel| format!("  {}=={} ({})", wheel.name, wheel.version, wheel.brings))
        .collect();
    format!(
        "NVIDIA's wheels are missing: {failure}\n\
         Without them there are no cubins (no ptxas, nvJitLink, nvPTXCompiler) and no libdevice, which NVIDIA kernels \
         with exp, erf and the like need; PTX of other kernels, LLVM IR and AMD code need none of it.\n\
         To get them: make these available to `python3 -m pip download` and run the command again:\n{}\n\
         or install CUDA 13.0 and set CUDA_HOME to it; for the tests, set GPULOWER_CUDA to it.",
        wheels.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_off_debian_names_packages_and_variables() {
        let advice = advice_for_llvm();
        let variables = PREFIX_VARIABLES.into_iter();
        let packages = LLVM_PACKAGES.iter().chain(SYSTEM_PACKAGES).copied();
        for word in variables.chain(packages) {
            assert!(advice.contains(word), "{word} is not in:\n{advice}");
        }
    }

    #[test]
    fn missing_wheels_are_named_with_the_way_to_get_them() {
        let text = without_wheels(&Failure::new("no network"));
        for part in [
            "no network",
            "nvidia-cuda-nvcc==13.0.88 (ptxas",
            "no cubins",
            "set CUDA_HOME",
        ] {
            assert!(text.contains(part), "{part} is not in:\n{text}");
        }
    }
}
