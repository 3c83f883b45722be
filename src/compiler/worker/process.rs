//! One worker process, from this side.
//!
//! The worker's standard input is one end of a pair of sockets, over which both sides talk. Whatever it or a library in it
//! prints goes into a pipe, of which the end is kept for messages. The worker leads a process group of its own, so that it
//! and a `ptxas` that it started are ended together.

use std::{
    io::{self, PipeReader, Read},
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream, process::CommandExt, process::ExitStatusExt},
    },
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags},
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    net::{RecvFlags, SendFlags, recv, send},
    process::{Pid, Signal, kill_process_group},
};
use serde::Serialize;

use super::{
    Worker, WorkerError,
    protocol::{Answer, FromWorker, Hello, Incoming, ToWorker, decode, encode},
};
use crate::{
    bridge::exhausted::EXHAUSTED,
    interrupt::{CancellationToken, Interrupt, InterruptError},
    stage::Stage,
};

/// How much of what a worker prints is kept.
const KEPT_OUTPUT: usize = 16 << 10;

/// Time within which a program that was started has to answer.
const START_LIMIT: Duration = Duration::from_secs(120);

/// Time that a worker has to end a request by itself after the limit, before it is killed: it may be waiting for `ptxas`
/// with the same limit, whose end it reports better.
const GRACE: Duration = Duration::from_millis(250);

/// A worker that was started. Dropped, it is killed and reaped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    socket: UnixStream,
    printed: PipeReader,
    /// The end of what it printed.
    output: Vec<u8>,
    incoming: Incoming,
    /// Requests that it has answered.
    pub answered: u32,
    /// Memory that it held after the last one, in bytes.
    pub resident: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Ended {
    /// There was a reason to stop.
    Interrupted(InterruptError),
    /// The worker ended before it began with the request, which is not to blame then.
    Early,
    /// Anything else.
    Failed(WorkerError),
}

/// Why there is no answer, and the stage that the request had come to.
pub(super) type NoAnswer = (Option<Stage>, Ended);

/// Why a frame did not come.
enum Broken {
    Interrupted(InterruptError),
    /// The other end is closed.
    Gone,
    Protocol(String),
}

