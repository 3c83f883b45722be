//! Inputs that are compiled in worker processes. One that ends its worker costs itself and nothing else: this process goes
//! on, and what is compiled next is what it would be without.

use std::{collections::HashMap, env};

use gpulower::{Compiler, Error, ErrorKind, Failure, Isolation, Options, Worker, worker};

use super::{
    job::{Answer, Job, Outcome, Refusal, refused},
    valid::{Made, difference},
};

/// What makes this program a worker.
const WORKER: &str = "--worker";

/// Serves as a worker if this process was started as one.
pub fn serve_if_asked() -> Option<std::io::Result<()>> {
    (env::args_os().nth(2)? == WORKER).then(worker::serve)
}

/// What stays from one input to the next.
#[derive(Default)]
pub struct Workers {
    /// The last compiler, with its worker.
    compiler: Option<Compiler>,
    /// The last compiler for the valid kernel after inputs with libraries, which it is not to be linked with.
    without_libraries: Option<Compiler>,
    /// What the valid kernel is without workers, by options, targets and form of output.
    valid: HashMap<String, Made>,
}

impl Workers {
    /// Carries an input out in a worker, and then a valid kernel: its bytes, or the words of its refusal, have to be those
    /// that it has in a process of its own.
    pub fn compile(&mut self, job: &Job, files: &[Vec<u8>]) -> Result<Answer, Refusal> {
        let targets = job.targets()?;
        let emit = job.emit()?;
        let options = job.options(files)?;
        let key = format!("{} {} {:?}", job.targets, job.emit, job.options);
        let expected = match self.valid.get(&key) {
            Some(expected) => expected.clone(),
            None => {
                let here = Options {
                    isolation: Isolation::InProcess,
                    time_limit: None,
                    memory_limit: None,
                    libraries: Vec::new(),
                    ..options.clone()
                };
                let compiler = job.compiler(here).build();
                let made = Made::by(&compiler, &targets, emit);
                self.valid.entry(key).or_insert(made).clone()
            }
        };
        let alone = Options {
            libraries: Vec::new(),
            ..options.clone()
        };
        let compiler = compiler(&mut self.compiler, job, options)?;
        let after = match compiler.options() == &alone {
            true => compiler,
            false => self::compiler(&mut self.without_libraries, job, alone)?,
        };
        let (name, bytes) = job.input(files);
        let mut answer = match compiler.compile_source(name, bytes, &targets, emit) {
            Ok(made) => job.read_again(&made).map_or_else(Answer::from, |()| Answer::accepted()),
            Err(failure) => of_failure(failure),
        };
        let after = Made::by(after, &targets, emit);
        if after != expected {
            answer.message = difference(&expected, &after);
            answer.outcome = Outcome::Refused;
        }
        Ok(answer)
    }
}

/// The compiler that was there before, with its worker, if it has these options; else another one.
fn compiler<'a>(slot: &'a mut Option<Compiler>, job: &Job, options: Options) -> Result<&'a Compiler, Refusal> {
    let compiler = match slot.take() {
        Some(compiler) if *compiler.options() == options => compiler,
        _ => {
            let program = env::current_exe().map_err(|error| refused("worker")(&error))?;
            let worker = Worker::program(program).map_err(|error| refused("worker")(&error))?;
            job.compiler(options).worker(worker.arguments(["fuzz", WORKER])).build()
        }
    };
    Ok(slot.insert(compiler))
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
