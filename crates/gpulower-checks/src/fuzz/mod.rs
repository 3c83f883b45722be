//! Carries out inputs that `cargo xtask fuzz` made, many in one process, so that the death of the process is noticed.
//!
//! ```sh
//! cargo run -p gpulower-checks -- fuzz                    # inputs from the standard input, as xtask/src/fuzz/ writes them
//! cargo run -p gpulower-checks -- fuzz --options          # the options that inputs may have
//! cargo run -p gpulower-checks -- fuzz target/fuzz/found/mlir-nvidia-17   # one that was kept, once more
//! ```
//!
//! An input is a line of JSON ([`job::Job`]) and the bytes of its files; the answer is a line of JSON ([`job::Answer`]).
//! Everything runs on a thread with Rust's usual small stack, as it would in a server.

mod job;
mod valid;
mod workers;

use std::{
    env,
    error::Error,
    fs,
    io::{self, BufRead, Write},
    path::Path,
    thread,
};

use gpulower::{Search, options::DESCRIPTIONS, passes, toolkit::cache_directory};
use serde_json::json;

use self::{
    job::{Job, Outcome},
    valid::Before,
    workers::Workers,
};

/// After so many inputs, and at its end, this process compiles the valid kernel once more. After a crash it does at once.
const EVERY: u32 = 64;

pub fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    if let Some(served) = workers::serve_if_asked() {
        return Ok(served?);
    }
    passes::register(passes::Environment {
        // Every input is to be compiled.
        cache: None,
        search: Search::from_variables(|name| env::var_os(name)),
        cache_directory: cache_directory(|name| env::var_os(name)),
    });
    let kept = env::args_os().nth(2);
    if kept.as_deref().is_some_and(|word| word == "--options") {
        return list_options();
    }
    let worker = thread::spawn(move || match kept {
        Some(folder) => one(Path::new(&folder)),
        None => all(&mut io::stdin().lock()),
    });
    match worker.join() {
        Ok(result) => result,
        // What panicked has been printed.
        Err(_) => std::process::exit(101),
    }
}

/// The options that inputs may have: `xtask` builds nothing of the library's.
fn list_options() -> Result<(), Box<dyn Error + Send + Sync>> {
    let list: Vec<serde_json::Value> = DESCRIPTIONS
        .iter()
        .map(|option| {
            json!({
                "name": option.name(),
                "examples": option.examples,
                "only": option.rules.only.map(|(vendor, _)| vendor.to_string()),
                "passes": option.passes,
                "is_the_callers": option.rules.is_the_callers,
            })
        })
        .collect();
    serde_json::to_writer(io::stdout(), &list)?;
    Ok(())
}

/// Carries out inputs until there are no more.
fn all(input: &mut impl BufRead) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut workers = Workers::new()?;
    let before = Before::now();
    for number in 1_u32.. {
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            break;
        }
        let job: Job = serde_json::from_str(&line)?;
        let mut files = Vec::new();
        for file in &job.files {
            let mut bytes = vec![0; file.bytes];
            input.read_exact(&mut bytes)?;
            files.push(bytes);
        }
        answer(&job, &files, &mut workers, &before, number % EVERY == 0)?;
    }
    before.differs().map_or(Ok(()), |difference| Err(difference.into()))
}

/// Carries out an input that was kept in a folder.
fn one(folder: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
    let job: Job = serde_json::from_slice(&fs::read(folder.join("job.json"))?)?;
    let files = job
        .files
        .iter()
        .map(|file| fs::read(folder.join(&file.name)))
        .collect::<io::Result<Vec<_>>>()?;
    answer(&job, &files, &mut Workers::new()?, &Before::now(), true)
}

fn answer(
    job: &Job,
    files: &[Vec<u8>],
    workers: &mut Workers,
    before: &Before,
    compare: bool,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut answer = job.run(files, workers);
    if (compare || answer.outcome == Outcome::Crashed)
        && let Some(difference) = before.differs()
    {
        answer.message = difference;
    }
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, &answer)?;
    output.write_all(b"\n")?;
    Ok(output.flush()?)
}
