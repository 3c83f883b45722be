//! `cargo xtask soak`: compiling for a long time, with `gpulower-checks soak`.

use std::process::Command;

use clap::Args;

use crate::command::{Failure, run as run_command};
use crate::env::Workspace;
use crate::setup::{self, Purpose};

#[derive(Debug, Args)]
pub struct Options {
    /// Seconds for each of the runs.
    #[arg(long, default_value_t = 600)]
    time: u64,
    /// Threads of the run with failures.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..))]
    threads: u64,
    /// Do not look for missing packages and wheels first.
    #[arg(long)]
    no_setup: bool,
}

/// Memory while compiling in process, the same with a worker, and failures on many threads, for a time each.
pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    if !options.no_setup {
        setup::run(workspace, Purpose::Test)?;
    }
    run_command(&mut workspace.build_everything())?;
    let seconds = options.time.to_string();
    let threads = options.threads.to_string();
    for arguments in [
        vec!["memory", "--seconds", &seconds],
        vec!["memory", "--seconds", &seconds, "--isolation", "worker"],
        vec!["mixed", "--seconds", &seconds, "--threads", &threads],
    ] {
        run_command(&mut soak(workspace, &arguments)?)?;
    }
    Ok(())
}

/// The form for the test command: a fixed number of compilations, and nothing that depends on the clock.
pub fn short(workspace: &Workspace) -> Result<Vec<Command>, Failure> {
    Ok(vec![
        workspace.build_everything(),
        soak(workspace, &["memory", "--compiles", "600"])?,
        soak(workspace, &["mixed", "--compiles", "200", "--threads", "8"])?,
    ])
}

fn soak(workspace: &Workspace, arguments: &[&str]) -> Result<Command, Failure> {
    let mut command = workspace.command(workspace.binaries()?.join("gpulower-checks"));
    command.arg("soak").args(arguments);
    Ok(command)
}
