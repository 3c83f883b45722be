//! `cargo xtask growth`: how time grows with the input, with `gpulower-checks growth`.

use clap::Args;

use crate::command::{Failure, run as run_command};
use crate::env::Workspace;
use crate::setup::{self, Purpose};

#[derive(Debug, Args)]
pub struct Options {
    /// Families of inputs whose name has this word in it.
    #[arg(long)]
    only: Option<String>,
    /// The target and the form of output; otherwise `sm_90:cubin` and `gfx942:hsaco`.
    #[arg(long)]
    target: Option<String>,
    /// The least time of so many counts.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// Do not look for missing packages and wheels first.
    #[arg(long)]
    no_setup: bool,
}

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    if !options.no_setup {
        setup::run(workspace, Purpose::Test)?;
    }
    run_command(&mut workspace.build_everything())?;
    let mut command = workspace.command(workspace.binaries()?.join("gpulower-checks"));
    command.args(["growth", "--rounds", &options.rounds.to_string()]);
    for (name, value) in [("--only", &options.only), ("--target", &options.target)] {
        if let Some(value) = value {
            command.args([name, value]);
        }
    }
    run_command(&mut command)
}
