//! A worker process, from the inside.

use std::{
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
    panic::{AssertUnwindSafe, catch_unwind},
    process::abort,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread,
};

use melior::{
    Context,
    ir::operation::{OperationLike, OperationPrintingFlags},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send, sockopt::socket_type},
    process::{
        Pid, Resource, Rlimit, Signal, getpgrp, getpid, getppid, getrlimit, kill_current_process_group, kill_process,
        setrlimit,
    },
};

use super::{
    protocol::{Answer, FromWorker, Hello, Incoming, ReadInputs, Reread, ToWorker, decode, encode},
    wire::WireRequest,
};
use crate::{
    bridge::{
        contain_crashes,
        edit::{copy_of, module_around},
        exhausted::tell_of_exhausted_memory,
        mlir::bytecode,
    },
    compiler::{
        Compiler, context, gpu_modules,
        input::is_bytecode,
        job, parse,
        pool::{Helpers, Pool, Threads},
        request::Outcome,
        requests::{ReadSource, read_source},
        stack::{SMALLER_STACK_BYTES, STACK_BYTES, without_growth},
    },
    device::StageObserver,
    error::{Cause, Error},
    stage::Stage,
};

/// What is printed before the worker aborts because it got no memory for a stack.
pub(super) const NO_STACK: &str = "no memory for a stack";

/// Makes this process a worker: call it first thing in the hidden mode of your program that
/// [`Worker::program`](super::Worker::program) names. It returns when the process that started it has no more work.
///
/// The standard input is used to talk to that process; nothing else may read it. If the process that started this one ends
/// in the middle of a request, this one ends itself at once, and with it its process group, which is its own.
///
/// # Errors
///
/// When the process was not started as a worker, or cannot understand the one that started it.
pub fn serve() -> io::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned().map_err(no_socket)?;
    socket_type(&socket).map_err(|error| no_socket(error.into()))?;
    // A worker that has crashed is replaced: this process is not to go on with what is left of it.
    contain_crashes(false);
    // A crash is expected work: no file is to be left of it.
    limit(Resource::Core, Some(0));
    tell_of_exhausted_memory();
    let socket = Arc::new(Socket {
        socket,
        writing: Mutex::new(()),
    });
    socket.send(&Hello::ours()).map_err(misunderstood)?;
    let (sender, messages) = mpsc::channel();
    let unfinished = Arc::new(AtomicUsize::new(0));
    let reader = Reader {
        socket: Arc::clone(&socket),
        unfinished: Arc::clone(&unfinished),
        parent: getppid(),
    };
    thread::Builder::new()
        .name("gpulower-reader".to_owned())
        .spawn(move || reader.read(&sender))
        .map_err(no_socket)?;
    let mut compiler = None;
    for message in messages {
        let message = message.map_err(misunderstood)?;
        let (answer, configured) = match message {
            ToWorker::Configure(configuration) => {
                let mut builder = Compiler::builder().toolkit(configuration.toolkit).threads(1);
                if let Some(directory) = configuration.cache {
                    builder = builder.cache_directory(directory);
                }
                let mut built = builder.build();
                built.observer = Some(socket.observer());
                (None, Some(built))
            }
            ToWorker::Read(inputs) => {
                socket.accept()?;
                limit(Resource::Data, inputs.memory_limit);
                // The process that asks reads it next, with more room: what does not overflow here does not overflow there.
                let reread = on_stack(SMALLER_STACK_BYTES, || without_growth(|| read(&inputs)));
                (Some(Answer::Read(reread)), None)
            }
            ToWorker::Compile(request) => {
                socket.accept()?;
                let compiler = compiler
                    .as_ref()
                    .ok_or_else(|| misunderstood("a request came before the configuration".to_owned()))?;
                limit(Resource::Data, request.options.memory_limit);
                (
                    Some(Answer::Compiled(on_stack(STACK_BYTES, || compile(compiler, *request)))),
                    None,
                )
            }
        };
        if let Some(answer) = answer {
            let resident = resident();
            socket
                .send(&FromWorker::Done { answer, resident })
                .map_err(misunderstood)?;
        }
        if let Some(configured) = configured {
            compiler = Some(configured);
        }
        unfinished.fetch_sub(1, Ordering::SeqCst);
    }
    Ok(())
}

/// Nobody is there to talk to.
fn no_socket(error: io::Error) -> io::Error {
    let what = "the standard input is not a socket: a worker is started by a program that compiles, not by hand";
    io::Error::new(error.kind(), format!("{what} ({error})"))
}

/// The process that started this one cannot be understood.
fn misunderstood(problem: String) -> io::Error {
    io::Error::other(format!(
        "the process that started this worker cannot be talked to: {problem}"
    ))
}

/// What the process that asks is to read in the place of each input, where that is another.
fn read(inputs: &ReadInputs) -> Vec<Option<Reread>> {
    let context = context();
    let inputs = inputs.inputs.iter();
    inputs
        .map(|(name, bytes)| {
            let reread = is_bytecode(bytes).then(|| match parse(&context, name, bytes) {
                Ok(module) => bytecode(&module).map_err(|error| Box::new(Error::new(Stage::Input, error))),
                Err(error) => Err(Box::new(Error::new(Stage::Input, error))),
            });
            match &reread {
                Some(Ok(anew)) => read_one(&context, name, anew),
                Some(Err(_)) => {}
                None => read_one(&context, name, bytes),
            }
            reread
        })
        .collect()
}

