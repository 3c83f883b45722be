//! `cargo xtask cross`: what needs no LLVM, for another processor, and its tests under qemu.
//!
//! The compiler itself is not built so: that takes LLVM and MLIR for the other processor beside tablegen of this one.

use std::process::Command;

use clap::{Args, ValueEnum};

use crate::command::{Failure, run as run_command};
use crate::env::Workspace;

#[derive(Debug, Args)]
pub struct Options {
    /// The processor.
    #[arg(value_enum)]
    processor: Processor,
    /// Run the tests of the crate gpulower-image under qemu, too: some minutes.
    #[arg(long)]
    test: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Processor {
    /// 64-bit ARM.
    Aarch64,
}

const TARGET: &str = "aarch64-unknown-linux-gnu";

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let Processor::Aarch64 = options.processor;
    run_command(Command::new("rustup").args(["target", "add", TARGET]))?;
    for mut command in commands(workspace, options.test) {
        run_command(&mut command)?;
    }
    Ok(())
}

/// The commands, once the target is installed.
fn commands(workspace: &Workspace, test: bool) -> Vec<Command> {
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
