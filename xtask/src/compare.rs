//! `cargo xtask compare`: compile times beside those of every alternative, by `scripts/compare/compare.py`.

use std::path::PathBuf;
use std::process::Command;

use clap::Args;

use crate::command::{Failure, run as run_command};
use crate::env::Workspace;

#[derive(Debug, Args)]
pub struct Options {
    /// libnvrtc.so.13 to compare with, from NVIDIA's wheel nvidia-cuda-nvrtc.
    #[arg(long)]
    nvrtc: Option<PathBuf>,
    /// How often everything is run.
    #[arg(long, default_value_t = 9)]
    rounds: u32,
    /// A file for the tables, which has marks for them.
    #[arg(long, default_value = "docs/performance.md")]
    output: PathBuf,
    /// Parts to measure: start, one_module, warm, sixty_four, growth, large, sizes; all of them when none is named.
    #[arg(long, num_args = 1..)]
    only: Vec<String>,
}

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let mut build = workspace.cargo("build");
    build.args(["--release", "--package", "gpulower-cli", "--package", "gpulower-checks"]);
    run_command(&mut build)?;
    let programs = workspace.binaries()?;
    let release = programs.with_file_name("release");
    let mut command: Command = workspace.command("python3");
    command
        .arg(workspace.root.join("scripts/compare/compare.py"))
        .arg("--gpulower")
        .arg(release.join("gpulower"))
        .arg("--measure")
        .arg(release.join("gpulower-checks"))
        .arg("--cuda")
        .arg(workspace.wheel_cuda())
        .arg("--llvm")
        .arg(&workspace.llvm)
        .arg("--output")
        .arg(&options.output)
        .args(["--rounds", &options.rounds.to_string()]);
    if let Some(nvrtc) = &options.nvrtc {
        command.arg("--nvrtc").arg(nvrtc);
    }
    if !options.only.is_empty() {
        command.arg("--only").args(&options.only);
    }
    run_command(&mut command)
}
