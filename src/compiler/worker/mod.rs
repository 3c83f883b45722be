//! Compiling in a process of its own: a crash of LLVM, of MLIR or of a vendor's library ends that process, and is an error
//! here.
//!
//! With [`Isolation::Worker`] the risky part of each compilation runs in a child
//! process, a *worker*: reading MLIR, lowering it, LLVM, lld, and NVIDIA's compilers. Workers are started when they are
//! needed, at most one for each thread of the compiler, and are reused. One that crashes, runs out of memory or does not
//! finish in time costs its own request and no other. What comes out is the same, byte for byte.
//!
//! The program `gpulower` is a worker when it is started as `gpulower worker`:
//!
//! ```no_run
//! use gpulower::{Compiler, Isolation, Options, Worker};
//!
//! let options = Options {
//!     isolation: Isolation::Worker,
//!     time_limit: Some(std::time::Duration::from_secs(60)),
//!     memory_limit: Some(4 << 30),
//!     ..Options::default()
//! };
//! let compiler = Compiler::builder().options(options).worker(Worker::program("/usr/bin/gpulower")?).build();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A program that is shipped as one file can be its own worker:
//!
//! ```no_run
//! use gpulower::{Compiler, Isolation, Options, Worker, worker};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     // First of all, before anything reads the standard input or starts a thread.
//!     if std::env::args_os().nth(1).is_some_and(|argument| argument == "--compile-worker") {
//!         return Ok(worker::serve()?);
//!     }
//!     let worker = Worker::program(std::env::current_exe()?)?.arguments(["--compile-worker"]);
//!     let options = Options { isolation: Isolation::Worker, ..Options::default() };
//!     let compiler = Compiler::builder().options(options).worker(worker).build();
//!     // ...
//! #   drop(compiler);
//!     Ok(())
//! }
//! ```
//!
//! `docs/reliability.md` in the repository has the whole contract.

mod error;
mod pool;
mod process;
mod protocol;
mod serve;
mod wire;

use std::{ffi::OsString, path::PathBuf, time::Duration};

use melior::ir::operation::{OperationLike, OperationRef};

pub use self::{error::WorkerError, serve::serve};
pub(super) use pool::Pool;

use self::{
    process::{Ended, frame},
    protocol::{Answer, Configuration, ReadInputs, ToWorker},
    wire::WireRequest,
};
use super::{
    Compiler,
    input::{InputKind, is_bytecode},
    pool::Helpers,
    request::{Outcome, Request, Source},
    symbol_name,
};
use crate::{
    bridge::mlir::operations,
    error::{Cause, Error, Failure},
    interrupt::Interrupt,
    options::{Isolation, OptionError},
    stage::Stage,
};

/// The program that does the work with [`Isolation::Worker`], and when a process of it is replaced by a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    program: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    requests: u32,
    resident: u64,
}

impl Worker {
    /// The program `gpulower` at this path, or one that is started as it is.
    ///
    /// # Errors
    ///
    /// [`WorkerError::Relative`]: the path has to be absolute.
    pub fn program(path: impl Into<PathBuf>) -> Result<Self, WorkerError> {
        let program = path.into();
        if !program.is_absolute() {
            return Err(WorkerError::Relative { path: program });
        }
        Ok(Self {
            program,
            arguments: vec!["worker".into()],
            environment: Vec::new(),
            requests: 1000,
            resident: 1 << 30,
        })
    }

