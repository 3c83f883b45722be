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

/// Does `work`, which asks nobody, as a step that what watches this thread knows by a name.
pub(crate) fn uninterruptible<R>(step: &str, work: impl FnOnce() -> R) -> R {
    ask(Bytes::new(step.as_bytes()));
    let result = work();
    ask(Bytes::new(b""));
    result
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

#[cfg(test)]
mod tests {
    use melior::{Context, pass::PassManager};

    use super::*;
    use crate::bridge::{
        contain::LlvmError,
        llvm::{DeviceContext, EmitKind},
        mlir,
        target_machine::TargetMachine,
    };

    /// Folds away where anything is done.
    const MODULE: &str = "target triple = \"amdgcn-amd-amdhsa\"\n\
        define amdgpu_kernel void @k(ptr %p) {\n  %v = alloca i32, addrspace(5)\n  store i32 1, ptr addrspace(5) %v\n  %x = load i32, ptr addrspace(5) %v\n\
        \x20 store i32 %x, ptr %p\n  ret void\n}\n";

    fn machine() -> TargetMachine {
        TargetMachine::new("amdgcn-amd-amdhsa", "gfx942", "", 3, false).expect("a machine")
    }

    /// Counts how often somebody asks, and says that work is to end after so many times.
    fn after<R>(most: usize, work: impl FnOnce() -> R) -> (R, bool, usize) {
        let asked = Cell::new(0);
        let (result, ended) = watched(
            &|| {
                asked.set(asked.get() + 1);
                asked.get() > most
            },
            work,
        );
        (result, ended.is_some(), asked.get())
    }

    #[test]
    fn llvms_passes_end_between_two_of_them() {
        let optimized = |most| {
            let context = DeviceContext::new();
            let module = context.parse(MODULE.as_bytes(), "m").expect("reads");
            let (result, ended, asked) = after(most, || module.run_passes(&machine(), "default<O3>").map(drop));
            assert_eq!(result, Ok(()), "what is left of it is valid");
            (!module.to_text().expect("text").contains("alloca"), ended, asked)
        };
        let (is_optimized, ended, passes) = optimized(usize::MAX);
        assert!(is_optimized && !ended && passes > 20, "{passes}");
        // Nobody is asked again.
        assert_eq!(optimized(1), (false, true, 2));
    }

    #[test]
    fn llvms_code_generation_ends_between_two_passes() {
        let emitted = |most| {
            let context = DeviceContext::new();
            let module = context.parse(MODULE.as_bytes(), "m").expect("reads");
            module.set_target(&machine()).expect("set");
            after(most, || module.emit(&machine(), EmitKind::Object))
        };
        let (whole, ended, passes) = emitted(usize::MAX);
        assert!(whole.is_ok() && !ended && passes > 20, "{passes}");
        for most in [0, 1, passes / 2, passes - 1] {
            let (result, ended, asked) = emitted(most);
            assert!(matches!(result, Err(LlvmError::Fatal(_))) && ended, "{result:?}");
            assert_eq!(asked, most + 1);
        }
        // It is nothing that stays.
        assert_eq!(emitted(usize::MAX).0, whole);
    }

    #[test]
    fn mlirs_passes_and_patterns_end() {
        let canonical = |most| {
            let registry = melior::dialect::DialectRegistry::new();
            melior::utility::register_all_dialects(&registry);
            let context: Context = mlir::context_without_threads(&registry);
            context.load_all_available_dialects();
            let text = b"func.func @f(%x: i32) -> i32 { %zero = arith.constant 0 : i32\n\
                %0 = arith.addi %x, %zero : i32\nfunc.return %0 : i32 }";
            let mut module = mlir::parse_module(&context, "m", text).expect("reads");
            let manager = PassManager::new(&context);
            melior::pass::transform::register_canonicalizer();
            melior::utility::parse_pass_pipeline(
                manager.as_operation_pass_manager(),
                "builtin.module(canonicalize,canonicalize,canonicalize)",
            )
            .expect("a pipeline");
            let (result, ended, asked) = after(most, || mlir::run_passes(manager, &mut module));
            assert_eq!(result, Ok(()));
            (!module.as_operation().to_string().contains("arith.addi"), ended, asked)
        };
        let (is_canonical, ended, steps) = canonical(usize::MAX);
        assert!(is_canonical && !ended && steps >= 3, "{steps}");
        assert_eq!(canonical(0), (false, true, 1));
    }
}
