//! `cargo xtask cross`: what is built for another processor, and its tests under qemu.
//!
//! Build scripts and procedural macros run here, with this machine's LLVM; what is linked is the other processor's, from Debian's
//! packages in a folder ([`sysroot`]).

mod checks;
mod emulator;
mod sysroot;

use std::path::{Path, PathBuf};
use std::process::Command;

use clap::{Args, ValueEnum};

use crate::command::{Context, Failure, run as run_command};
use crate::env::Workspace;
use crate::{apt, install, wheel};

#[derive(Debug, Args)]
pub struct Options {
    /// The processor.
    #[arg(value_enum)]
    processor: Processor,
    /// The crates that need no LLVM, and nothing else.
    #[arg(long)]
    readers: bool,
    /// Run the tests under qemu, too. Of the readers: some minutes; of the programs: hours.
    #[arg(long)]
    test: bool,
    /// A part of the tests; may be given several times.
    #[arg(long, value_enum, value_name = "PART", requires = "test", conflicts_with = "readers")]
    part: Vec<checks::Part>,
    /// Test what was built before.
    #[arg(long, requires = "test", conflicts_with = "readers")]
    no_build: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Processor {
    /// 64-bit ARM.
    Aarch64,
}

const TARGET: &str = "aarch64-unknown-linux-gnu";
/// As Debian names its folders.
const MULTIARCH: &str = "aarch64-linux-gnu";
/// The cross compiler, which brings the C and C++ libraries.
const COMPILER: [&str; 1] = ["g++-aarch64-linux-gnu"];

/// What is built and tested. Everything at once: what is built for less has other features of dependencies.
const CRATES: [&str; 7] = [
    "--workspace",
    "--exclude",
    "xtask",
    "--exclude",
    "gpulower-checks",
    "--exclude",
    "gpulower-python",
];

/// What is built of them. With one test, since dependencies then have the features that tests ask for: the tests are built with what
/// the programs were built with.
const TARGETS: [&str; 4] = ["--lib", "--bins", "--test", "crashes"];

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let Processor::Aarch64 = options.processor;
    run_command(Command::new("rustup").args(["target", "add", TARGET]))?;
    if options.readers {
        return readers(workspace, options.test).iter_mut().try_for_each(run_command);
    }
    provide(workspace, &COMPILER)?;
    let cross = Cross {
        workspace,
        sysroot: sysroot::install(workspace)?,
    };
    if !options.no_build {
        cross.build()?;
        if options.part.is_empty() || options.part.contains(&checks::Part::Wheel) {
            cross.build_wheel()?;
        }
    }
    if options.test {
        provide(workspace, &emulator::PACKAGES)?;
        checks::run(&cross, &options.part, !options.no_build)?;
    }
    Ok(())
}

/// Installs packages that are missing.
fn provide(workspace: &Workspace, packages: &[&str]) -> Result<(), Failure> {
    if !apt::is_available() {
        return Ok(());
    }
    match apt::missing(packages)? {
        missing if missing.is_empty() => Ok(()),
        missing => apt::install(workspace, &missing),
    }
}

/// The crates without LLVM.
fn readers(workspace: &Workspace, test: bool) -> Vec<Command> {
    let cargo = |subcommand: &str, arguments: &[&str]| {
        let mut command = workspace.cargo(subcommand);
        command.args(["--locked", "--target", TARGET]).args(arguments);
        command.env("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc");
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
        let runner = "qemu-aarch64 -L /usr/aarch64-linux-gnu";
        command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
        command
    };
    let mut commands = vec![cargo("build", &["-p", "gpulower-image", "-p", "gpulower-runtime"])];
    if test {
        commands.push(cargo("test", &["-p", "gpulower-image", "--lib"]));
    }
    commands
}

/// A build for the other processor.
struct Cross<'a> {
    workspace: &'a Workspace,
    sysroot: PathBuf,
}

