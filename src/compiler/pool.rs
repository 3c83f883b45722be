//! Working through a list of jobs: on a bounded set of threads of ours, on the caller's own, or on this one.
//!
//! A job may be made of pieces. Those are carried out by the job's thread, and by threads of ours that no other job needs.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use super::{
    spare::Spare,
    stack::{STACK_BYTES, StackError, with_deep_stack},
};
use crate::error::Cause;

/// A pool of threads that the embedder has already, and that compilations are to use in the place of threads of their own.
///
/// LLVM recurses deeply on large functions. A thread whose stack is smaller than gpulower's own have, 64 MiB, gets as much
/// for the length of a job. A large module is one job: the parts that LLVM compiles it in are carried out one after the
/// other, since a job that waited for others could keep them from being carried out.
///
/// ```
/// use gpulower::compiler::Executor;
///
/// /// In a real program: rayon's `(0..jobs).into_par_iter().for_each(job)`, inside `ThreadPool::install`.
/// struct OneAfterTheOther;
///
/// impl Executor for OneAfterTheOther {
///     fn for_each(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
///         (0..jobs).for_each(job);
///     }
/// }
/// ```
pub trait Executor: Send + Sync {
    /// Calls `job` once with each number below `jobs`, from any threads and in any order, and returns when all calls have.
    /// A call that is left out makes that job fail. Jobs do not panic.
    fn for_each(&self, jobs: usize, job: &(dyn Fn(usize) + Sync));
}

/// Where jobs are carried out.
#[derive(Clone)]
pub(super) enum Threads {
    /// On this thread.
    Here,
    /// On at most so many threads of ours.
    Own(usize),
    /// On the embedder's.
    Theirs(Arc<dyn Executor>),
}

impl Threads {
    /// How many jobs are carried out at once, at most, as far as that is known.
    pub(super) fn most(&self) -> usize {
        match self {
            Self::Here => 1,
            Self::Own(threads) => *threads,
            Self::Theirs(_) => thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Here => formatter.write_str("Here"),
            Self::Own(threads) => formatter.debug_tuple("Own").field(threads).finish(),
            Self::Theirs(_) => formatter.write_str("Theirs"),
        }
    }
}

/// Why a job has no result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum JobError {
    /// It panicked, or was left out.
    Unexpected(String),
    /// There was no stack to run it on.
    Stack(StackError),
}

impl From<JobError> for Cause {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Unexpected(text) => Self::Internal(text),
            JobError::Stack(error) => error.into(),
        }
    }
}

/// Runs `work` on every job; results keep the order of the jobs. A panic of one job is that job's error.
pub(super) fn run<J: Send, R: Send>(
    threads: &Threads,
    jobs: Vec<J>,
    work: impl Fn(J, &Spare) -> R + Sync,
) -> Vec<Result<R, JobError>> {
    let spare = Spare::default();
    let slots: Vec<Mutex<Slot<J, R>>> = jobs
        .into_iter()
        .map(|job| {
            Mutex::new(Slot {
                job: Some(job),
                result: None,
            })
        })
        .collect();
    let carry_out = |index: usize| {
        let Some(slot) = slots.get(index) else { return };
        let job = lock(slot).job.take();
        if let Some(job) = job {
            let result = catch_unwind(AssertUnwindSafe(|| work(job, &spare)));
            lock(slot).result = Some(result.map_err(|panic| JobError::Unexpected(describe(&*panic))));
        }
    };
    let carry_out_with_room = |index: usize| {
        let carried_out = with_deep_stack(|| {
            carry_out(index);
            Ok(())
        });
        if let (Err(error), Some(slot)) = (carried_out, slots.get(index)) {
            lock(slot).result = Some(Err(JobError::Stack(error)));
        }
    };
    match threads {
        Threads::Here => (0..slots.len()).for_each(carry_out_with_room),
        Threads::Own(threads) => {
            if !on_own_threads(*threads, slots.len(), &carry_out, &spare) {
                (0..slots.len()).for_each(carry_out_with_room);
            }
        }
        Threads::Theirs(executor) => executor.for_each(slots.len(), &carry_out_with_room),
    }
    slots
        .into_iter()
        .map(|slot| {
            slot.into_inner()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .result
                .unwrap_or_else(|| Err(JobError::Unexpected("a job was not run".to_owned())))
        })
        .collect()
}

