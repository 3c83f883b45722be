//! What the programs that check things on a GPU share: running checks, launching, random numbers.

use std::cell::Cell;
use std::error::Error;
use std::fmt::Display;
use std::process::ExitCode;

use gpulower::runtime::{Arguments, Function, LaunchShape, Stream};

/// What a check found out, in a few words; or what is wrong.
pub type Outcome = Result<String, Box<dyn Error>>;

/// Ends a check unless something holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)*) => {
        if !$condition {
            return Err(format!($($text)*).into());
        }
    };
}

/// One thread.
pub const ONE: LaunchShape = LaunchShape::new([1, 1, 1], [1, 1, 1]);

/// Runs the checks whose names have one of these parts, or all of them, with a line for each. What one leaves behind must not
/// have lost the context: `synchronize` tells.
pub fn run<G, E: Display>(
    gpu: &G,
    checks: impl IntoIterator<Item = (&'static str, fn(&G) -> Outcome)>,
    only: &[String],
    synchronize: impl Fn(&G) -> Result<(), E>,
) -> ExitCode {
    let (mut run, mut failed) = (0, 0);
    for (name, check) in checks {
        if !only.is_empty() && !only.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        run += 1;
        match check(gpu) {
            Ok(detail) => println!("ok     {name:<32} {detail}"),
            Err(error) => {
                failed += 1;
                println!("FAILED {name:<32} {error}");
            }
        }
        // Nothing here loses the context on purpose, and nothing brings it back.
        if let Err(error) = synchronize(gpu) {
            println!("FAILED {name:<32} and nothing else can be checked: {error}");
            return ExitCode::FAILURE;
        }
    }
    println!("{} of {run} checks are right", run - failed);
    match failed {
        0 if run > 0 => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Prints what a child process found out, and gives its status.
pub fn ended(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(detail) => {
            println!("{detail}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Checks a launch, and enqueues it.
pub fn launch(
    function: &Function,
    shape: &LaunchShape,
    arguments: &Arguments,
    stream: &Stream,
) -> Result<(), Box<dyn Error>> {
    let launch = function.launch(shape, arguments)?;
    // SAFETY: the kernels of these programs stay within the buffers that their checks give them, which live until the results
    // are read; those that do not are given addresses that are no memory at all.
    #[allow(unsafe_code, reason = "what a kernel does is the caller's word")]
    unsafe { launch.enqueue(stream) }?;
    Ok(())
}

/// Random numbers by xorshift64, other ones at each start.
pub struct Random(Cell<u64>);

impl Random {
    /// From the clock.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
        Ok(Self(Cell::new(clock.as_nanos() as u64 | 1)))
    }

    /// What the next number comes from.
    pub fn seed(&self) -> u64 {
        self.0.get()
    }

    /// The next number.
    pub fn next(&self) -> u64 {
        let mut next = self.0.get();
        next ^= next << 13;
        next ^= next >> 7;
        next ^= next << 17;
        self.0.set(next);
        next
    }
}
