//! Work that a signal can end, with the interpreter free for other threads.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicIsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, channel},
    },
    thread,
    time::{Duration, Instant},
};

use gpulower::{CancellationToken, ErrorKind, Stage};
use pyo3::{PyResult, Python, marker::Ungil, pyfunction};

use crate::failure;

/// How often Python is asked whether a signal came.
const SIGNALS: Duration = Duration::from_millis(50);

/// How long what was cancelled may take to end. LLVM ends with the stage that it is in; its thread is left to itself then,
/// until the interpreter ends.
const GRACE: Duration = Duration::from_secs(2);

/// How much work is under way, also what nobody waits for any more.
static WORKING: AtomicIsize = AtomicIsize::new(0);

struct Working;

impl Working {
    fn begin() -> Self {
        WORKING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORKING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How much work is under way. The interpreter is not to end under it.
#[pyfunction]
pub fn working() -> usize {
    WORKING.load(Ordering::SeqCst).try_into().unwrap_or(0)
}

/// In a process that was forked: the work is the other process's.
#[pyfunction]
pub fn forget_work() {
    WORKING.store(0, Ordering::SeqCst);
}

/// Runs short work, which nothing ends, on this thread, with the interpreter free for others.
pub fn detached<T: Ungil>(py: Python<'_>, work: impl FnOnce() -> T + Ungil) -> T {
    let _working = Working::begin();
    py.detach(work)
}

/// Runs `work` on a thread of its own. A signal whose handler raises, as that of Ctrl-C does, cancels `token`, and the
/// exception comes out.
pub fn attended<T: Send + 'static>(
    py: Python<'_>,
    token: &CancellationToken,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, receiver) = channel();
    let thread = thread::Builder::new().name("gpulower-python".to_owned());
    let working = Working::begin();
    let spawned = thread.spawn(move || {
        let _working = working;
        // Whoever waited may have been interrupted.
        let _ = sender.send(work());
    });
    spawned.map_err(|error| failure::of(ErrorKind::Memory, Stage::Plan, &error))?;
    let receiver = Mutex::new(receiver);
    loop {
        match py.detach(|| receive(&receiver, SIGNALS)) {
            Ok(result) => return Ok(result),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let bug = "a thread of the compiler ended unexpectedly (this is a bug in gpulower)";
                return Err(failure::of(ErrorKind::Internal, Stage::Plan, &bug));
            }
        }
        if let Err(raised) = py.check_signals() {
            token.cancel();
            let end = Instant::now() + GRACE;
            py.detach(|| receive(&receiver, end.saturating_duration_since(Instant::now())))
                .ok();
            return Err(raised);
        }
    }
}

fn receive<T>(receiver: &Mutex<Receiver<T>>, time: Duration) -> Result<T, RecvTimeoutError> {
    let receiver = receiver.lock().map_err(|_| RecvTimeoutError::Disconnected)?;
    receiver.recv_timeout(time)
}
