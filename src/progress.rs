//! What a compilation tells of itself while it runs.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::stage::{Stage, Subject};

/// A step of a call that compiles. A piece of work is one module for one target.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// So many further pieces of work are known to be part of the call.
    Planned {
        /// How many.
        more: usize,
    },
    /// A piece of work begins.
    Begun {
        /// Which.
        subject: Subject<'a>,
    },
    /// It enters a stage. What a worker process does is not told so closely.
    Stage {
        /// Which piece of work.
        subject: Subject<'a>,
        /// The stage.
        stage: Stage,
    },
    /// Of the kernels of a piece of work that are made into machine code one by one, so many are done. What a worker process
    /// does is not told so closely.
    Kernels {
        /// Which piece of work.
        subject: Subject<'a>,
        /// How many are done.
        done: usize,
        /// How many there are.
        total: usize,
    },
    /// It is done.
    Finished {
        /// Which.
        subject: Subject<'a>,
        /// Whether it was taken from the cache.
        from_cache: bool,
        /// Whether it failed.
        failed: bool,
        /// How many are done, this one included.
        done: usize,
        /// How many are known of.
        total: usize,
    },
}

/// What is told of progress, from the compiler's threads. It should return soon: the compilation waits for it.
pub type ProgressCallback = Arc<dyn Fn(&Progress<'_>) + Send + Sync>;

/// Tells the progress of one call.
pub(crate) struct Reporter {
    callback: Option<ProgressCallback>,
    done: AtomicUsize,
    total: AtomicUsize,
}

impl fmt::Debug for Reporter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Reporter")
            .field("done", &self.done)
            .field("total", &self.total)
            .finish_non_exhaustive()
    }
}

impl Reporter {
    pub(crate) fn new(callback: Option<ProgressCallback>) -> Self {
        Self {
            callback,
            done: AtomicUsize::new(0),
            total: AtomicUsize::new(0),
        }
    }

    pub(crate) fn planned(&self, more: usize) {
        self.total.fetch_add(more, Ordering::Relaxed);
        self.tell(&Progress::Planned { more });
    }

    pub(crate) fn begun(&self, subject: Subject<'_>) {
        self.tell(&Progress::Begun { subject });
    }

    pub(crate) fn finished(&self, subject: Subject<'_>, from_cache: bool, failed: bool) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        self.tell(&Progress::Finished {
            subject,
            from_cache,
            failed,
            done,
            total: self.total.load(Ordering::Relaxed),
        });
    }

    fn tell(&self, progress: &Progress<'_>) {
        if let Some(callback) = &self.callback {
            callback(progress);
        }
    }
}
