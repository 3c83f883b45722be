//! Where the checkout is, which LLVM it is built with, and the environment of the programs started from here.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Context, Failure, capture};

/// The variables that melior's mlir-sys, inkwell's llvm-sys and tblgen read to find LLVM 22.
/// `.cargo/config.toml` sets the same default for a plain `cargo build`.
pub const PREFIX_VARIABLES: [&str; 3] = ["MLIR_SYS_220_PREFIX", "LLVM_SYS_221_PREFIX", "TABLEGEN_220_PREFIX"];

/// Where Debian's and Ubuntu's LLVM 22 packages install.
pub const DEFAULT_PREFIX: &str = "/usr/lib/llvm-22";

/// The release of LLVM that the pinned bindings are for.
pub const LLVM_MAJOR: &str = "22";

/// The checkout, and what is installed beside it.
#[derive(Debug)]
pub struct Workspace {
    pub root: PathBuf,
    /// The LLVM installation that everything is built with.
    pub llvm: PathBuf,
}

impl Workspace {
    pub fn locate() -> Result<Self, Failure> {
        // `cargo run` names the folder of this package; a binary that is started by hand remembers it from its build.
        let manifest = env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&manifest).parent().map(Path::to_path_buf);
        let root = root.filter(|root| root.join("xtask/Cargo.toml").is_file());
        Ok(Self {
            root: root.ok_or_else(|| Failure::new("run this as `cargo xtask` inside a checkout of gpulower"))?,
            llvm: agreed_prefix(|name| env::var_os(name))?,
        })
    }

    /// The ignored folder that `cargo xtask setup` fills.
    pub fn toolkit(&self) -> PathBuf {
        self.root.join(".toolkit")
    }

    /// NVIDIA's wheels, unpacked into one CUDA tree.
    pub fn wheel_cuda(&self) -> PathBuf {
        self.toolkit().join("cuda")
    }

    /// A command that runs in the checkout, and sees the LLVM and the CUDA tree that were set up.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root);
        for name in PREFIX_VARIABLES {
            command.env(name, &self.llvm);
        }
        command.env("GPULOWER_LLVM_BIN", self.llvm.join("bin"));
        if set("CI").is_some() {
            // Nothing is built twice there: what cargo keeps for the next build only fills the disk.
            command.env("CARGO_INCREMENTAL", "0");
        }
        let cuda = self.wheel_cuda();
        if cuda.is_dir() {
            for name in ["CUDA_HOME", "GPULOWER_CUDA"] {
                if set(name).is_none() {
                    command.env(name, &cuda);
                }
            }
        }
        command
    }

    /// The cargo that runs this program, with an argument.
    pub fn cargo(&self, subcommand: &str) -> Command {
        let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = self.command(program);
        command.arg(subcommand);
        command
    }

    /// Builds all that the tests run. What is built for less has other features of dependencies, and so is built once more.
    pub fn build_everything(&self) -> Command {
        let mut command = self.cargo("build");
        command.args(["--workspace", "--bins", "--tests", "--locked"]);
        command
    }

    /// Where cargo puts the programs of the `dev` profile.
    pub fn binaries(&self) -> Result<PathBuf, Failure> {
        let mut metadata = self.cargo("metadata");
        metadata.args(["--no-deps", "--format-version", "1"]);
        let output = capture(&mut metadata)?;
        let text = String::from_utf8_lossy(&output.stdout);
        let value: serde_json::Value = serde_json::from_str(&text).context(|| {
            let errors = String::from_utf8_lossy(&output.stderr);
            format!("read what `cargo metadata` printed ({})", errors.trim())
        })?;
        let target = value["target_directory"]
            .as_str()
            .ok_or_else(|| Failure::new("`cargo metadata` names no target directory"))?;
        Ok(Path::new(target).join("debug"))
    }
}

/// The value of a variable, unless it is empty.
pub fn set(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The one LLVM installation that the three variables name.
fn agreed_prefix(lookup: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Failure> {
    let mut agreed: Option<(&str, OsString)> = None;
    for name in PREFIX_VARIABLES {
        let Some(value) = lookup(name).filter(|value| !value.is_empty()) else {
            continue;
        };
        match &agreed {
            None => agreed = Some((name, value)),
            Some((_, first)) if *first == value => {}
            Some((other, first)) => {
                return Err(Failure::new(format!(
                    "{other}={} and {name}={} name two LLVM installations; one program can hold only one LLVM, \
                     set {} all to the same prefix",
                    first.display(),
                    value.display(),
                    PREFIX_VARIABLES.join(", "),
                )));
            }
        }
    }
    Ok(agreed.map_or_else(|| DEFAULT_PREFIX.into(), |(_, value)| value.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_variables_the_prefix_is_debians() {
        assert_eq!(agreed_prefix(|_| None).unwrap(), Path::new("/usr/lib/llvm-22"));
    }

    #[test]
    fn one_variable_speaks_for_all_three() {
        let lookup = |name: &str| (name == "LLVM_SYS_221_PREFIX").then(|| "/opt/llvm".into());
        assert_eq!(agreed_prefix(lookup).unwrap(), Path::new("/opt/llvm"));
    }

    #[test]
    fn an_empty_variable_counts_as_unset() {
        assert_eq!(agreed_prefix(|_| Some("".into())).unwrap(), Path::new(DEFAULT_PREFIX));
    }

    #[test]
    fn two_installations_are_refused() {
        let lookup = |name: &str| match name {
            "MLIR_SYS_220_PREFIX" => Some("/a".into()),
            "TABLEGEN_220_PREFIX" => Some("/b".into()),
            _ => None,
        };
        let message = agreed_prefix(lookup).unwrap_err().to_string();
        assert!(
            message.contains("MLIR_SYS_220_PREFIX=/a and TABLEGEN_220_PREFIX=/b name two LLVM installations"),
            "{message}"
        );
    }
}
