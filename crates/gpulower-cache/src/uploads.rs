//! Work that happens behind the caller's back: a bounded queue, and threads that end when it is empty.

use std::{
    collections::VecDeque,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// At most so many at once: services answer slowly, and in parallel.
const THREADS: usize = 8;

/// What waits takes at most so many bytes; more is left out.
const MOST_WAITING: usize = 256 << 20;

type Work = Box<dyn FnOnce() + Send>;

#[derive(Default)]
pub(crate) struct Uploads {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    queue: VecDeque<(usize, Work)>,
    bytes: usize,
    threads: usize,
}

impl Uploads {
    /// Has `work`, which holds so many bytes, done some time. `false` where too much waits already.
    pub(crate) fn push(self: &Arc<Self>, bytes: usize, work: Work) -> bool {
        let mut state = self.lock();
        if state.bytes.saturating_add(bytes) > MOST_WAITING {
            return false;
        }
        state.bytes += bytes;
        state.queue.push_back((bytes, work));
        if state.threads < THREADS && state.queue.len() > state.threads / 2 {
            let own = Arc::clone(self);
            let started = thread::Builder::new()
                .name("gpulower-upload".to_owned())
                .spawn(move || own.work());
            match started {
                Ok(_) => state.threads += 1,
                // Another one gets to it, if there is one.
                Err(_) if state.threads > 0 => {}
                Err(_) => {
                    state.bytes -= bytes;
                    return state.queue.pop_back().is_none();
                }
            }
        }
        true
    }

    fn work(&self) {
        let mut state = self.lock();
        while let Some((bytes, work)) = state.queue.pop_front() {
            drop(state);
            work();
            state = self.lock();
            state.bytes -= bytes;
        }
        state.threads -= 1;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until everything is done, at most until `end`. What has not begun by then is left out: how much of it there was.
    pub(crate) fn finish(&self, limit: Duration) -> usize {
        let end = Instant::now() + limit;
        let mut state = self.lock();
        while state.threads > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        let left: Vec<(usize, Work)> = state.queue.drain(..).collect();
        state.bytes -= left.iter().map(|(bytes, _)| bytes).sum::<usize>();
        // Those that are under way are not known to arrive.
        left.len() + state.threads
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_takes_no_more_than_it_may() {
        let uploads = Arc::<Uploads>::default();
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock();
        let wait = || {
            let gate = Arc::clone(&gate);
            Box::new(move || drop(gate.lock())) as Work
        };
        assert!(uploads.push(MOST_WAITING - 10, wait()));
        assert!(!uploads.push(11, wait()));
        assert!(uploads.push(10, wait()));
        assert!(!uploads.push(1, wait()));
        drop(held);
        assert_eq!(uploads.finish(Duration::from_secs(60)), 0);
        assert_eq!(uploads.lock().bytes, 0);
        assert!(uploads.push(MOST_WAITING, wait()));
        assert!(!uploads.push(MOST_WAITING + 1, wait()));
        assert_eq!(uploads.finish(Duration::from_secs(60)), 0);
    }

    #[test]
    fn a_few_threads_do_it() {
        let uploads = Arc::<Uploads>::default();
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock();
        for _ in 0..100 {
            let gate = Arc::clone(&gate);
            assert!(uploads.push(1, Box::new(move || drop(gate.lock()))));
            assert!((1..=THREADS).contains(&uploads.lock().threads));
        }
        assert_eq!(uploads.lock().threads, THREADS);
        drop(held);
        assert_eq!(uploads.finish(Duration::from_secs(60)), 0);
        assert_eq!(uploads.lock().threads, 0);
    }
}
