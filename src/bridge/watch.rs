//! Ends work of LLVM's and MLIR's between two of its steps.

use std::{
    cell::{Cell, RefCell},
    ffi::c_void,
    panic::catch_unwind,
    ptr::null,
    sync::Once,
    time::{Duration, Instant},
};

use llvm_sys::prelude::LLVMContextRef;
use mlir_sys::MlirContext;

use super::contain::{Bytes, Uncontained};

unsafe extern "C-unwind" {
    fn gpulowerSetWatch(watch: extern "C" fn(Bytes) -> bool);
    fn gpulowerWatchContext(context: LLVMContextRef);
    fn gpulowerWatchMlirContext(context: MlirContext);
}

/// The end of some work before it was done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    /// What could not be interrupted: what was going on when the work was to end.
    pub(crate) step: String,
    /// How long it went on since the watch had been asked the time before.
    pub(crate) time: Duration,
}

struct Watch<'a> {
    is_to_end: &'a dyn Fn() -> bool,
    step: RefCell<String>,
    asked: Cell<Instant>,
    ended: RefCell<Option<Ended>>,
    outer: *const c_void,
}

thread_local! {
    /// The innermost [`Watch`] of the thread.
    static CURRENT: Cell<*const c_void> = const { Cell::new(null()) };
}

/// While `work` is done on this thread, LLVM and MLIR ask between their steps whether it is to end, and do nothing any more
/// once it is. Then what came of the work is of no use, even if it looks like a success.
pub(crate) fn watched<R>(is_to_end: &dyn Fn() -> bool, work: impl FnOnce() -> R) -> (R, Option<Ended>) {
    struct Reset(*const c_void);
    impl Drop for Reset {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    static ONCE: Once = Once::new();
    // SAFETY: the function lives as long as the process.
    ONCE.call_once(|| unsafe { gpulowerSetWatch(ask) });
    let watch = Watch {
        is_to_end,
        step: RefCell::default(),
        asked: Cell::new(Instant::now()),
        ended: RefCell::default(),
        outer: CURRENT.get(),
    };
    let reset = Reset(watch.outer);
    CURRENT.set((&raw const watch).cast());
    let result = work();
    drop(reset);
    (result, watch.ended.into_inner())
}

impl Watch<'_> {
    fn ask(&self, step: &str) -> bool {
        if self.ended.borrow().is_some() {
            return true;
        }
        let now = Instant::now();
        let since = now.saturating_duration_since(self.asked.replace(now));
        if (self.is_to_end)() {
            let step = self.step.take();
            *self.ended.borrow_mut() = Some(Ended { step, time: since });
            return true;
        }
        if !step.is_empty() {
            let mut current = self.step.borrow_mut();
            current.clear();
            current.push_str(step);
        }
        false
    }
}

extern "C" fn ask(step: Bytes) -> bool {
    let _uncontained = Uncontained::new();
    let watch = CURRENT.get().cast::<Watch<'_>>();
    if watch.is_null() {
        return false;
    }
    // SAFETY: the watch is on the stack of this thread, below, until `watched` resets the pointer; the bytes live during the
    // call.
    let (watch, step) = unsafe { (&*watch, step.as_slice()) };
    let step = std::str::from_utf8(step).unwrap_or_default();
    catch_unwind(std::panic::AssertUnwindSafe(|| watch.ask(step))).unwrap_or(true)
}

/// Code generation in this context asks. It has no handler of diagnostics yet.
///
/// # Safety
///
/// The context is alive.
pub(super) unsafe fn watch_llvm(context: LLVMContextRef) {
    // SAFETY: the caller's.
    unsafe { gpulowerWatchContext(context) }
}

/// Passes and patterns in this context ask.
///
/// # Safety
///
/// The context is alive, and nobody else uses it yet.
pub(super) unsafe fn watch_mlir(context: MlirContext) {
    // SAFETY: the caller's.
    unsafe { gpulowerWatchMlirContext(context) }
}
