use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

fn run<J: Send, R: Send>(
    threads: Threads,
    jobs: Vec<J>,
    work: impl Fn(J, Helpers<'_>) -> R + Sync,
) -> Vec<Result<R, String>> {
    let results = Pool::new(threads).run(true, jobs, work).into_iter();
    results
        .map(|result| result.map_err(|cause| cause.to_string()))
        .collect()
}

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
    for threads in [Threads::Own(1), Threads::Own(4), Threads::Own(0)] {
        let results = run(threads.clone(), (0..100).collect(), |job: u32, _| job * 2);
        let expected: Vec<Result<u32, String>> = (0..100).map(|job| Ok(job * 2)).collect();
        assert_eq!(results, expected, "{threads:?}");
    }
}

#[test]
fn a_panic_is_one_jobs_error() {
    let results = run(Threads::Own(2), vec![1, 2, 3], |job: u32, _| {
        assert!(job != 2, "job two");
        job
    });
    assert_eq!(results[0], Ok(1));
    assert!(matches!(&results[1], Err(text) if text.contains("job two")));
    assert_eq!(results[2], Ok(3));
}

#[test]
fn the_embedders_threads_are_used_and_a_job_that_they_forget_fails() {
    let results = run(Threads::Theirs(Arc::new(Forgetful)), vec![1, 2, 3, 4], |job: u32, _| {
        let name = thread::current().name().map(str::to_owned);
        (job, name)
    });
    let expected = |job| Ok((job, None));
    assert_eq!(results[..3], [expected(1), expected(2), expected(3)]);
    let forgotten = "internal error: a job was not run (this is a bug in gpulower)";
    assert_eq!(results[3], Err(forgotten.to_owned()));
}

/// The most pieces of jobs that are carried out at once.
fn most_at_once(threads: Threads, jobs: usize, pieces: usize) -> usize {
    let (now, most, done) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let results = run(threads.clone(), (0..jobs).collect(), |_: usize, helpers| {
        helpers.for_each(pieces, &|_| {
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
    assert_eq!(most_at_once(Threads::Own(1), 3, 8), 1);
    // The embedder's threads carry out the pieces of one job; of several, each does its own.
    assert!((1..=2).contains(&most_at_once(Threads::Theirs(Arc::new(Two)), 1, 8)));
    assert!((1..=2).contains(&most_at_once(Threads::Theirs(Arc::new(Two)), 4, 8)));
    // Threads that no job took, and threads that found no more jobs.
    let alone = most_at_once(Threads::Own(4), 1, 100);
    assert!((2..=4).contains(&alone), "{alone}");
    let several = most_at_once(Threads::Own(3), 5, 40);
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
    let results = run(Threads::Own(2), vec![0, 1], |job: u32, helpers| {
        helpers.for_each(4, &|piece| assert!(job != 0 || piece != 2, "piece two"));
        job
    });
    assert!(results[0].is_err());
    assert_eq!(results[1], Ok(1));
}

/// A job that says that it began, and then waits for its channel.
fn held(maker: &JobMaker, begun: &Sender<u32>, number: u32) -> Sender<()> {
    let (release, wait): (Sender<()>, Receiver<()>) = channel();
    let begun = begun.clone();
    maker
        .run(move || {
            begun.send(number).expect("somebody listens");
            let _ = wait.recv();
        })
        .expect("enqueued");
    release
}

#[test]
fn no_more_threads_than_allowed_and_jobs_begin_in_order() {
    let pool = Pool::new(Threads::Own(2));
    let maker = pool.maker(7);
    let (begun, beginnings) = channel();
    let mut releases: VecDeque<_> = (0..4).map(|number| held(&maker, &begun, number)).collect();
    let mut first = [beginnings.recv().expect("one"), beginnings.recv().expect("two")];
    first.sort_unstable();
    assert_eq!(first, [0, 1]);
    assert_eq!(pool.shared.lock().ahead.len(), 2);
    assert_eq!(pool.shared.free(&pool.shared.lock()), 0, "none is left to help");
    assert!(beginnings.try_recv().is_err(), "both threads are busy");
    for expected in [2, 3] {
        drop(releases.pop_front());
        assert_eq!(beginnings.recv(), Ok(expected));
    }
}

#[test]
fn a_panic_does_not_end_a_thread() {
    let maker = Pool::new(Threads::Own(1)).maker(1);
    maker.run(|| panic!("on purpose")).expect("enqueued");
    let (done, wait) = channel();
    maker
        .run(move || done.send(7).expect("somebody listens"))
        .expect("enqueued");
    assert_eq!(wait.recv(), Ok(7));
}

#[test]
fn the_end_waits_for_what_began_and_drops_the_rest() {
    let pool = Pool::new(Threads::Own(2));
    let maker = pool.maker(1);
    let (begun, beginnings) = channel();
    let release = held(&maker, &begun, 0);
    let _never = held(&maker, &begun, 1);
    assert_eq!(beginnings.recv(), Ok(0));
    let ending = thread::spawn(move || drop(maker));
    while !pool.shared.lock().queue.is_empty() {
        thread::yield_now();
    }
    assert!(!ending.is_finished(), "it waits for the first job");
    drop((begun, release));
    ending.join().expect("ends");
    assert!(beginnings.recv().is_err(), "the second job never began");
}