/// Everything that the process that asks does with MLIR itself: reading, outlining, cloning, printing, writing, freeing.
fn read_one(context: &Context, name: &str, bytes: &[u8]) {
    // Errors are for the process that asks: it meets them, too.
    let Ok(ReadSource::Mlir(module)) = read_source(context, name, bytes) else {
        return;
    };
    for operation in gpu_modules(&module) {
        let Ok(second) = module_around(operation).and_then(|clone| copy_of(&clone)) else {
            continue;
        };
        let flags = OperationPrintingFlags::new().enable_debug_info(true, false);
        let _ = second.as_operation().to_string_with_flags(flags);
        drop(bytecode(&second));
    }
}

fn compile(compiler: &Compiler, request: WireRequest) -> Result<Outcome, Box<Error>> {
    let run = || {
        if let Some(observer) = &compiler.observer {
            observer(Stage::Input);
        }
        let context = context();
        let pool = Pool::new(Threads::Own(request.threads));
        let request = request.into_request(&context)?;
        // The process that asks loads no compilers of PTX, and could not ask them which chips they know.
        compiler.refusal(&request).map_or(Ok(()), Err)?;
        job::run(compiler, request, Helpers::Own(&pool))
    };
    let result = catch_unwind(AssertUnwindSafe(run));
    let result = result.unwrap_or_else(|panic| {
        let text = crate::compiler::pool::describe(&*panic);
        Err(Error::new(Stage::Plan, Cause::Internal(text)))
    });
    result.map_err(Box::new)
}

/// Runs `work` on a thread with a stack of this size.
fn on_stack<R: Send>(bytes: usize, work: impl FnOnce() -> R + Send) -> R {
    let result = thread::scope(|scope| {
        let started = thread::Builder::new()
            .name("gpulower-request".to_owned())
            .stack_size(bytes)
            .spawn_scoped(scope, work);
        match started {
            Ok(thread) => thread.join().ok(),
            Err(error) => {
                let _ = writeln!(io::stderr(), "{NO_STACK}: {error}");
                None
            }
        }
    });
    // Whoever waits for the answer learns from the end of this process that there is none.
    result.unwrap_or_else(|| abort())
}

/// Limits what this process may use from now on; `None` takes a limit back.
fn limit(resource: Resource, most: Option<u64>) {
    let maximum = getrlimit(resource).maximum;
    let most = match (most, maximum) {
        (Some(most), Some(maximum)) => Some(most.min(maximum)),
        (most, maximum) => most.or(maximum),
    };
    // Lowering the soft limit and raising it up to the hard one is always allowed.
    let _ = setrlimit(resource, Rlimit { current: most, maximum });
}

/// Memory that this process holds, in bytes; 0 where the system does not say.
fn resident() -> u64 {
    // proc(5): the second number is the resident set, in pages.
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or_default();
    pages * rustix::param::page_size() as u64
}

/// The way to the process that asks.
struct Socket {
    socket: OwnedFd,
    writing: Mutex<()>,
}

impl Socket {
    fn send(&self, value: &impl serde::Serialize) -> Result<(), String> {
        let frame = encode(value)?;
        let _guard = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = frame.as_slice();
        while !left.is_empty() {
            match send(&self.socket, left, SendFlags::NOSIGNAL) {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    fn accept(&self) -> io::Result<()> {
        self.send(&FromWorker::Accepted).map_err(misunderstood)
    }

    /// Tells the process that asks about stages.
    fn observer(self: &Arc<Self>) -> StageObserver {
        let socket = Arc::clone(self);
        Arc::new(move |stage| {
            // Where nobody listens any more, the reader ends the process.
            let _ = socket.send(&FromWorker::Stage(stage));
        })
    }
}

/// The thread that takes messages, and notices that nobody is left to ask.
struct Reader {
    socket: Arc<Socket>,
    /// Messages that were taken and are not done.
    unfinished: Arc<AtomicUsize>,
    parent: Option<Pid>,
}

impl Reader {
    fn read(&self, messages: &mpsc::Sender<Result<ToWorker, String>>) {
        let mut incoming = Incoming::default();
        let mut bytes = vec![0u8; 64 << 10];
        loop {
            match incoming.next_frame() {
                Ok(Some(frame)) => {
                    self.unfinished.fetch_add(1, Ordering::SeqCst);
                    if messages.send(decode(&frame)).is_err() {
                        return;
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => {
                    let _ = messages.send(Err(error));
                    return;
                }
            }
            if !self.wait() {
                return self.nobody_asks();
            }
            match recv(&self.socket.socket, bytes.as_mut_slice(), RecvFlags::empty()) {
                Ok((length @ 1.., _)) => incoming.push(bytes.get(..length).unwrap_or_default()),
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => return self.nobody_asks(),
            }
        }
    }

    /// Waits for bytes. False when the process that asks has ended: another one may hold its end of the socket without
    /// knowing, when it was forked from it.
    fn wait(&self) -> bool {
        let moment = Timespec { tv_sec: 2, tv_nsec: 0 };
        loop {
            let mut files = [PollFd::new(&self.socket.socket, PollFlags::IN)];
            match poll(&mut files, Some(&moment)) {
                Ok(0) if getppid() != self.parent => return false,
                Ok(0) | Err(Errno::INTR) => {}
                _ => return true,
            }
        }
    }

    /// Ends what is being done for nobody. Without work the process ends in good order.
    fn nobody_asks(&self) {
        if self.unfinished.load(Ordering::SeqCst) == 0 {
            return;
        }
        // Only a group of our own is ours to end.
        if getpgrp() == getpid() {
            let _ = kill_current_process_group(Signal::KILL);
        }
        let _ = kill_process(getpid(), Signal::KILL);
    }
}
