//! What a process that is ours does where memory ends, or the room for a file.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    ffi::{CStr, c_char},
    ptr::null_mut,
    sync::Mutex,
};

unsafe extern "C-unwind" {
    fn gpulowerTellOfExhaustedMemory(text: *const c_char, end: bool);
    fn gpulowerIgnoreFileSizeSignal();
    fn gpulowerReleaseReserve() -> bool;
    fn gpulowerMemoryWasRefused();
    fn gpulowerPrepareForWant();
    fn gpulowerOutputWasClosed() -> bool;
}

/// Sees to allocations of C++ that fail, in all of the process: called before what is not contained.
pub(super) fn prepare_for_want() {
    // SAFETY: installs handlers, once.
    unsafe { gpulowerPrepareForWant() }
}

/// What stands on the standard error output before a process that has no memory left dies.
pub(crate) const EXHAUSTED: &str = "there is no memory left";

/// What the end of a worker says.
const OF_WORKER: &CStr = c"there is no memory left\n";

/// What the end of a program says.
const OF_PROGRAM: &CStr =
    c"error: there is no memory left; raise the limit (ulimit -v), compile less at once, or on a \
    machine with more, or with --isolation=worker, whose end is an error like others\n";

fn tell(text: &'static CStr, end: bool) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    // SAFETY: the handler calls nothing but mmap, munmap, write, _exit and sigaction, and the handler before it; installed
    // once, it never becomes its own predecessor. The text is static, and one thread at a time is here.
    unsafe { gpulowerTellOfExhaustedMemory(text.as_ptr(), end) }
}

/// Installs handlers for `SIGSEGV` and `SIGABRT`, for the rest of a worker process, that write [`EXHAUSTED`] where there is
/// no memory, and go on to those that were there.
pub(crate) fn tell_of_exhausted_memory() {
    tell(OF_WORKER, false);
}

/// Whether this process began with a closed standard output: whatever is written there since is lost without an error.
pub fn output_was_closed() -> bool {
    // SAFETY: reads a constant.
    unsafe { gpulowerOutputWasClosed() }
}

/// For programs, first thing in `main`: a process that dies for want of memory ends with status 1 and a message, and a file
/// that may not grow (`ulimit -f`) is a write that fails, and not the end.
///
/// It installs handlers for `SIGSEGV` and `SIGABRT`, and ignores `SIGXFSZ`. Together with [`ReservingAllocator`], most wants
/// of memory are errors as others are.
pub fn fail_in_words() {
    // SAFETY: changes what one signal does.
    unsafe { gpulowerIgnoreFileSizeSignal() }
    prepare_for_want();
    tell(OF_PROGRAM, true);
}

/// The system's allocator, which has a reserve while something is compiled: for programs, as their `#[global_allocator]`.
///
/// A failed allocation of Rust's ends the process. With the reserve, the compilation comes to the next point where the want
/// of memory is an error that it can return.
#[derive(Debug, Default)]
pub struct ReservingAllocator;

/// Larger ones are what the reserve is not for.
const LARGEST: usize = 1 << 20;

/// Does what fails again, with the reserve.
fn again(layout: Layout, allocate: impl Fn() -> *mut u8) -> *mut u8 {
    loop {
        let memory = allocate();
        if !memory.is_null() {
            return memory;
        }
        // SAFETY: gives memory back that nobody uses; sets an atomic variable.
        unsafe {
            if layout.size() > LARGEST || !gpulowerReleaseReserve() {
                gpulowerMemoryWasRefused();
                return null_mut();
            }
        }
    }
}

// SAFETY: all memory is the system allocator's; what asks for it obeys the contract of `GlobalAlloc` in the same way.
unsafe impl GlobalAlloc for ReservingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        again(layout, || unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract.
        again(layout, || unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let wanted = Layout::from_size_align(size, layout.align()).unwrap_or(layout);
        // SAFETY: the caller's contract; a failed attempt leaves the memory as it was.
        again(wanted, || unsafe { System.realloc(pointer, layout, size) })
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}
