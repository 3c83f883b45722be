//! Compiles for a long time, and looks whether memory grows, results change or messages get mixed up.
//!
//! ```sh
//! cargo xtask soak                                            # ten minutes of each
//! cargo run -p gpulower-checks -- soak memory --compiles 10000         # one thread: memory, threads, files
//! cargo run -p gpulower-checks -- soak mixed --seconds 600 --threads 8 # failures among good kernels, in process and in workers
//! ```
//!
//! The exit status is 1 when something is wrong. The program is its own worker: see `gpulower::worker`.

mod cases;
mod memory;
mod mixed;

use std::{
    env,
    error::Error,
    time::{Duration, Instant},
};

use gpulower::{Compiler, CompilerBuilder, Isolation, Options, Search, Toolkit, Worker, worker};

/// When a run is over.
#[derive(Clone, Copy, Debug)]
enum Budget {
    Compiles(usize),
    Until(Instant),
}

impl Budget {
    fn is_spent(self, compiles: usize) -> bool {
        match self {
            Self::Compiles(most) => compiles >= most,
            Self::Until(end) => Instant::now() >= end,
        }
    }
}

const USAGE: &str =
    "usage: soak memory|mixed [--compiles N | --seconds N] [--threads N] [--isolation in-process|worker]";

pub fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args().skip(2);
    let what = arguments.next().ok_or(USAGE)?;
    if what == "worker" {
        return Ok(worker::serve()?);
    }
    let mut budget = Budget::Compiles(10_000);
    let mut threads = 8;
    let mut options = Options::default();
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match name.as_str() {
            "--compiles" => budget = Budget::Compiles(value.parse()?),
            "--seconds" => budget = Budget::Until(Instant::now() + Duration::from_secs(value.parse()?)),
            "--threads" => threads = value.parse()?,
            "--isolation" => options.set("isolation", &value)?,
            _ => return Err(USAGE.into()),
        }
    }
    match what.as_str() {
        "memory" => memory::run(&builder(options)?.threads(1).build(), budget),
        "mixed" => {
            let directory = tempfile::tempdir()?;
            let with = |isolation| -> Result<Compiler, Box<dyn Error>> {
                let options = Options {
                    isolation,
                    ..options.clone()
                };
                let builder = builder(options)?.threads(threads);
                // nvPTXCompiler is used only where its shared object can be kept.
                Ok(builder.cache_directory(directory.path().to_owned()).build())
            };
            mixed::run(&with(Isolation::InProcess)?, &with(Isolation::Worker)?, threads, budget)
        }
        _ => Err(USAGE.into()),
    }
}

fn builder(options: Options) -> Result<CompilerBuilder, Box<dyn Error>> {
    let mut worker = Worker::program(env::current_exe()?)?
        .arguments(["soak", "worker"])
        .requests(200);
    if let Some(path) = env::var_os("LD_LIBRARY_PATH") {
        worker = worker.environment("LD_LIBRARY_PATH", path);
    }
    Ok(Compiler::builder()
        .options(options)
        .toolkit(Toolkit::discover(&Search::from_variables(|name| env::var_os(name))))
        .worker(worker))
}
