//! Ending compilations before they are done: cancellation, and time limits.

use std::{
    fmt, io,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use crate::error::ErrorKind;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

/// Why a request was ended before it was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub(crate) enum InterruptError {
    /// Somebody cancelled it.
    #[error("cancelled before it was done")]
    Cancelled,
    /// It took longer than its time limit.
    #[error("not done within the time limit of {limit:?}; raise the limit (time-limit), or compile less at once")]
    TimeLimit {
        /// The limit.
        limit: Duration,
    },
}

impl InterruptError {
    pub(crate) const fn kind(self) -> ErrorKind {
        match self {
            Self::Cancelled => ErrorKind::Cancelled,
            Self::TimeLimit { .. } => ErrorKind::TimeLimit,
        }
    }
}

/// Ends compilations from any thread: see [`Compiler::with_cancellation`](crate::Compiler::with_cancellation).
///
/// Clones are handles on the same thing. What was cancelled stays cancelled.
#[derive(Clone, Default)]
pub struct CancellationToken(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    cancelled: bool,
    /// Readable once cancelled; made when somebody first waits for it.
    event: Option<Arc<OwnedFd>>,
}

impl fmt::Debug for CancellationToken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("CancellationToken")
            .field(&self.is_cancelled())
            .finish()
    }
}

impl CancellationToken {
    /// Not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends what was started with this token, and whatever will be.
    pub fn cancel(&self) {
        let mut state = self.state();
        state.cancelled = true;
        if let Some(event) = &state.event {
            // The counter of an eventfd takes a first 1 always.
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state().cancelled
    }

    /// Something to poll that becomes readable when the token is cancelled. `None` where the system has no descriptor left.
    fn event(&self) -> Option<Arc<OwnedFd>> {
        let mut state = self.state();
        if state.event.is_none() {
            let first = u32::from(state.cancelled);
            let event = eventfd(first, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).ok()?;
            state.event = Some(Arc::new(event));
        }
        state.event.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What may end one piece of work early.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    token: CancellationToken,
    limit: Option<Duration>,
    deadline: Option<Instant>,
}

/// How long to sleep between looks where the system has no descriptor left to wait with.
const LOOK: Duration = Duration::from_millis(20);

impl Interrupt {
    /// From now on: `token`, and a time limit.
    pub(crate) fn new(token: &CancellationToken, limit: Option<Duration>) -> Self {
        Self {
            token: token.clone(),
            limit,
            // A limit beyond what the clock can express is none.
            deadline: limit.and_then(|limit| Instant::now().checked_add(limit)),
        }
    }

    /// A time limit alone.
    pub(crate) fn after(limit: Duration) -> Self {
        Self::new(&CancellationToken::new(), Some(limit))
    }

    /// The same, with so much more time; the limit in messages stays.
    pub(crate) fn with_grace(&self, grace: Duration) -> Self {
        Self {
            deadline: self.deadline.and_then(|deadline| deadline.checked_add(grace)),
            ..self.clone()
        }
    }

    /// An error once there is a reason to stop.
    pub(crate) fn check(&self) -> Result<(), InterruptError> {
        if self.token.is_cancelled() {
            return Err(InterruptError::Cancelled);
        }
        match (self.deadline, self.limit) {
            (Some(deadline), Some(limit)) if Instant::now() >= deadline => Err(InterruptError::TimeLimit { limit }),
            _ => Ok(()),
        }
    }

    /// Waits until one of `files` is ready, and says for each what it is ready for; or until there is a reason to stop, which
    /// is the inner error; the outer one is the system's. It may return early.
    pub(crate) fn wait(&self, files: &[PollFd<'_>]) -> io::Result<Result<Vec<PollFlags>, InterruptError>> {
        if let Err(reason) = self.check() {
            return Ok(Err(reason));
        }
        let event = self.token.event();
        let left = self
            .deadline
            .map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // One wait is at most an hour long, which fits every type involved.
        let longest = if event.is_some() {
            Duration::from_secs(3600)
        } else {
            LOOK
        };
        let pause = left.unwrap_or(longest).min(longest);
        let pause = Timespec::try_from(pause).map_err(io::Error::other)?;
        let mut polled: Vec<PollFd<'_>> = files.to_vec();
        polled.extend(event.as_ref().map(|event| PollFd::new(event, PollFlags::IN)));
        match poll(&mut polled, Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = || polled.iter().take(files.len()).map(PollFd::revents).collect();
        Ok(self.check().map(|()| ready()))
    }

    /// Sleeps until there is a reason to stop, for `time` at most.
    pub(crate) fn sleep(&self, time: Duration) -> Result<(), InterruptError> {
        std::thread::sleep(time.min(LOOK));
        self.check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cancelling_wakes_who_waits() {
        let token = CancellationToken::new();
        let interrupt = Interrupt::new(&token, None);
        assert_eq!(interrupt.check(), Ok(()));
        let (reader, _writer) = std::io::pipe().expect("a pipe");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                loop {
                    if let Err(error) = interrupt.wait(&[PollFd::new(&reader, PollFlags::IN)]).expect("waited") {
                        return error.to_string();
                    }
                }
            });
            token.clone().cancel();
            assert_eq!(waits.join().expect("no panic"), "cancelled before it was done");
        });
        assert!(token.is_cancelled());
        // Who comes later does not wait either.
        assert_eq!(Interrupt::new(&token, None).check(), Err(InterruptError::Cancelled));
    }

    #[test]
    fn the_time_limit_ends_a_wait_and_is_named() {
        let interrupt = Interrupt::after(Duration::from_millis(5));
        let error = loop {
            if let Err(error) = interrupt.wait(&[]).expect("waited") {
                break error.to_string();
            }
        };
        assert!(
            error.starts_with("not done within the time limit of 5ms; raise the limit"),
            "{error}"
        );
        assert_eq!(
            Interrupt::after(Duration::MAX).check(),
            Ok(()),
            "no clock goes that far"
        );
    }

    #[test]
    fn what_is_ready_is_told() {
        use std::io::Write;
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        writer.write_all(b"x").expect("written");
        let ready = Interrupt::default().wait(&[PollFd::new(&reader, PollFlags::IN)]);
        assert_eq!(ready.expect("waited").expect("ready"), [PollFlags::IN]);
    }
}
