//! The threads of a compiler: those of its calls, and of sessions that compile ahead. Never more of them work at once than were
//! allowed, the thread of the caller among them.
//!
//! A call works through its jobs on its own thread and on helper threads; a job may be made of pieces, which are carried out in the same way by
//! those that no job needs.

use std::{
    collections::VecDeque,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread::{self, ThreadId},
};

use super::stack::{STACK_BYTES, on_deep_stack};
use crate::error::Cause;

/// A pool of threads that the embedder has already, and that compilations are to use in the place of threads of their own.
///
/// LLVM recurses deeply on large functions. A thread whose stack is smaller than gpulower's own have, 64 MiB, gets as much
/// for the length of a job. Where there is one job, its pieces (kernels, and parts of large modules) are what `for_each` is called
/// for, and so are the kernels of each input when its text is read, before the jobs begin. The pieces of several jobs are carried out one after the other, since a job that waited for others could keep them from
/// being carried out.
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

/// Whose threads work.
#[derive(Clone)]
pub(super) enum Threads {
    /// At most so many: the caller's, and ours.
    Own(usize),
    /// The embedder's.
    Theirs(Arc<dyn Executor>),
}

impl Threads {
    /// How many jobs are carried out at once, at most, as far as that is known.
    pub(super) fn most(&self) -> usize {
        match self {
            Self::Own(threads) => (*threads).max(1),
            Self::Theirs(_) => thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(threads) => formatter.debug_tuple("Own").field(threads).finish(),
            Self::Theirs(_) => formatter.write_str("Theirs"),
        }
    }
}

/// The threads that work for a compiler.
#[derive(Debug)]
pub(crate) struct Pool {
    threads: Threads,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    most: usize,
    state: Mutex<State>,
    /// A job that nobody waits for has ended.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Threads that help callers.
    helpers: usize,
    /// Threads with jobs that nobody waits for, and for whom.
    ahead: Vec<(usize, ThreadId)>,
    /// Those that have not begun.
    queue: VecDeque<Queued>,
    /// Makers of such jobs so far.
    makers: usize,
}

struct Queued {
    maker: usize,
    /// How many of its maker's are carried out at once, at most.
    most: usize,
    job: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Queued {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Queued")
            .field("maker", &self.maker)
            .finish_non_exhaustive()
    }
}

/// Who carries out the pieces of a job besides its own thread.
#[derive(Clone, Copy)]
pub(super) enum Helpers<'p> {
    /// Nobody.
    None,
    /// Threads of ours, as far as there are any now or later.
    Own(&'p Pool),
    /// The embedder's threads.
    Theirs(&'p dyn Executor),
}

/// What `make` gives for each number below `pieces`, in order; none for a piece that was left out.
pub(super) fn map_each<T: Send>(
    helpers: Helpers<'_>,
    pieces: usize,
    make: impl Fn(usize) -> T + Sync,
) -> Vec<Option<T>> {
    let slots: Vec<Mutex<Option<T>>> = (0..pieces).map(|_| Mutex::new(None)).collect();
    helpers.for_each(pieces, &|index| {
        let made = make(index);
        if let Some(slot) = slots.get(index) {
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        }
    });
    let made = slots.into_iter();
    made.map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}

impl Helpers<'_> {
    /// Calls `piece` once with each number below `pieces`, and returns when all calls have. Numbers are handed out in order.
    pub(super) fn for_each(&self, pieces: usize, piece: &(dyn Fn(usize) + Sync)) {
        match self {
            Self::Own(pool) => pool.shared.for_each(pieces, piece),
            Self::Theirs(executor) if pieces > 1 => executor.for_each(pieces, &|index| {
                // Without the stack the piece is left out, which its job notices.
                let _ = on_deep_stack(|| piece(index));
            }),
            Self::None | Self::Theirs(_) => (0..pieces).for_each(piece),
        }
    }

    /// How many threads would carry out pieces now, the caller's among them.
    pub(super) fn threads(&self) -> usize {
        match self {
            Self::None => 1,
            Self::Own(pool) => pool.shared.free(&pool.shared.lock()) + 1,
            Self::Theirs(_) => thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// All threads that could help now, for somebody else to use until the guard is dropped.
    pub(super) fn lend(&self) -> Lent<'_> {
        let mut lent = Lent {
            shared: None,
            threads: 0,
        };
        if let Self::Own(pool) = self {
            let mut state = pool.shared.lock();
            lent.threads = pool.shared.free(&state);
            lent.shared = Some(&pool.shared);
            state.helpers += lent.threads;
        }
        lent
    }
}

/// Threads that somebody else uses.
pub(super) struct Lent<'p> {
    shared: Option<&'p Arc<Shared>>,
    pub(super) threads: usize,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if let Some(shared) = self.shared {
            shared.lock().helpers -= self.threads;
            shared.begin_queued();
        }
    }
}

