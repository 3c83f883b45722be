//! Threads that have no job, for the parts of one that has.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use super::stack::STACK_BYTES;

/// Threads that a call may use beside those that work on jobs.
///
/// On the embedder's threads there are none: a job that waits for pieces there could keep them from being carried out.
#[derive(Debug, Default)]
pub(super) struct Spare(AtomicUsize);

impl Spare {
    /// Calls `piece` once with each number below `pieces`, on this thread and on those that are spare now or become so
    /// meanwhile; returns when all calls have. Numbers are handed out in order.
    pub(super) fn for_each(&self, pieces: usize, piece: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < pieces);
        thread::scope(|scope| {
            while let Some(index) = take() {
                for _ in next.load(Ordering::Relaxed)..pieces {
                    let Some(borrowed) = self.borrow() else { break };
                    let help = move || {
                        let _borrowed = borrowed;
                        while let Some(index) = take() {
                            piece(index);
                        }
                    };
                    // Without another thread this one does it all.
                    let _ = thread::Builder::new()
                        .name("gpulower-part".to_owned())
                        .stack_size(STACK_BYTES)
                        .spawn_scoped(scope, help);
                }
                piece(index);
            }
        });
    }

    fn borrow(&self) -> Option<Borrowed<'_>> {
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |spare| spare.checked_sub(1))
            .ok()
            .map(|_| Borrowed(self))
    }

    pub(super) fn add(&self, threads: usize) {
        self.0.fetch_add(threads, Ordering::Relaxed);
    }
}

/// A spare thread in use.
struct Borrowed<'a>(&'a Spare);

impl Drop for Borrowed<'_> {
    fn drop(&mut self) {
        self.0.add(1);
    }
}
