//! One machine makes an entry while others wait for it: a claim is a name that only one of them could write.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crate::Id;

/// What this process has claimed, and how long it may still wait for others in vain.
#[derive(Debug)]
pub(crate) struct Claims {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ours: HashSet<Id>,
    patience: Duration,
}

impl Claims {
    pub(crate) fn new(patience: Duration) -> Self {
        Self {
            state: Mutex::new(State {
                ours: HashSet::new(),
                patience,
            }),
        }
    }

    fn with<T>(&self, what: impl FnOnce(&mut State) -> T) -> T {
        what(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, id: &Id) {
        self.with(|state| state.ours.insert(*id));
    }

    /// Whether it was claimed here; not any more afterwards.
    pub(crate) fn take(&self, id: &Id) -> bool {
        self.with(|state| state.ours.remove(id))
    }

    pub(crate) fn patience(&self) -> Duration {
        self.with(|state| state.patience)
    }

    pub(crate) fn waited_in_vain(&self, time: Duration) {
        self.with(|state| state.patience = state.patience.saturating_sub(time));
    }
}
