//! `cargo xtask mutants`: whether the fast tests notice when the code that they are for is changed (`cargo-mutants`).

use std::collections::BTreeSet;
use std::fs;

use clap::Args;

use crate::command::{Context, Failure, shown, succeeds};
use crate::env::Workspace;

/// What builds without LLVM, in seconds.
const PACKAGES: [&str; 2] = ["gpulower-image", "gpulower-cache"];

/// Of the mutants that compile, so many of 100 are to be noticed.
const EXPECTED: usize = 90;

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

/// Tests that are left out, by a part of their names: they start LLVM's tools hundreds of times for the sake of tables, or go
/// through every damage of a file for the sake of panics. They are 9 of 10 seconds.
const SLOW: [&str; 7] = [
    "llvm_tests",
    "truncat",
    "damaged_files",
    "damaged_parts",
    "every_processor",
    "nothing_panics",
    "share_one_fat_binary",
];

/// What is run with each mutant: the unit tests, and for those that these miss, the tests with other people's tools as well.
const ROUNDS: [&str; 2] = ["--lib", "--tests"];

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    if !succeeds(workspace.cargo("mutants").arg("--version")) {
        return Err(Failure::new(
            "cargo-mutants is missing: cargo install --locked cargo-mutants",
        ));
    }
    let folder = workspace.root.join("target/mutants");
    fs::create_dir_all(&folder).context(|| format!("create {}", folder.display()))?;
    // What the unit tests miss is tried again, by name.
    let (mut noticed, mut missed, mut unviable) = (0, BTreeSet::<String>::new(), 0);
    for tests in ROUNDS {
        let mut command = workspace.cargo("mutants");
        for package in PACKAGES {
            command.args(["--package", package]);
        }
        command.args("--no-shuffle --profile mutants --jobs".split(' '));
        command.arg(options.jobs.to_string()).arg("--output").arg(&folder);
        if tests == ROUNDS[0] {
            let shard = format!("{}/{}", options.sample, options.one_of);
            command.args(["--shard", &shard, "--sharding", "round-robin"]);
            for file in &options.file {
                command.args(["--file", file]);
            }
        }
        for name in &missed {
            command.arg("--re").arg(format!("^{}$", escaped(name)));
            // For cargo-mutants 27.1 no pattern leaves out a field: those of other files are not tried, at least.
            command.args(["--file", name.split(':').next().unwrap_or_default()]);
        }
        if options.jobs == 1 {
            // The dependencies are the same each time.
            command.env("CARGO_TARGET_DIR", folder.join("target"));
        }
        command.args(["--", tests, "--"]);
        for name in SLOW {
            command.args(["--skip", name]);
        }
        let words = shown(&command);
        // Its status says whether any was missed; which is in its report.
        let status = command.status().context(|| format!("run `{words}`"))?;
        let report = folder.join("mutants.out/outcomes.json");
        let text = fs::read_to_string(&report).context(|| format!("read {} ({status})", report.display()))?;
        let report: serde_json::Value = serde_json::from_str(&text).context(|| format!("read {}", report.display()))?;
        for outcome in report["outcomes"].as_array().into_iter().flatten() {
            let name = outcome["scenario"]["Mutant"]["name"].as_str();
            // What a round does not report stays as it was.
            let Some(name) = name.filter(|name| tests == ROUNDS[0] || missed.remove(*name)) else {
                continue;
            };
            match outcome["summary"].as_str() {
                Some("CaughtMutant" | "Timeout") => noticed += 1,
                Some("MissedMutant") => _ = missed.insert(name.to_owned()),
                _ => unviable += 1,
            }
        }
        if missed.is_empty() {
            break;
        }
    }
    for name in &missed {
        println!("not noticed: {name}");
    }
    let viable = noticed + missed.len();
    println!("{noticed} of {viable} mutants that compile were noticed; {unviable} do not compile");
    if viable == 0 || noticed * 100 < viable * EXPECTED {
        return Err(Failure::new(format!(
            "fewer than {EXPECTED} of 100 mutants were noticed"
        )));
    }
    Ok(())
}

/// A pattern that matches a text alone.
fn escaped(text: &str) -> String {
    let mut pattern = String::new();
    for character in text.chars() {
        if r"\.+*?()|[]{}^$#&-~".contains(character) {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}