impl Process {
    /// Starts a worker, and waits until it has said what it is. `first` configures it.
    pub fn start(worker: &Worker, first: &ToWorker, token: &CancellationToken) -> Result<Self, Ended> {
        let failed = |source| {
            Ended::Failed(WorkerError::Start {
                program: worker.program.clone(),
                source,
            })
        };
        let (socket, theirs) = UnixStream::pair().map_err(failed)?;
        let (printed, prints) = io::pipe().map_err(failed)?;
        let flags = fcntl_getfl(&printed).map_err(|error| failed(error.into()))?;
        fcntl_setfl(&printed, flags | OFlags::NONBLOCK).map_err(|error| failed(error.into()))?;
        let mut command = Command::new(&worker.program);
        command
            .args(&worker.arguments)
            .env_clear()
            .envs(worker.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(prints.try_clone().map_err(failed)?)
            .stderr(prints)
            .process_group(0);
        tracing::debug!(?command, "starting a worker");
        let child = command.spawn().map_err(failed)?;
        // It holds the other ends, which have to be closed here.
        drop(command);
        let mut process = Self {
            child,
            socket,
            printed,
            output: Vec::new(),
            incoming: Incoming::default(),
            answered: 0,
            resident: 0,
        };
        process.greet(worker, token)?;
        let first = encode(first).map_err(|what| Ended::Failed(WorkerError::Protocol { what }))?;
        let interrupt = Interrupt::new(token, Some(START_LIMIT));
        process.send(&first, &interrupt).map_err(|broken| match broken {
            Broken::Interrupted(InterruptError::Cancelled) => Ended::Interrupted(InterruptError::Cancelled),
            _ => Ended::Early,
        })?;
        Ok(process)
    }

    /// Waits for the first message, which tells that the program is a worker of this build.
    fn greet(&mut self, worker: &Worker, token: &CancellationToken) -> Result<(), Ended> {
        let program = || worker.program.clone();
        let interrupt = Interrupt::new(token, Some(START_LIMIT));
        let what = match self.frame(&interrupt) {
            Ok(frame) => match decode::<Hello>(&frame) {
                Ok(hello) if hello.is_one() => {
                    let ours = Hello::ours().build;
                    if hello.build == ours {
                        return Ok(());
                    }
                    return Err(Ended::Failed(WorkerError::OtherBuild {
                        program: program(),
                        theirs: hello.build,
                        ours,
                    }));
                }
                _ => "its first message is another".to_owned(),
            },
            Err(Broken::Interrupted(InterruptError::Cancelled)) => {
                return Err(Ended::Interrupted(InterruptError::Cancelled));
            }
            Err(Broken::Interrupted(_)) => format!("it said nothing for {START_LIMIT:?}"),
            Err(Broken::Gone) => {
                let status = self.end();
                format!("it ended: {}", how(status))
            }
            Err(Broken::Protocol(what)) => what,
        };
        self.read_output();
        Err(Ended::Failed(WorkerError::NotAWorker {
            program: program(),
            what,
            output: self.output(),
        }))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Hands it a request, as a frame, and waits for the answer. After an error the worker is of no further use.
    pub fn request(&mut self, frame: &[u8], interrupt: &Interrupt, memory: Option<u64>) -> Result<Answer, NoAnswer> {
        let interrupt = interrupt.with_grace(GRACE);
        let mut stage = None;
        let mut accepted = false;
        self.output.clear();
        let broken = match self.exchange(frame, &interrupt, &mut stage, &mut accepted) {
            Ok(answer) => {
                self.answered = self.answered.saturating_add(1);
                return Ok(answer);
            }
            Err(broken) => broken,
        };
        let ended = match broken {
            Broken::Interrupted(reason) => Ended::Interrupted(reason),
            Broken::Protocol(what) => Ended::Failed(WorkerError::Protocol { what }),
            Broken::Gone if !accepted => Ended::Early,
            Broken::Gone => {
                let status = self.end();
                self.read_output();
                let output = self.output();
                Ended::Failed(if is_out_of_memory(status, &output) {
                    WorkerError::Memory {
                        limit: memory,
                        stage,
                        output,
                    }
                } else {
                    WorkerError::Crashed {
                        how: how(status),
                        stage,
                        output,
                    }
                })
            }
        };
        Err((stage, ended))
    }

    fn exchange(
        &mut self,
        frame: &[u8],
        interrupt: &Interrupt,
        stage: &mut Option<Stage>,
        accepted: &mut bool,
    ) -> Result<Answer, Broken> {
        self.send(frame, interrupt)?;
        loop {
            let frame = self.frame(interrupt)?;
            match decode(&frame).map_err(Broken::Protocol)? {
                FromWorker::Accepted => *accepted = true,
                FromWorker::Stage(entered) => *stage = Some(entered),
                FromWorker::Done { answer, resident } => {
                    self.resident = resident;
                    return Ok(answer);
                }
            }
        }
    }

    /// Sends a frame. The worker says nothing until it has all of it.
    fn send(&mut self, frame: &[u8], interrupt: &Interrupt) -> Result<(), Broken> {
        let mut left = frame;
        while !left.is_empty() {
            self.wait(interrupt, PollFlags::OUT)?;
            match send(&self.socket, left, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Broken::Gone),
                Err(error) => return Err(Broken::Protocol(format!("sending: {error}"))),
            }
        }
        Ok(())
    }

    /// The next frame.
    fn frame(&mut self, interrupt: &Interrupt) -> Result<Vec<u8>, Broken> {
        loop {
            if let Some(frame) = self.incoming.next_frame().map_err(Broken::Protocol)? {
                return Ok(frame);
            }
            self.wait(interrupt, PollFlags::IN)?;
            let mut bytes = [0u8; 64 << 10];
            match recv(&self.socket, &mut bytes[..], RecvFlags::DONTWAIT) {
                Ok((0, _)) | Err(Errno::CONNRESET) => return Err(Broken::Gone),
                Ok((length, _)) => self.incoming.push(bytes.get(..length).unwrap_or_default()),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(Broken::Protocol(format!("receiving: {error}"))),
            }
        }
    }

    /// Waits until the socket is ready, and empties the pipe of what is printed, which the worker would block on.
    fn wait(&mut self, interrupt: &Interrupt, socket: PollFlags) -> Result<(), Broken> {
        let ready = interrupt.wait(&[
            PollFd::new(&self.socket, socket),
            PollFd::new(&self.printed, PollFlags::IN),
        ]);
        let ready = ready
            .map_err(|error| Broken::Protocol(format!("waiting: {error}")))?
            .map_err(Broken::Interrupted)?;
        if ready.last().is_some_and(|flags| flags.contains(PollFlags::IN)) {
            self.read_output();
        }
        Ok(())
    }

    fn read_output(&mut self) {
        let mut bytes = [0u8; 16 << 10];
        while let Ok(length @ 1..) = self.printed.read(&mut bytes) {
            self.output.extend_from_slice(bytes.get(..length).unwrap_or_default());
            let surplus = self.output.len().saturating_sub(KEPT_OUTPUT);
            self.output.drain(..surplus);
        }
    }

    fn output(&self) -> String {
        String::from_utf8_lossy(&self.output).into_owned()
    }

    /// Ends it and what it started, and says how it ended.
    ///
    /// A worker that has ended by itself is a zombie until it is waited for, so its number is not yet anybody else's.
    fn end(&mut self) -> Option<ExitStatus> {
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        // It closed its socket: it is about to end, most likely, and should be left to say how.
        for _ in 0..200 {
            std::thread::sleep(Duration::from_millis(1));
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
        }
        self.kill();
        self.child.wait().ok()
    }

    fn kill(&self) {
        // An error means that nothing of it is left.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_alive() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// How a process ended, for people.
fn how(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "how is not known; is SIGCHLD ignored in this process?".to_owned();
    };
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name =
                Signal::from_named_raw(signal).map_or_else(String::new, |signal| format!(", {}", name_of(signal)));
            format!("signal {signal}{name}")
        }
        (None, Some(code)) => format!("exit status {code}"),
        (None, None) => status.to_string(),
    }
}

