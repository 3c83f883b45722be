//! `cargo xtask fuzz`: damaged inputs of every kind through the whole pipeline, in a process that may die of them.
//!
//! An input is made from a seed, a surface and a number alone, so that a run can be repeated, and one input by itself.
//! `gpulower-checks fuzz` carries them out, a thousand in each process.

mod driver;
mod mutate;
mod operations;
mod seeds;
mod surface;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use self::driver::{Driver, Outcome};
use self::seeds::Seeds;
use self::surface::Input;
pub use self::surface::Surface;
use crate::command::{Context, Failure, run as run_command};
use crate::env::Workspace;

#[derive(Debug, Args)]
pub struct Options {
    /// How long to go on; inputs that have begun are finished.
    #[arg(long, value_name = "SECONDS", default_value = "60", conflicts_with = "inputs")]
    time: u64,
    /// How many inputs to try of each surface, however long it takes.
    #[arg(long, value_name = "N")]
    inputs: Option<u64>,
    /// Which ways in; all of them when none is named.
    #[arg(long, value_name = "NAME", value_enum)]
    surface: Vec<Surface>,
    /// Other numbers make other inputs.
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// Compile in worker processes. An input that ends its worker is no failure; the next kernel has to be as always.
    #[arg(long)]
    workers: bool,
    /// An option for every compilation, on top of those that an input has, such as ftz=true; may be repeated.
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = name_and_value)]
    options: Vec<(String, String)>,
    /// The number of the first input.
    #[arg(long, value_name = "N", default_value = "0")]
    first: u64,
    /// Where seeds are made and what is found is kept.
    #[arg(long, value_name = "DIR", default_value = "target/fuzz")]
    folder: PathBuf,
    /// Use the programs, which lie beside this one, and the seeds as they are.
    #[arg(long)]
    no_build: bool,
    /// A driver of another build, as one with a sanitizer: it has no limit of address space.
    #[arg(long, value_name = "PROGRAM")]
    driver: Option<PathBuf>,
    /// How many inputs to try at once, each in a process of its own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    jobs: u64,
}

pub fn run(workspace: &Workspace, options: &Options) -> Result<(), Failure> {
    let folder = workspace.root.join(&options.folder);
    fs::create_dir_all(&folder).context(|| format!("create {}", folder.display()))?;
    let programs = match options.no_build {
        // There may be no cargo to ask.
        true => std::env::current_exe()
            .context(|| "find this program".to_owned())?
            .with_file_name(""),
        false => {
            run_command(&mut workspace.build_everything())?;
            workspace.binaries()?
        }
    };
    let (driver, is_limited) = match &options.driver {
        Some(driver) => (workspace.root.join(driver), false),
        None => (programs.join("gpulower-checks"), true),
    };
    let seeds = Seeds::gather(workspace, &programs, &folder, options.no_build)?;
    let surfaces = surfaces(&options.surface, options.workers)?;
    let begin = Instant::now();
    let mut tally = Tally::default();
    for (surface, place) in surfaces.iter().zip(1u32..) {
        // One surface after the other, each with processes of its own: what one leaves broken is not another's.
        let end = Duration::from_secs(options.time) * place / surfaces.len().try_into().unwrap_or(1);
        let job = |job: u64| -> Result<Tally, Failure> {
            let mut driver = Driver::new(
                workspace,
                driver.clone(),
                is_limited,
                folder.join(format!("driver-{job}.log")),
            );
            let mut tally = Tally::default();
            for number in (options.first + job..).step_by(usize::try_from(options.jobs).unwrap_or(usize::MAX)) {
                let over = match options.inputs {
                    Some(inputs) => number >= options.first + inputs,
                    None => begin.elapsed() >= end,
                };
                if over {
                    break;
                }
                let input = surface
                    .input(&seeds, options.seed, number)
                    .with_options(&options.options);
                let input = if options.workers { input.in_workers() } else { input };
                let outcome = driver.run(&input)?;
                if outcome.is_noteworthy() {
                    let kept = keep(&folder, *surface, options.seed, number, &input, &outcome)?;
                    println!("{}", outcome.described(&kept));
                }
                tally.count(*surface, &outcome);
            }
            driver.end()?;
            Ok(tally)
        };
        let job = &job;
        let tallies: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..options.jobs)
                .map(|number| scope.spawn(move || job(number)))
                .collect();
            threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
        });
        for one in tallies {
            tally.add(&one.map_err(|_| Failure::new("a thread that fuzzes panicked"))??);
        }
    }
    println!(
        "\nseed {}, first input {}, {} s",
        options.seed,
        options.first,
        begin.elapsed().as_secs()
    );
    print!("{tally}");
    match tally.findings() {
        0 => Ok(()),
        findings => Err(Failure::new(format!(
            "{findings} inputs ended the process, hung, or met a bug; they are kept in {}/found",
            options.folder.display()
        ))),
    }
}

