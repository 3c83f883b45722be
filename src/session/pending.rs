//! Compilations that run ahead.

use std::{
    fmt,
    sync::{
        Arc,
        mpsc::{Receiver, TryRecvError},
    },
};

use super::{Added, Shared, compile::Compiled, error::SessionError};

/// A module that is being compiled on another thread, for a session that takes it in when it is [waited for](Self::wait).
///
/// Dropped before its compilation begins, it is not compiled. It is `Send`.
#[must_use = "the session takes the module in when it is waited for"]
pub struct Pending {
    pub(super) shared: Arc<Shared>,
    pub(super) name: String,
    pub(super) state: State,
    /// The job looks whether this is still there.
    pub(super) _wanted: Arc<()>,
}

pub(super) type Outcome = Result<Compiled, SessionError>;

pub(super) enum State {
    /// The thread sends it.
    Waiting(Receiver<Outcome>),
    /// It came.
    Done(Outcome),
}

impl Pending {
    /// The name that the module will have.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the compilation is over, so that [`wait`](Self::wait) has only to load.
    pub fn is_ready(&mut self) -> bool {
        if let State::Waiting(receiver) = &self.state {
            match receiver.try_recv() {
                Ok(outcome) => self.state = State::Done(outcome),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => self.state = State::Done(Err(ended(&self.name))),
            }
        }
        true
    }

    /// Waits for the compilation, and adds the module to the session as [`JitSession::add`](super::JitSession::add) does:
    /// loaded, under its name, in the place of what has that name by then.
    ///
    /// # Errors
    ///
    /// [`SessionError`]. The session is as it was then.
    pub fn wait(self) -> Result<Added, SessionError> {
        let (shared, name) = (Arc::clone(&self.shared), self.name.clone());
        shared.install(&name, self.outcome()?)
    }

    /// Waits for the compilation.
    pub(super) fn outcome(self) -> Outcome {
        match self.state {
            State::Done(outcome) => outcome,
            State::Waiting(receiver) => receiver.recv().unwrap_or_else(|_| Err(ended(&self.name))),
        }
    }
}

fn ended(name: &str) -> SessionError {
    SessionError::Ended {
        module: name.to_owned(),
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pending")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
