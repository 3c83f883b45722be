//! A bounded set of threads that compile ahead.

use std::{
    collections::VecDeque,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

/// MLIR's parser recurses as deeply as its input is nested.
const STACK_BYTES: usize = 64 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// The threads, started one by one as there is work for them.
pub(super) struct Workers {
    shared: Arc<Shared>,
    most: usize,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    /// Threads that wait for a job.
    idle: usize,
    closed: bool,
}

impl Workers {
    /// At most so many threads, and at least one. None is started yet.
    pub(super) fn new(most: usize) -> Self {
        Self {
            shared: Arc::default(),
            most: most.max(1),
            threads: Mutex::default(),
        }
    }

    /// Enqueues a job. Jobs begin in the order in which they come.
    ///
    /// # Errors
    ///
    /// No thread could be started, and none is there.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut threads = lock(&self.threads);
        let mut queue = lock(&self.shared.queue);
        if queue.jobs.len() >= queue.idle && threads.len() < self.most {
            let shared = Arc::clone(&self.shared);
            let started = thread::Builder::new()
                .name(format!("gpulower-session-{}", threads.len()))
                .stack_size(STACK_BYTES)
                .spawn(move || shared.work());
            match started {
                Ok(thread) => threads.push(thread),
                Err(error) if threads.is_empty() => return Err(error),
                // Those that are there do the work.
                Err(_) => {}
            }
        }
        queue.jobs.push_back(Box::new(job));
        drop(queue);
        self.shared.changed.notify_one();
        Ok(())
    }
}

impl Shared {
    fn work(&self) {
        while let Some(job) = self.next() {
            // What a job has to say of its panic, it says itself. Here it must not end the thread.
            let _ = catch_unwind(AssertUnwindSafe(job));
        }
    }

    fn next(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue.idle += 1;
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle = queue.idle.saturating_sub(1);
        }
    }
}

impl Drop for Workers {
    /// Drops the jobs that were not begun, and waits for those that were: a thread must not be inside of LLVM when the
    /// process ends.
    fn drop(&mut self) {
        let jobs = {
            let mut queue = lock(&self.shared.queue);
            queue.closed = true;
            std::mem::take(&mut queue.jobs)
        };
        drop(jobs);
        self.shared.changed.notify_all();
        let current = thread::current().id();
        for thread in lock(&self.threads).drain(..) {
            // A job may be what drops the session last.
            if thread.thread().id() != current {
                let _ = thread.join();
            }
        }
    }
}

impl fmt::Debug for Workers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Workers")
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A job that says that it began, and then waits for its channel.
    fn held(workers: &Workers, begun: &Sender<u32>, number: u32) -> Sender<()> {
        let (release, wait): (Sender<()>, Receiver<()>) = channel();
        let begun = begun.clone();
        workers
            .run(move || {
                begun.send(number).expect("somebody listens");
                let _ = wait.recv();
            })
            .expect("enqueued");
        release
    }

    #[test]
    fn no_more_threads_than_allowed_and_jobs_begin_in_order() {
        let workers = Workers::new(2);
        let (begun, beginnings) = channel();
        let mut releases: VecDeque<_> = (0..4).map(|number| held(&workers, &begun, number)).collect();
        let mut first = [beginnings.recv().expect("one"), beginnings.recv().expect("two")];
        first.sort_unstable();
        assert_eq!(first, [0, 1]);
        assert_eq!(lock(&workers.threads).len(), 2);
        assert!(beginnings.try_recv().is_err(), "both threads are busy");
        for expected in [2, 3] {
            drop(releases.pop_front());
            assert_eq!(beginnings.recv(), Ok(expected));
        }
    }

    #[test]
    fn a_panic_does_not_end_a_thread() {
        let workers = Workers::new(1);
        workers.run(|| panic!("on purpose")).expect("enqueued");
        let (done, wait) = channel();
        workers
            .run(move || done.send(7).expect("somebody listens"))
            .expect("enqueued");
        assert_eq!(wait.recv(), Ok(7));
    }

    #[test]
    fn the_end_waits_for_what_began_and_drops_the_rest() {
        let workers = Workers::new(1);
        let (begun, beginnings) = channel();
        let release = held(&workers, &begun, 0);
        let _never = held(&workers, &begun, 1);
        assert_eq!(beginnings.recv(), Ok(0));
        let shared = Arc::clone(&workers.shared);
        let ending = thread::spawn(move || drop(workers));
        while !lock(&shared.queue).closed {
            thread::yield_now();
        }
        assert!(
            lock(&shared.queue).jobs.is_empty(),
            "dropped while the first job still runs"
        );
        assert!(!ending.is_finished(), "it waits for the first job");
        drop((begun, release));
        ending.join().expect("ends");
        assert!(beginnings.recv().is_err(), "the second job never began");
    }
}