/// The ways in that were asked for. Without workers these are all, else those that compile and can end the process.
fn surfaces(named: &[Surface], workers: bool) -> Result<Vec<Surface>, Failure> {
    let all = Surface::value_variants();
    let possible: Vec<Surface> = all.iter().copied().filter(|one| !workers || one.compiles()).collect();
    if named.is_empty() {
        return Ok(possible);
    }
    match named.iter().find(|one| !possible.contains(one)) {
        Some(other) => Err(Failure::new(format!(
            "--workers is about compilations, and the surface {} is something else: leave one of the two out",
            other.name()
        ))),
        None => Ok(named.to_vec()),
    }
}

fn name_and_value(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| "expected NAME=VALUE".to_owned())
}

impl Outcome {
    const fn is_noteworthy(&self) -> bool {
        !matches!(self, Self::Accepted | Self::Refused(_))
    }

    fn described(&self, kept: &Path) -> String {
        let (what, details) = match self {
            Self::Accepted => ("accepted", ""),
            Self::Refused(stage) => ("refused", stage.as_str()),
            Self::Internal(message) => ("internal error", message.as_str()),
            Self::Printed(text) => ("printed", text.trim()),
            Self::Crashed(message) => ("crashed, and went on", message.as_str()),
            Self::Lost(message) => ("worker lost", message.as_str()),
            Self::Stopped => ("stopped at its time limit", ""),
            Self::Died(status) => ("died", status.as_str()),
            Self::Hung => ("hung", ""),
        };
        let short: String = details.chars().take(300).collect();
        format!("{what}: {}: {short}", kept.display())
    }
}

/// Keeps an input with what repeats it.
fn keep(
    folder: &Path,
    surface: Surface,
    seed: u64,
    number: u64,
    input: &Input,
    outcome: &Outcome,
) -> Result<PathBuf, Failure> {
    let place = folder.join(format!("found/{}-{seed}-{number}", surface.name()));
    let write = |name: &str, bytes: &[u8]| {
        let path = place.join(name);
        fs::write(&path, bytes).context(|| format!("write {}", path.display()))
    };
    fs::create_dir_all(&place).context(|| format!("create {}", place.display()))?;
    write("job.json", input.job.to_string().as_bytes())?;
    for (name, bytes) in &input.files {
        write(name, bytes)?;
    }
    let workers = if input.job["workers"] == true { " --workers" } else { "" };
    let repeat = format!(
        "{}\n\ncargo run -p gpulower-checks -- fuzz {}\n\
         cargo xtask fuzz{workers} --surface {} --seed {seed} --first {number} --inputs 1\n",
        outcome.described(&place),
        place.display(),
        surface.name(),
    );
    write("README", repeat.as_bytes())?;
    Ok(place)
}

/// How many inputs of each surface came to what.
#[derive(Debug, Default)]
struct Tally {
    surfaces: BTreeMap<Surface, Counts>,
    /// In which stages inputs were refused.
    stages: BTreeMap<Surface, BTreeMap<String, u64>>,
}

/// Inputs by how they ended.
type Counts = [u64; ENDS.len()];

