//! Room on the stack for parsers and passes that call themselves for every level of their input.

/// As much as the threads of the pool have.
pub(super) const STACK_BYTES: usize = 64 << 20;

/// Runs `work` on a stack with room for [`super::MAX_LEVELS`]: on the caller's, if that is large enough, else on one that
/// is mapped for the time being. It is the same thread in either case.
pub(crate) fn with_deep_stack<R>(work: impl FnOnce() -> R) -> R {
    stacker::maybe_grow(STACK_BYTES / 2, STACK_BYTES, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(levels: usize) -> usize {
        let room = [levels as u8; 4096];
        std::hint::black_box(&room);
        if levels == 0 { 0 } else { 1 + depth(levels - 1) }
    }

    #[test]
    fn a_thread_with_a_small_stack_gets_room() {
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let reached = thread
            .spawn(|| with_deep_stack(|| depth(5000)))
            .expect("a thread")
            .join();
        assert_eq!(reached.expect("no panic"), 5000);
    }
}
