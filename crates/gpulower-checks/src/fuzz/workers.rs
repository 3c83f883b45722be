//! Inputs that are compiled in worker processes. One that ends its worker costs itself and nothing else: this process goes
//! on, and what is compiled next is what it would be without.

use std::{collections::HashMap, env};

use gpulower::{
    Compiler, Error, ErrorKind, Failure, Isolation, Options, Search, Toolkit, Worker, toolkit::cache_directory, worker,
};

use super::{
    job::{Answer, Job, Outcome, Refusal},
    valid::{Made, difference},
};

/// What makes this program a worker.
const WORKER: &str = "--worker";

/// Serves as a worker if this process was started as one.
pub fn serve_if_asked() -> Option<std::io::Result<()>> {
    (env::args_os().nth(2)? == WORKER).then(worker::serve)
}

/// After so many inputs that were compiled or refused the valid kernel is compiled once more. After any other it is at once.
const EVERY: u32 = 8;

/// What stays from one input to the next.
pub struct Workers {
    /// What all inputs are compiled by, with options of their own: as a server does it.
    compiler: Compiler,
    /// What the valid kernel is without workers, by options, targets and form of output.
    valid: HashMap<String, Made>,
    /// Inputs since the valid kernel was compiled.
    since: u32,
}

impl Workers {
    pub fn new() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let variable = |name: &str| env::var_os(name);
        let mut worker = Worker::program(env::current_exe()?)?.arguments(["fuzz", WORKER]);
        if let Some(folders) = variable("LD_LIBRARY_PATH") {
            worker = worker.environment("LD_LIBRARY_PATH", folders);
        }
        let builder = Compiler::builder()
            .threads(1)
            .toolkit(Toolkit::discover(&Search::from_variables(variable)))
            .worker(worker);
        let builder = match cache_directory(variable) {
            Some(directory) => builder.cache_directory(directory),
            None => builder,
        };
        Ok(Self {
            compiler: builder.build(),
            valid: HashMap::new(),
            since: 0,
        })
    }

    pub fn compiler(&self, options: Options) -> Compiler {
        self.compiler.with_options(options)
    }

    /// Carries an input out in a worker, and then a valid kernel: its bytes, or the words of its refusal, have to be those
    /// that it has in this process.
    pub fn compile(&mut self, job: &Job, files: &[Vec<u8>]) -> Result<Answer, Refusal> {
        let targets = job.targets()?;
        let emit = job.emit()?;
        let options = job.options(files)?;
        let (name, bytes) = job.input(files);
        let compiler = self.compiler(options.clone());
        let mut answer = match compiler.compile_source(name, bytes, &targets, emit) {
            Ok(made) => job.read_again(&made).map_or_else(Answer::from, |()| Answer::accepted()),
            Err(failure) => of_failure(failure),
        };
        self.since += 1;
        if matches!(answer.outcome, Outcome::Accepted | Outcome::Refused) && self.since < EVERY {
            return Ok(answer);
        }
        self.since = 0;
        let alone = Options {
            libraries: Vec::new(),
            ..options
        };
        let here = self.compiler(Options {
            isolation: Isolation::InProcess,
            time_limit: None,
            memory_limit: None,
            ..alone.clone()
        });
        let key = format!("{} {} {:?}", job.targets, job.emit, job.options);
        let expected = self.valid.entry(key);
        let expected = expected.or_insert_with(|| Made::by(&here, &targets, emit)).clone();
        let after = Made::by(&self.compiler(alone), &targets, emit);
        if after != expected {
            answer.message = difference(&expected, &after);
            answer.outcome = Outcome::Refused;
        }
        Ok(answer)
    }
}

fn of_failure(failure: Failure) -> Answer {
    let outcome = failure.errors.iter().map(of_error).max().unwrap_or(Outcome::Refused);
    Answer {
        outcome,
        ..Answer::from(Refusal::from(failure))
    }
}

fn of_error(error: &Error) -> Outcome {
    match error.kind {
        ErrorKind::Crash | ErrorKind::Memory => Outcome::Lost,
        ErrorKind::TimeLimit => Outcome::Stopped,
        _ => Outcome::Refused,
    }
}