/// False where no thread could be started, and nothing was done.
fn on_own_threads(threads: usize, jobs: usize, carry_out: &(dyn Fn(usize) + Sync), spare: &Spare) -> bool {
    let next = AtomicUsize::new(0);
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= jobs {
                spare.add(1);
                return;
            }
            carry_out(index);
        }
    };
    let needed = threads.clamp(1, jobs.max(1));
    spare.add(threads.saturating_sub(needed));
    let started = thread::scope(|scope| {
        (0..needed)
            .map(|index| {
                thread::Builder::new()
                    .name(format!("gpulower-{index}"))
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, worker)
                    .is_ok()
            })
            .filter(|started| *started)
            .count()
    });
    started > 0
}

struct Slot<J, R> {
    job: Option<J>,
    result: Option<Result<R, JobError>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(super) fn describe(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two threads, and one job that is forgotten.
    struct Forgetful;

    impl Executor for Forgetful {
        fn for_each(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
            thread::scope(|scope| {
                for half in [0..jobs / 2, jobs / 2..jobs - 1] {
                    scope.spawn(|| half.for_each(job));
                }
            });
        }
    }

    #[test]
    fn results_keep_the_order_of_the_jobs() {
        for threads in [Threads::Here, Threads::Own(4), Threads::Own(0)] {
            let results = run(&threads, (0..100).collect(), |job: u32, _| job * 2);
            let expected: Vec<Result<u32, JobError>> = (0..100).map(|job| Ok(job * 2)).collect();
            assert_eq!(results, expected, "{threads:?}");
        }
    }

    #[test]
    fn a_panic_is_one_jobs_error() {
        let results = run(&Threads::Own(2), vec![1, 2, 3], |job: u32, _| {
            assert!(job != 2, "job two");
            job
        });
        assert_eq!(results[0], Ok(1));
        assert!(matches!(&results[1], Err(JobError::Unexpected(text)) if text.contains("job two")));
        assert_eq!(results[2], Ok(3));
    }

    #[test]
    fn the_embedders_threads_are_used_and_a_job_that_they_forget_fails() {
        let results = run(
            &Threads::Theirs(Arc::new(Forgetful)),
            vec![1, 2, 3, 4],
            |job: u32, _| {
                let name = thread::current().name().map(str::to_owned);
                (job, name)
            },
        );
        let expected = |job| Ok((job, None));
        assert_eq!(results[..3], [expected(1), expected(2), expected(3)]);
        assert_eq!(results[3], Err(JobError::Unexpected("a job was not run".to_owned())));
    }

    /// The most pieces of jobs that are carried out at once.
    fn most_at_once(threads: &Threads, jobs: usize, pieces: usize) -> usize {
        let (now, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let results = run(threads, (0..jobs).collect(), |_: usize, spare| {
            spare.for_each(pieces, &|_| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(std::time::Duration::from_millis(2));
                now.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
            });
        });
        assert!(results.iter().all(Result::is_ok));
        assert_eq!(done.into_inner(), jobs * pieces, "{threads:?}");
        most.into_inner()
    }

    #[test]
    fn pieces_use_the_threads_that_are_left_and_no_more() {
        assert_eq!(most_at_once(&Threads::Here, 2, 8), 1);
        assert_eq!(most_at_once(&Threads::Theirs(Arc::new(Two)), 1, 8), 1);
        assert_eq!(most_at_once(&Threads::Own(1), 3, 8), 1);
        // Threads that no job took, and threads that found no more jobs.
        let alone = most_at_once(&Threads::Own(4), 1, 100);
        assert!((2..=4).contains(&alone), "{alone}");
        let several = most_at_once(&Threads::Own(3), 5, 40);
        assert!((2..=3).contains(&several), "{several}");
    }

    /// Two threads of somebody else's.
    struct Two;

    impl Executor for Two {
        fn for_each(&self, jobs: usize, job: &(dyn Fn(usize) + Sync)) {
            thread::scope(|scope| {
                for half in [0..jobs / 2, jobs / 2..jobs] {
                    scope.spawn(|| half.for_each(job));
                }
            });
        }
    }

    #[test]
    fn a_panic_in_a_piece_is_the_jobs_error_and_its_thread_comes_back() {
        let results = run(&Threads::Own(2), vec![0, 1], |job: u32, spare| {
            spare.for_each(4, &|piece| assert!(job != 0 || piece != 2, "piece two"));
            job
        });
        assert!(results[0].is_err());
        assert_eq!(results[1], Ok(1));
    }
}
