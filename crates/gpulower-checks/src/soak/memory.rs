//! One thread: memory, threads and files of this process, whether it compiles here or in a worker.

use std::{error::Error, fs};

use gpulower::Compiler;

use super::{
    Budget,
    cases::{BAD, GOOD},
};

/// Lines of the table.
const SAMPLES: usize = 20;

/// What a process holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    resident_kib: u64,
    threads: u64,
    files: usize,
}

impl Held {
    fn of(process: &str) -> Result<Self, Box<dyn Error>> {
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let field = |name: &str| -> Result<u64, Box<dyn Error>> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next());
            Ok(number
                .ok_or_else(|| format!("no {name} in /proc/{process}/status"))?
                .parse()?)
        };
        Ok(Self {
            resident_kib: field("VmRSS:")?,
            threads: field("Threads:")?,
            files: fs::read_dir(format!("/proc/{process}/fd"))?.count(),
        })
    }
}

/// Compiles one kernel after the other, with a failure now and then that leaks nothing by design, and prints what is held.
pub fn run(compiler: &Compiler, budget: Budget) -> Result<(), Box<dyn Error>> {
    // LLVM's fatal errors leak about 0.5 MB each, which docs/architecture.md says: they would hide everything else.
    let failures: Vec<_> = BAD.iter().filter(|case| case.kind != "cannot be selected").collect();
    let cases: Vec<_> = GOOD.iter().chain(failures).collect();
    let expected: Vec<_> = cases.iter().map(|case| case.compile(compiler, "first")).collect();
    let mut samples = vec![Held::of("self")?];
    println!("compiles  resident (MiB)  threads  files");
    let mut compiles = cases.len();
    let mut next_sample = 0;
    let step = match budget {
        Budget::Compiles(most) => most.div_ceil(SAMPLES).max(1),
        Budget::Until(_) => 500,
    };
    while !budget.is_spent(compiles) {
        let index = compiles % cases.len();
        if let (Some(case), Some(expected)) = (cases.get(index), expected.get(index))
            && case.compile(compiler, "first") != *expected
        {
            return Err(format!("compile {compiles} gave something else than the first time ({case:?})").into());
        }
        compiles += 1;
        if compiles >= next_sample {
            next_sample = compiles + step;
            let held = Held::of("self")?;
            println!(
                "{compiles:8}  {:14.1}  {:7}  {:5}",
                held.resident_kib as f64 / 1024.0,
                held.threads,
                held.files
            );
            samples.push(held);
        }
    }
    let last = Held::of("self")?;
    // Warm after a quarter; too few samples tell nothing.
    let warm = *samples.get(samples.len() / 4).unwrap_or(&last);
    let grown = last.resident_kib.saturating_sub(warm.resident_kib);
    println!("{compiles} compiles; since a quarter of them: {grown} KiB more");
    // A thread or two may be about to end.
    if last.threads > warm.threads + 2 || last.files > warm.files + 2 {
        return Err(format!("threads or files were left behind: {warm:?}, then {last:?}").into());
    }
    // What the allocator keeps varies by some MiB.
    let allowed = (warm.resident_kib / 10).max(32 << 10);
    if grown > allowed {
        return Err(format!("memory grew by {grown} KiB; {allowed} KiB are accepted").into());
    }
    Ok(())
}
