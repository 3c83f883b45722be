//! A bounded set of threads that work through a list of jobs.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

/// LLVM's passes recurse deeply on large functions.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work` on every job, on at most `threads` threads, or on this one if there are to be none; results keep the order
/// of the jobs. A panic of one job is that job's error.
pub(super) fn run<J: Send, R: Send>(
    threads: usize,
    jobs: Vec<J>,
    work: impl Fn(J) -> R + Sync,
) -> Vec<Result<R, String>> {
    let slots: Vec<Mutex<Slot<J, R>>> = jobs
        .into_iter()
        .map(|job| {
            Mutex::new(Slot {
                job: Some(job),
                result: None,
            })
        })
        .collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some(slot) = slots.get(next.fetch_add(1, Ordering::Relaxed)) {
            let job = lock(slot).job.take();
            if let Some(job) = job {
                let result = catch_unwind(AssertUnwindSafe(|| work(job)));
                lock(slot).result = Some(result.map_err(|panic| describe(&*panic)));
            }
        }
    };
    let started = thread::scope(|scope| {
        (0..threads.min(slots.len()))
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
    if started == 0 {
        worker();
    }
    slots
        .into_iter()
        .map(|slot| {
            slot.into_inner()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .result
                .unwrap_or_else(|| Err("a job was not run".to_owned()))
        })
        .collect()
}

struct Slot<J, R> {
    job: Option<J>,
    result: Option<Result<R, String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn describe(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_jobs() {
        let results = run(4, (0..100).collect(), |job: u32| job * 2);
        let expected: Vec<Result<u32, String>> = (0..100).map(|job| Ok(job * 2)).collect();
        assert_eq!(results, expected);
    }

    #[test]
    fn a_panic_is_one_jobs_error() {
        let results = run(2, vec![1, 2, 3], |job: u32| {
            assert!(job != 2, "job two");
            job
        });
        assert_eq!(results[0], Ok(1));
        assert!(results[1].as_ref().is_err_and(|text| text.contains("job two")));
        assert_eq!(results[2], Ok(3));
    }
}