    /// What the program is started with, in the place of the word `worker`: what makes your own program call [`serve`].
    #[must_use]
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a variable for the program. Its environment is empty otherwise; `ptxas` and NVIDIA's libraries may want `TMPDIR`
    /// or `LD_LIBRARY_PATH`.
    #[must_use]
    pub fn environment(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// A process is replaced after so many requests. Default: 1000.
    #[must_use]
    pub fn requests(mut self, most: u32) -> Self {
        self.requests = most;
        self
    }

    /// A process that holds more memory than this after a request is replaced: what LLVM's fatal errors leak stays there
    /// until then. In bytes. Default: 1 GiB.
    #[must_use]
    pub fn resident(mut self, most: u64) -> Self {
        self.resident = most;
        self
    }
}

impl Compiler {
    /// The process ids of the workers that run now, for those who watch over processes.
    pub fn worker_ids(&self) -> Vec<u32> {
        self.workers.ids()
    }
}

/// Carries out a request in a worker.
pub(super) fn run(compiler: &Compiler, request: &Request<'_>, helpers: Helpers<'_>) -> Result<Outcome, Error> {
    let named = |mut error: Error| {
        error.kernels = kernels(request);
        error.in_module(&request.name).for_target(&request.target)
    };
    let limit = request.options.time_limit;
    let memory = request.options.memory_limit;
    // The worker's threads are as many as those that would help here.
    let lent = helpers.lend();
    let made = || {
        let request = WireRequest::of(request, 1 + lent.threads).map_err(|error| Error::new(Stage::Plan, error))?;
        Ok(ToWorker::Compile(Box::new(request)))
    };
    match exchange(compiler, Stage::Plan, limit, memory, made).map_err(named)? {
        Answer::Compiled(result) => result.map_err(|error| error.in_module(&request.name).for_target(&request.target)),
        Answer::Read(_) => Err(named(another_answer())),
    }
}

/// Runs `work`, which reads the inputs that it is given, after a worker has read the same bytes and lived. Damaged bytecode
/// may do well in one process and crash the next: of bytecode, `work` is given what the worker has written anew. Without
/// isolation it just runs.
pub(crate) fn reading<R, E: From<Failure>>(
    compiler: &Compiler,
    inputs: &[(&str, &[u8])],
    work: impl FnOnce(&[(&str, &[u8])]) -> Result<R, E>,
) -> Result<R, E> {
    if compiler.options.isolation == Isolation::InProcess {
        return work(inputs);
    }
    let written = written_anew(compiler, inputs).map_err(Failure::from)?;
    let inputs: Vec<(&str, &[u8])> = inputs
        .iter()
        .zip(&written)
        .map(|((name, bytes), anew)| (*name, anew.as_deref().unwrap_or(bytes)))
        .collect();
    work(&inputs)
}

/// Has a worker read the inputs, and gives for each what is to be read in its place.
fn written_anew(compiler: &Compiler, inputs: &[(&str, &[u8])]) -> Result<Vec<Option<Vec<u8>>>, Error> {
    check(compiler)?;
    // LLVM IR and PTX are not looked into here.
    let is_mlir = |(name, bytes): &(&str, &[u8])| matches!(InputKind::of(name, bytes), Ok(InputKind::Mlir));
    let risky: Vec<(String, Vec<u8>)> = inputs
        .iter()
        .filter(|input| is_mlir(input))
        .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
        .collect();
    if risky.is_empty() {
        return Ok(vec![None; inputs.len()]);
    }
    let name = match risky.as_slice() {
        [(name, _)] => Some(name.clone()),
        _ => None,
    };
    let options = &compiler.options;
    let read = ToWorker::Read(ReadInputs {
        inputs: risky,
        memory_limit: options.memory_limit,
    });
    let answer = exchange(compiler, Stage::Input, options.time_limit, options.memory_limit, || {
        Ok(read)
    })
    .map_err(|error| match &name {
        Some(name) => error.in_module(name),
        None => error,
    })?;
    let Answer::Read(reread) = answer else {
        return Err(another_answer());
    };
    let mut reread = reread.into_iter();
    inputs
        .iter()
        .map(|input| {
            let anew = if is_mlir(input) { reread.next().flatten() } else { None };
            if anew.is_none() && is_bytecode(input.1) {
                return Err(another_answer());
            }
            anew.transpose().map_err(|error| *error)
        })
        .collect()
}

fn another_answer() -> Error {
    Error::new(
        Stage::Plan,
        Cause::Internal("the worker answered another request".to_owned()),
    )
}

/// Whether isolation can be had at all.
fn check(compiler: &Compiler) -> Result<&Worker, Error> {
    if !compiler
        .listeners
        .iter()
        .all(|listener| listener.checkpoints().is_empty())
    {
        let refusal = OptionError::NotHonoured {
            name: "isolation",
            target: "a compiler with stage listeners".to_owned(),
            reason: "a worker process cannot call them; use isolation=in-process, or add no listener".to_owned(),
        };
        return Err(Error::new(Stage::Plan, refusal));
    }
    compiler
        .worker
        .as_ref()
        .ok_or_else(|| Error::new(Stage::Plan, WorkerError::NoProgram))
}

/// Has a worker answer what `made` gives. `first` is the stage that errors are of before the worker has reported one.
fn exchange(
    compiler: &Compiler,
    first: Stage,
    limit: Option<Duration>,
    memory: Option<u64>,
    made: impl FnOnce() -> Result<ToWorker, Error>,
) -> Result<Answer, Error> {
    let worker = check(compiler)?;
    let token = &compiler.cancellation;
    let at_first = |cause: Cause| Error::new(first, cause);
    Interrupt::new(token, None)
        .check()
        .map_err(|reason| at_first(reason.into()))?;
    let frame = frame(&made()?).map_err(|error| at_first(error.into()))?;
    let configuration = ToWorker::Configure(Box::new(Configuration {
        toolkit: (*compiler.toolkit).clone(),
        cache: compiler.cache.clone(),
    }));
    // A worker that was ended from outside while it had nothing to do is not the request's fault: a few may be met.
    let mut attempts = 3;
    loop {
        attempts -= 1;
        let taken = compiler.workers.take(worker, &configuration, token);
        let (stage, ended) = match taken {
            Ok(mut lease) => {
                let Some(process) = lease.process() else { continue };
                let interrupt = Interrupt::new(token, limit);
                match process.request(&frame, &interrupt, memory) {
                    Ok(answer) => {
                        lease.give_back();
                        return Ok(answer);
                    }
                    Err(no_answer) => no_answer,
                }
            }
            Err(ended) => (None, ended),
        };
        let cause: Cause = match ended {
            Ended::Early if attempts > 0 => continue,
            Ended::Early => WorkerError::Crashed {
                how: "each time before it began".to_owned(),
                stage,
                output: String::new(),
            }
            .into(),
            Ended::Interrupted(reason) => reason.into(),
            Ended::Failed(error) => error.into(),
        };
        return Err(Error::new(stage.unwrap_or(first), cause));
    }
}

/// The kernels of a request, as far as its MLIR names them.
fn kernels(request: &Request<'_>) -> Vec<String> {
    request
        .parts
        .iter()
        .filter_map(|part| match &part.source {
            Source::Mlir(module) => Some(module),
            _ => None,
        })
        .flat_map(|module| {
            let module = module.lock();
            let is_kernel = |operation: &OperationRef<'_, '_>| {
                ["gpu.kernel", "nvvm.kernel", "rocdl.kernel"]
                    .iter()
                    .any(|name| operation.has_attribute(name))
            };
            let kernels = operations(module.module()).into_iter().filter(is_kernel);
            kernels.map(symbol_name).collect::<Vec<_>>()
        })
        .collect()
}