fn name_of(signal: Signal) -> &'static str {
    match signal {
        Signal::ABORT => "SIGABRT",
        Signal::BUS => "SIGBUS",
        Signal::FPE => "SIGFPE",
        Signal::ILL => "SIGILL",
        Signal::KILL => "SIGKILL, perhaps by the system for want of memory",
        Signal::SEGV => "SIGSEGV",
        Signal::TERM => "SIGTERM",
        Signal::TRAP => "SIGTRAP",
        Signal::XCPU => "SIGXCPU",
        _ => "see signal(7)",
    }
}

/// Whether a process ended because it got no memory: all that allocate there say so, and abort or crash.
fn is_out_of_memory(status: Option<ExitStatus>, output: &str) -> bool {
    /// What the C++ library, LLVM and Rust's library print then, and what our worker does.
    const TEXTS: [&str; 5] = [
        "std::bad_alloc",
        "LLVM ERROR: out of memory",
        "memory allocation of ",
        EXHAUSTED,
        super::serve::NO_STACK,
    ];
    let signal = status.and_then(|status| status.signal());
    [Signal::ABORT, Signal::SEGV]
        .iter()
        .any(|one| signal == Some(one.as_raw()))
        && TEXTS.iter().any(|text| output.contains(text))
}

/// A value as a frame, or the error that says why not.
pub(super) fn frame(value: &impl Serialize) -> Result<Vec<u8>, WorkerError> {
    encode(value).map_err(|what| WorkerError::Protocol { what })
}
