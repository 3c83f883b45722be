//! `cargo xtask mutants`: whether the fast tests notice when the code that they are for is changed (`cargo-mutants`).

use std::fs;

use clap::Args;

use crate::command::{Context, Failure, shown, succeeds};
use crate::env::Workspace;

/// What builds without LLVM, in seconds.
const PACKAGES: [&str; 2] = ["gpulower-image", "gpulower-cache"];

/// Of the mutants that compile, so many of 100 are to be noticed.
const EXPECTED: u64 = 90;

#[derive(Debug, Args)]
pub struct Options {
    /// Try one of so many mutants, evenly spread.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    one_of: u32,
    /// Which of these: another number below N is another sample.
    #[arg(long, value_name = "K", default_value_t = 0)]
    sample: u32,
    /// Mutants of files whose path matches a pattern alone.
    #[arg(long, value_name = "GLOB")]
    file: Vec<String>,
    /// How many to try at once.
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: u32,
}

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    if !succeeds(workspace.cargo("mutants").arg("--version")) {
        return Err(Failure::new(
            "cargo-mutants is missing: cargo install --locked cargo-mutants",
        ));
    }
    let folder = workspace.root.join("target/mutants");
    fs::create_dir_all(&folder).context(|| format!("create {}", folder.display()))?;
    let mut command = workspace.cargo("mutants");
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    for file in &options.file {
        command.args(["--file", file]);
    }
    command
        .args(["--shard", &format!("{}/{}", options.sample, options.one_of)])
        .args(["--sharding", "round-robin", "--no-shuffle"])
        .args(["--jobs", &options.jobs.to_string(), "--output"])
        .arg(&folder)
        // The unit tests of the crates themselves; those that start other programs are slow, or far away.
        .args(["--", "--lib"])
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    let words = shown(&command);
    // Its status says whether any was missed; how many is in its report.
    let status = command.status().context(|| format!("run `{words}`"))?;
    let report = folder.join("mutants.out/outcomes.json");
    let text = fs::read_to_string(&report).context(|| format!("read {} ({status})", report.display()))?;
    let report: serde_json::Value = serde_json::from_str(&text).context(|| format!("read {}", report.display()))?;
    let count = |name: &str| report[name].as_u64().unwrap_or_default();
    let noticed = count("caught") + count("timeout");
    let viable = noticed + count("missed");
    println!(
        "{noticed} of {viable} mutants that compile were noticed; {} do not compile",
        count("unviable")
    );
    if viable == 0 || noticed * 100 < viable * EXPECTED {
        return Err(Failure::new(format!(
            "fewer than {EXPECTED} of 100 mutants were noticed; mutants.out/missed.txt in {} has the others",
            folder.display()
        )));
    }
    Ok(())
}
