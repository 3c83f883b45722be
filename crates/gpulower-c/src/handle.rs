//! Handles: numbers in the guise of pointers, which nothing ever follows.
//!
//! A handle is looked up among those that live, so that NULL, a handle of another kind, one that was freed and one that
//! never was are told apart and are errors. Numbers do not come again. What a call works on lives until the call ends, even
//! if another thread frees the handle meanwhile.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use gpulower::{CancellationToken, Compiler};

use crate::{
    config::Config,
    outcome::Outcome,
    problem::{Problem, Status},
    request::Request,
};

/// What a handle stands for.
#[derive(Clone)]
pub(crate) enum Object {
    Config(Arc<Mutex<Config>>),
    Request(Arc<Mutex<Request>>),
    Compiler(Arc<Compiler>),
    Cancellation(Arc<CancellationToken>),
    Result(Arc<Outcome>),
    Error(Arc<Problem>),
}

impl Object {
    const fn kind(&self) -> &'static str {
        match self {
            Self::Config(_) => "a gpulower_config",
            Self::Request(_) => "a gpulower_request",
            Self::Compiler(_) => "a gpulower_compiler",
            Self::Cancellation(_) => "a gpulower_cancellation",
            Self::Result(_) => "a gpulower_result",
            Self::Error(_) => "a gpulower_error",
        }
    }
}

/// What there are handles of.
pub(crate) trait Handled: Sized {
    const KIND: &'static str;
    fn of(object: &Object) -> Option<Arc<Self>>;
}

macro_rules! handled {
    ($($type:ty: $variant:ident, $kind:literal;)*) => {$(
        impl Handled for $type {
            const KIND: &'static str = $kind;
            fn of(object: &Object) -> Option<Arc<Self>> {
                match object {
                    Object::$variant(object) => Some(Arc::clone(object)),
                    _ => None,
                }
            }
        }
    )*};
}

handled! {
    Mutex<Config>: Config, "a gpulower_config";
    Mutex<Request>: Request, "a gpulower_request";
    Compiler: Compiler, "a gpulower_compiler";
    CancellationToken: Cancellation, "a gpulower_cancellation";
    Outcome: Result, "a gpulower_result";
    Problem: Error, "a gpulower_error";
}

struct Entry {
    object: Object,
    /// The handle that it goes with.
    owner: Option<usize>,
}

static LIVE: RwLock<BTreeMap<usize, Entry>> = RwLock::new(BTreeMap::new());
/// The first is above what might be a small number that was taken for a handle.
static NEXT: AtomicUsize = AtomicUsize::new(0x1_0000);
/// Handles look like addresses of memory that is aligned for anything.
const STEP: usize = 16;

fn add(object: Object, owner: Option<usize>) -> usize {
    let handle = NEXT.fetch_add(STEP, Ordering::Relaxed);
    let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
    live.insert(handle, Entry { object, owner });
    handle
}

/// A new handle.
pub(crate) fn insert(object: Object) -> usize {
    add(object, None)
}

/// A new handle for a result. Its errors and warnings have handles too, which go with it.
pub(crate) fn insert_result(outcome: Outcome) -> usize {
    let outcome = Arc::new(outcome);
    let handle = insert(Object::Result(Arc::clone(&outcome)));
    let parts = |problems: &[Arc<Problem>]| {
        let part = |problem: &Arc<Problem>| add(Object::Error(Arc::clone(problem)), Some(handle));
        problems.iter().map(part).collect::<Vec<usize>>()
    };
    outcome.set_handles(parts(&outcome.errors), parts(&outcome.warnings));
    handle
}

/// What a handle stands for. `argument` is its name in the interface.
pub(crate) fn get<T: Handled>(handle: usize, argument: &str) -> Result<Arc<T>, Problem> {
    let live = LIVE.read().unwrap_or_else(PoisonError::into_inner);
    match live.get(&handle) {
        Some(entry) => T::of(&entry.object)
            .ok_or_else(|| wrong(&format!("{argument} is {}, not {}", entry.object.kind(), T::KIND))),
        None => Err(unknown(handle, argument)),
    }
}

/// Ends a handle. Its object goes with the last call that works on it.
pub(crate) fn free<T: Handled>(handle: usize, argument: &str) -> Result<(), Problem> {
    get::<T>(handle, argument)?;
    let mut live = LIVE.write().unwrap_or_else(PoisonError::into_inner);
    let Some(entry) = live.get(&handle) else {
        return Err(unknown(handle, argument));
    };
    if entry.owner.is_some() {
        return Err(wrong(&format!(
            "{argument} belongs to a gpulower_result, with which it goes"
        )));
    }
    let mut gone: Vec<Entry> = live.remove(&handle).into_iter().collect();
    if let Some(Entry {
        object: Object::Result(outcome),
        ..
    }) = gone.first()
    {
        let parts: Vec<Entry> = outcome.handles().filter_map(|part| live.remove(&part)).collect();
        gone.extend(parts);
    }
    // What is freed may be large, or end workers: nobody waits for that.
    drop(live);
    drop(gone);
    Ok(())
}

fn wrong(message: &str) -> Problem {
    Problem::misuse(Status::InvalidHandle, message)
}

fn unknown(handle: usize, argument: &str) -> Problem {
    wrong(&match handle {
        0 => format!("{argument} is NULL"),
        _ => format!("{argument} was freed, or is no handle of this library"),
    })
}