impl Cross<'_> {
    /// Programs and the C library.
    fn build(&self) -> Result<(), Failure> {
        run_command(self.cargo("build").args(CRATES).args(TARGETS))?;
        let (programs, prefix) = (self.programs()?, self.prefix()?);
        let library = programs.join("libgpulower_c.so");
        install::lay_out_with("aarch64-linux-gnu-strip", self.workspace, &programs, &library, &prefix)?;
        for file in ["bin/gpulower", "bin/gpulower-opt", "lib/libgpulower.so.1"] {
            said_of(&prefix.join(file))?;
        }
        Ok(())
    }

    fn build_wheel(&self) -> Result<(), Failure> {
        let mut wheel = wheel::for_target(self.workspace, TARGET, &self.wheels()?)?;
        self.prepare(&mut wheel);
        run_command(&mut wheel)
    }

    /// cargo for the other processor.
    fn cargo(&self, subcommand: &str) -> Command {
        let mut command = self.workspace.cargo(subcommand);
        command.args(["--locked", "--target", TARGET]);
        self.prepare(&mut command);
        command
    }

    /// What cargo, build scripts and the linker read of the environment.
    fn prepare(&self, command: &mut Command) {
        let llvm = sysroot::llvm(&self.sysroot);
        for variable in ["MLIR_SYS_220_PREFIX", "LLVM_SYS_221_PREFIX"] {
            command.env(variable, &llvm);
        }
        // Procedural macros read LLVM's tables with the library of this machine.
        command.env("TABLEGEN_220_PREFIX", &self.workspace.llvm);
        for (variable, program) in [
            ("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc"),
            ("CXX_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-g++"),
            ("AR_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-ar"),
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc"),
        ] {
            if std::env::var_os(variable).is_none() {
                command.env(variable, program);
            }
        }
        // lld: GNU ld takes minutes for LLVM's archives. The libraries are named to the linker, not to rustc, which would take
        // Debian's libzstd.a for the one that a crate builds.
        let flags = [
            "-Clink-arg=-fuse-ld=lld".to_owned(),
            format!("-Clink-arg=-B{}", llvm.join("bin").display()),
            format!(
                "-Clink-arg=-L{}",
                self.sysroot.join("usr/lib").join(MULTIARCH).display()
            ),
        ];
        command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
        let clang = "-isystem /usr/aarch64-linux-gnu/include";
        command.env("BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu", clang);
    }

    /// Where cargo puts what it builds.
    fn programs(&self) -> Result<PathBuf, Failure> {
        Ok(self.below_target(TARGET)?.join("debug"))
    }

    fn prefix(&self) -> Result<PathBuf, Failure> {
        Ok(self.below_target("cross/aarch64")?.join("prefix"))
    }

    fn wheels(&self) -> Result<PathBuf, Failure> {
        Ok(self.below_target("cross/aarch64")?.join("wheels"))
    }

    fn below_target(&self, folder: &str) -> Result<PathBuf, Failure> {
        Ok(self.workspace.binaries()?.with_file_name(folder))
    }
}

fn said_of(file: &Path) -> Result<(), Failure> {
    let metadata = file.metadata().context(|| format!("examine {}", file.display()))?;
    println!("cross: {}, {} MB", file.display(), metadata.len() >> 20);
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        _options: Options,
    }

    #[test]
    fn options_that_do_nothing_together_are_refused() {
        let parse = |options: &str| Line::try_parse_from(["cross", "aarch64"].into_iter().chain(options.split(' ')));
        for good in ["--test", "--test --part lit --no-build", "--readers --test"] {
            assert!(parse(good).is_ok(), "{good}");
        }
        for (bad, named) in [
            ("--part lit", "--test"),
            ("--no-build", "--test"),
            ("--readers --test --part lit", "--readers"),
            ("--readers --test --no-build", "--readers"),
        ] {
            let message = parse(bad).expect_err(bad).to_string();
            assert!(message.contains(named), "{bad}: {message}");
        }
    }
}
