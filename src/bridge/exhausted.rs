//! Telling a crash for want of memory from others: for worker processes, which are ours.

unsafe extern "C-unwind" {
    fn gpulowerTellOfExhaustedMemory();
}

/// What stands on the standard error output before a segmentation fault ends a process that has no memory left.
pub(crate) const EXHAUSTED: &str = "segmentation fault with no memory left";

/// Installs a handler for `SIGSEGV`, for the rest of the process, that writes [`EXHAUSTED`] where it is so, and goes on to
/// the handler that was there.
pub(crate) fn tell_of_exhausted_memory() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: the handler calls nothing but mmap, munmap, write and sigaction, and the handler before it; installed once,
    // it never becomes its own predecessor.
    ONCE.call_once(|| unsafe { gpulowerTellOfExhaustedMemory() });
}
