//! One thread makes an entry while others wait for it.

use std::{
    collections::HashMap,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, ThreadId},
    time::Duration,
};

use super::key::Key;

/// How often who waits looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(20);

/// What is being made, and by which thread.
///
/// A thread that makes something waits for nobody: it may have been given another's work to do while it waits for its own, and
/// would wait for itself. So what is waited for is always under way.
#[derive(Default)]
pub(super) struct Turns {
    makers: Mutex<HashMap<Key, ThreadId>>,
    ended: Condvar,
}

impl Turns {
    /// Takes the turn to make an entry. Where another thread has it, waits until that is done, or `stop` says so. `true` where it
    /// waited: the entry may be there now.
    pub(super) fn take(&self, key: &Key, stop: &dyn Fn() -> bool) -> (Option<Turn<'_>>, bool) {
        let own = thread::current().id();
        let mut makers = self.lock();
        let mut has_waited = false;
        while makers.contains_key(key) {
            if makers.values().any(|maker| *maker == own) || stop() {
                return (None, has_waited);
            }
            has_waited = true;
            makers = match self.ended.wait_timeout(makers, LOOK) {
                Ok((makers, _)) => makers,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        makers.insert(*key, own);
        let turn = Turn { turns: self, key: *key };
        (Some(turn), has_waited)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, ThreadId>> {
        self.makers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a turn when it is dropped.
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    key: Key,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.turns.lock().remove(&self.key);
        self.turns.ended.notify_all();
    }
}
