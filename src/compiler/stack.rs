//! Room on the stack for parsers and passes that call themselves for every level of their input.

use std::cell::Cell;

use super::InputError;
use crate::{bridge::stack::check_room, error::Error, stage::Stage};

/// As much as the threads of the pool have.
pub(super) const STACK_BYTES: usize = 64 << 20;

/// What [`with_deep_stack`] leaves as it is.
const ENOUGH_BYTES: usize = STACK_BYTES / 2;

/// A stack with less room than any on which [`with_deep_stack`] runs its work: what does not overflow on it, under
/// [`without_growth`], does not overflow there.
pub(super) const SMALLER_STACK_BYTES: usize = ENOUGH_BYTES - (1 << 20);

thread_local! {
    static MAY_GROW: Cell<bool> = const { Cell::new(true) };
}

/// Runs `work` on a stack with room for [`super::MAX_LEVELS`]: on the caller's, if that is large enough, else on one that
/// is mapped for the time being. It is the same thread in either case.
pub(crate) fn with_deep_stack<R, E: From<Error>>(work: impl FnOnce() -> Result<R, E>) -> Result<R, E> {
    on_deep_stack(work).map_err(|error| Error::new(Stage::Plan, error))?
}

/// The same. The only error is [`InputError::Stack`].
pub(super) fn on_deep_stack<R>(work: impl FnOnce() -> R) -> Result<R, InputError> {
    let has_enough = stacker::remaining_stack().is_some_and(|left| left >= ENOUGH_BYTES);
    if has_enough || !MAY_GROW.get() {
        return Ok(work());
    }
    // `stacker` panics where this fails.
    check_room(STACK_BYTES).map_err(|error| InputError::Stack {
        reason: error.to_string(),
    })?;
    Ok(stacker::grow(STACK_BYTES, work))
}

/// Runs `work`, in which [`with_deep_stack`] stays on the stack that there is.
pub(super) fn without_growth<R>(work: impl FnOnce() -> R) -> R {
    let before = MAY_GROW.replace(false);
    let result = work();
    MAY_GROW.set(before);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(levels: usize) -> usize {
        let room = [levels as u8; 4096];
        std::hint::black_box(&room);
        if levels == 0 { 0 } else { 1 + depth(levels - 1) }
    }

    fn on_a_small_stack<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
        let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(work);
        thread.expect("a thread").join().expect("no panic")
    }

    fn room() -> Result<usize, InputError> {
        on_deep_stack(|| stacker::remaining_stack().expect("known"))
    }

    #[test]
    fn a_thread_with_a_small_stack_gets_room() {
        let reached = on_a_small_stack(|| on_deep_stack(|| depth(5000)));
        assert_eq!(reached.expect("room"), 5000);
        assert!(on_a_small_stack(room).expect("room") > ENOUGH_BYTES);
    }

    #[test]
    fn without_growth_there_is_no_more_room_than_there_was() {
        let (inside, after) = on_a_small_stack(|| (without_growth(room), room()));
        assert!(inside.expect("the stack as it is") < 256 << 10);
        assert!(after.expect("room") > ENOUGH_BYTES);
    }
}