impl Pool {
    /// No thread is started yet.
    pub(super) fn new(threads: Threads) -> Self {
        let shared = Shared {
            most: threads.most(),
            state: Mutex::default(),
            ended: Condvar::new(),
        };
        Self {
            threads,
            shared: Arc::new(shared),
        }
    }

    pub(super) const fn threads(&self) -> &Threads {
        &self.threads
    }

    /// Who carries out pieces of what the thread of a caller does.
    pub(super) fn helpers(&self) -> Helpers<'_> {
        match &self.threads {
            Threads::Own(_) => Helpers::Own(self),
            Threads::Theirs(executor) => Helpers::Theirs(&**executor),
        }
    }

    /// Runs `work` on every job; results keep the order of the jobs. A panic of one job is that job's error. On this thread alone
    /// where the jobs may not leave it.
    pub(super) fn run<J: Send, R: Send>(
        &self,
        may_leave: bool,
        jobs: Vec<J>,
        work: impl Fn(J, Helpers<'_>) -> R + Sync,
    ) -> Vec<Result<R, Cause>> {
        let slots: Vec<Mutex<Slot<J, R>>> = jobs
            .into_iter()
            .map(|job| {
                Mutex::new(Slot {
                    job: Some(job),
                    result: None,
                })
            })
            .collect();
        let carry_out = |index: usize, helpers: Helpers<'_>| {
            let Some(slot) = slots.get(index) else { return };
            let carried_out = on_deep_stack(|| {
                let job = lock(slot).job.take();
                if let Some(job) = job {
                    let result = catch_unwind(AssertUnwindSafe(|| work(job, helpers)));
                    lock(slot).result = Some(result.map_err(|panic| Cause::Internal(describe(&*panic))));
                }
            });
            if let Err(error) = carried_out {
                lock(slot).result = Some(Err(error.into()));
            }
        };
        match &self.threads {
            _ if !may_leave => (0..slots.len()).for_each(|index| carry_out(index, Helpers::None)),
            Threads::Own(_) => self
                .shared
                .for_each(slots.len(), &|index| carry_out(index, Helpers::Own(self))),
            Threads::Theirs(executor) if slots.len() == 1 => carry_out(0, Helpers::Theirs(&**executor)),
            Threads::Theirs(executor) => executor.for_each(slots.len(), &|index| carry_out(index, Helpers::None)),
        }
        slots
            .into_iter()
            .map(|slot| {
                slot.into_inner()
                    .unwrap_or_else(PoisonError::into_inner)
                    .result
                    .unwrap_or_else(|| Err(Cause::Internal("a job was not run".to_owned())))
            })
            .collect()
    }

    /// A maker of jobs that nobody waits for, of which so many are carried out at once, at most.
    pub(crate) fn maker(&self, most: usize) -> JobMaker {
        let mut state = self.shared.lock();
        state.makers += 1;
        JobMaker {
            shared: Arc::clone(&self.shared),
            number: state.makers,
            most: most.max(1),
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// How many more threads may help. One thread works already: a caller's, or one that has a job of a maker's.
    fn free(&self, state: &State) -> usize {
        self.most.saturating_sub(state.helpers + state.ahead.len().max(1))
    }

    fn for_each(self: &Arc<Self>, pieces: usize, piece: &(dyn Fn(usize) + Sync)) {
        let next = AtomicUsize::new(0);
        let take = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < pieces);
        thread::scope(|scope| {
            while let Some(index) = take() {
                for _ in next.load(Ordering::Relaxed)..pieces {
                    let Some(helper) = self.help() else { break };
                    let help = move || {
                        let _helper = helper;
                        while let Some(index) = take() {
                            piece(index);
                        }
                    };
                    // Without another thread this one does it all.
                    let _ = thread::Builder::new()
                        .name("gpulower-helper".to_owned())
                        .stack_size(STACK_BYTES)
                        .spawn_scoped(scope, help);
                }
                piece(index);
            }
        });
    }

    /// The right to one more thread, if there may be one.
    fn help(self: &Arc<Self>) -> Option<Lent<'_>> {
        let mut state = self.lock();
        let free = self.free(&state).min(1);
        state.helpers += free;
        // Made only where there is one: to drop it takes the lock that is held here.
        (free > 0).then(|| Lent {
            shared: Some(self),
            threads: free,
        })
    }

    /// Starts threads for jobs that nobody waits for, as far as there may be any: one in any case.
    fn begin_queued(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            let is_room = state.ahead.is_empty() || state.helpers + state.ahead.len() < self.most;
            let Some(queued) = is_room.then(|| state.next()).flatten() else {
                return;
            };
            let shared = Arc::clone(self);
            let (maker, most) = (queued.maker, queued.most);
            let job = Arc::new(Mutex::new(Some(queued.job)));
            let started = thread::Builder::new()
                .name("gpulower-ahead".to_owned())
                .stack_size(STACK_BYTES)
                .spawn({
                    let job = Arc::clone(&job);
                    move || shared.carry_out(maker, &job)
                });
            match started {
                Ok(thread) => state.ahead.push((maker, thread.thread().id())),
                Err(error) => {
                    tracing::debug!(%error, "a thread cannot be started");
                    if let Some(job) = lock(&job).take() {
                        state.queue.push_front(Queued { maker, most, job });
                    }
                    return;
                }
            }
        }
    }

    fn carry_out(self: Arc<Self>, maker: usize, job: &Mutex<Option<Box<dyn FnOnce() + Send>>>) {
        let job = lock(job).take();
        // What a job has to say of its panic, it says itself.
        let _ = catch_unwind(AssertUnwindSafe(|| job.map(|job| job())));
        let this = (maker, thread::current().id());
        // The entry is made by who started this thread, under the lock that it holds meanwhile.
        self.lock().ahead.retain(|entry| *entry != this);
        self.ended.notify_all();
        self.begin_queued();
    }
}

