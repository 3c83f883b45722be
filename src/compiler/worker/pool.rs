//! The workers of a compiler: started when they are needed, reused, replaced when they have grown.

use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    Worker,
    process::{Ended, Process},
    protocol::ToWorker,
};
use crate::interrupt::{CancellationToken, InterruptError};

/// How often somebody who waits for a worker looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// At most so many workers at a time.
#[derive(Debug)]
pub(in crate::compiler) struct Pool {
    most: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    idle: Vec<Process>,
    /// Process ids of those that work.
    busy: Vec<u32>,
    /// Workers that are about to start.
    starting: usize,
}

impl Pool {
    pub fn new(most: usize) -> Self {
        Self {
            most: most.max(1),
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The process ids of the workers that run.
    pub fn ids(&self) -> Vec<u32> {
        let state = self.state();
        state
            .idle
            .iter()
            .map(Process::id)
            .chain(state.busy.iter().copied())
            .collect()
    }

    /// A worker for one request: one that waits for work, else a new one, else the first that has done its own.
    pub(super) fn take(
        &self,
        worker: &Worker,
        first: &ToWorker,
        token: &CancellationToken,
    ) -> Result<Lease<'_>, Ended> {
        let mut state = self.state();
        loop {
            if token.is_cancelled() {
                return Err(Ended::Interrupted(InterruptError::Cancelled));
            }
            if let Some(mut process) = state.idle.pop() {
                if !process.is_alive() {
                    continue;
                }
                state.busy.push(process.id());
                return Ok(Lease {
                    pool: self,
                    worker: worker.clone(),
                    process: Some(process),
                });
            }
            if state.busy.len() + state.starting < self.most {
                break;
            }
            state = self
                .changed
                .wait_timeout(state, LOOK)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.starting += 1;
        drop(state);
        let started = Process::start(worker, first, token);
        let mut state = self.state();
        state.starting -= 1;
        match started {
            Ok(process) => {
                state.busy.push(process.id());
                Ok(Lease {
                    pool: self,
                    worker: worker.clone(),
                    process: Some(process),
                })
            }
            Err(ended) => {
                drop(state);
                self.changed.notify_one();
                Err(ended)
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker while a request is with it. Dropped, the worker is killed; [`Lease::give_back`] keeps it.
#[derive(Debug)]
pub(super) struct Lease<'a> {
    pool: &'a Pool,
    worker: Worker,
    process: Option<Process>,
}

impl Lease<'_> {
    pub(super) const fn process(&mut self) -> Option<&mut Process> {
        self.process.as_mut()
    }

    /// Keeps the worker for other requests, unless it has done enough.
    pub(super) fn give_back(mut self) {
        let Some(process) = self.process.take() else { return };
        let has_done_enough = process.answered >= self.worker.requests || process.resident > self.worker.resident;
        let id = process.id();
        let mut state = self.pool.state();
        state.busy.retain(|busy| *busy != id);
        if has_done_enough {
            drop(state);
            tracing::debug!(
                id,
                answered = process.answered,
                resident = process.resident,
                "replacing a worker"
            );
            drop(process);
        } else {
            state.idle.push(process);
            drop(state);
        }
        self.pool.changed.notify_one();
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let Some(process) = self.process.take() else { return };
        let id = process.id();
        drop(process);
        self.pool.state().busy.retain(|busy| *busy != id);
        self.pool.changed.notify_one();
    }
}