/// How an input ends: the columns of the table, and whether it is a finding. What LLVM and NVIDIA's libraries print by
/// themselves is shown, and is none. Nor is a crash that was contained, or the end of a worker.
const ENDS: [(&str, bool); 9] = [
    ("accepted", false),
    ("refused", false),
    ("internal", true),
    ("printed", false),
    ("crashed", false),
    ("lost", false),
    ("stopped", false),
    ("died", true),
    ("hung", true),
];

impl Tally {
    fn count(&mut self, surface: Surface, outcome: &Outcome) {
        if let Outcome::Refused(stage) = outcome {
            let stages = self.stages.entry(surface).or_default();
            *stages.entry(stage.clone()).or_default() += 1;
        }
        let end = match outcome {
            Outcome::Accepted => 0,
            Outcome::Refused(_) => 1,
            Outcome::Internal(_) => 2,
            Outcome::Printed(_) => 3,
            Outcome::Crashed(_) => 4,
            Outcome::Lost(_) => 5,
            Outcome::Stopped => 6,
            Outcome::Died(_) => 7,
            Outcome::Hung => 8,
        };
        self.surfaces.entry(surface).or_default()[end] += 1;
    }

    fn add(&mut self, other: &Self) {
        for (surface, counts) in &other.surfaces {
            let sums = self.surfaces.entry(*surface).or_default();
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        for (surface, stages) in &other.stages {
            let sums = self.stages.entry(*surface).or_default();
            for (stage, count) in stages {
                *sums.entry(stage.clone()).or_default() += count;
            }
        }
    }

    fn findings(&self) -> u64 {
        let counted = self.surfaces.values().flat_map(|counts| counts.iter().zip(ENDS));
        counted
            .filter(|(_, (_, is_finding))| *is_finding)
            .map(|(count, _)| count)
            .sum()
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:<14} {:>8}", "surface", "tried")?;
        for (end, _) in ENDS {
            write!(formatter, " {end:>8}")?;
        }
        for (surface, counts) in &self.surfaces {
            write!(formatter, "\n{:<14} {:>8}", surface.name(), counts.iter().sum::<u64>())?;
            for count in counts {
                write!(formatter, " {count:>8}")?;
            }
        }
        writeln!(formatter)?;
        writeln!(formatter, "\nrefused in the stages")?;
        for (surface, stages) in &self.stages {
            let stages: Vec<String> = stages.iter().map(|(stage, count)| format!("{stage} {count}")).collect();
            writeln!(formatter, "{:<14} {}", surface.name(), stages.join(", "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_hangs_and_bugs_are_findings() {
        let mut tally = Tally::default();
        for outcome in [
            Outcome::Accepted,
            Outcome::Refused("input".to_owned()),
            Outcome::Internal(String::new()),
            Outcome::Printed(String::new()),
            Outcome::Crashed(String::new()),
            Outcome::Lost(String::new()),
            Outcome::Stopped,
            Outcome::Died(String::new()),
            Outcome::Hung,
        ] {
            tally.count(Surface::Ptx, &outcome);
        }
        assert_eq!(tally.findings(), 3);
        let one = tally.to_string();
        let mut twice = Tally::default();
        twice.add(&tally);
        assert_eq!(twice.to_string(), one);
        twice.add(&tally);
        assert_eq!(twice.findings(), 6);
        assert!(twice.to_string().contains("input 2"), "{twice}");
        let table = tally.to_string();
        let row = table.lines().nth(1).expect("a row");
        let cells: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(cells, ["ptx", "9", "1", "1", "1", "1", "1", "1", "1", "1", "1"]);
    }

    #[test]
    fn workers_are_for_what_compiles() {
        let all = surfaces(&[], false).unwrap();
        assert!(all.contains(&Surface::Containers) && all.contains(&Surface::Bitcode));
        let compiling = surfaces(&[], true).unwrap();
        assert!(compiling.contains(&Surface::Bitcode) && !compiling.contains(&Surface::Passes));
        assert_eq!(surfaces(&[Surface::Ptx], true).unwrap(), [Surface::Ptx]);
        let refusal = surfaces(&[Surface::Ptx, Surface::Passes], true)
            .unwrap_err()
            .to_string();
        assert!(refusal.contains("the surface passes is something else"), "{refusal}");
    }
}