impl State {
    /// The next job whose maker may have one more carried out.
    fn next(&mut self) -> Option<Queued> {
        let at_work = |maker| self.ahead.iter().filter(|(of, _)| *of == maker).count();
        let place = self
            .queue
            .iter()
            .position(|queued| at_work(queued.maker) < queued.most)?;
        self.queue.remove(place)
    }
}

/// Makes jobs that nobody waits for, and that begin in the order in which they come.
#[derive(Debug)]
pub(crate) struct JobMaker {
    shared: Arc<Shared>,
    number: usize,
    most: usize,
}

impl JobMaker {
    /// Enqueues a job.
    ///
    /// # Errors
    ///
    /// No thread could be started, and none is there.
    pub(crate) fn run(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        self.shared.lock().queue.push_back(Queued {
            maker: self.number,
            most: self.most,
            job: Box::new(job),
        });
        self.shared.begin_queued();
        let mut state = self.shared.lock();
        if state.ahead.is_empty() && state.queue.iter().any(|queued| queued.maker == self.number) {
            state.queue.retain(|queued| queued.maker != self.number);
            return Err(io::Error::other("no thread could be started"));
        }
        Ok(())
    }
}

impl Drop for JobMaker {
    /// Drops the jobs that were not begun, and waits for those that were: a thread must not be inside of LLVM when the process
    /// ends.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let (own, others) = std::mem::take(&mut state.queue)
            .into_iter()
            .partition::<VecDeque<_>, _>(|queued| queued.maker == self.number);
        state.queue = others;
        drop(state);
        drop(own);
        let current = thread::current().id();
        let mut state = self.shared.lock();
        // A job may be what drops its maker last.
        while state
            .ahead
            .iter()
            .any(|&(maker, thread)| maker == self.number && thread != current)
        {
            state = self.shared.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Slot<J, R> {
    job: Option<J>,
    result: Option<Result<R, Cause>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn describe(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic".to_owned())
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
