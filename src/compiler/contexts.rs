//! MLIR contexts that are used for some compilations, and then given up.
//!
//! To make one costs about as much as to compile a small kernel. To keep one for ever costs memory: a context frees no type,
//! attribute or location before it ends. So each is used again, for a bounded number of compilations.

use std::sync::{Mutex, MutexGuard, PoisonError};

use melior::Context;

use super::input;
use crate::bridge::mlir_context::OwnedContext;

/// Compilations that a context serves. The cost of making it is small beside them, and so is what it keeps of them.
const MOST_USES: usize = 64;

/// A compilation of so many bytes counts as one more: what is kept of it grows with it.
const BYTES_OF_A_USE: usize = 64 << 10;

/// Contexts that nobody is using.
#[derive(Debug)]
pub(crate) struct Contexts {
    idle: Mutex<Vec<Used>>,
    most_idle: usize,
}

#[derive(Debug)]
struct Used {
    context: OwnedContext,
    uses: usize,
}

impl Contexts {
    /// At most so many contexts wait for their next use.
    pub(crate) const fn new(most_idle: usize) -> Self {
        Self {
            idle: Mutex::new(Vec::new()),
            most_idle,
        }
    }

    /// Does work on so many bytes of input in a context that nobody else uses meanwhile. Where the work fails, the context is
    /// not used again; where it `is_fatal`, not even freed.
    pub(crate) fn with<R, E>(
        &self,
        bytes: usize,
        is_fatal: impl Fn(&E) -> bool,
        work: impl FnOnce(&Context) -> Result<R, E>,
    ) -> Result<R, E> {
        let idle = self.lock().pop();
        let mut used = idle.unwrap_or_else(|| Used {
            context: OwnedContext::new(input::context),
            uses: 0,
        });
        used.uses += 1 + bytes / BYTES_OF_A_USE;
        let result = match work(used.context.context()) {
            Ok(result) => result,
            Err(error) => {
                if is_fatal(&error) {
                    std::mem::forget(used);
                }
                return Err(error);
            }
        };
        if used.uses < MOST_USES {
            let mut idle = self.lock();
            if idle.len() < self.most_idle {
                idle.push(used);
            }
        }
        Ok(result)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Used>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: fn(&()) -> bool = |()| false;

    fn uses(contexts: &Contexts) -> Vec<usize> {
        contexts.lock().iter().map(|used| used.uses).collect()
    }

    #[test]
    fn a_context_is_used_again_and_not_for_ever() {
        let contexts = Contexts::new(2);
        for expected in 1..MOST_USES {
            contexts.with(0, NEVER, |_| Ok::<_, ()>(())).expect("works");
            assert_eq!(uses(&contexts), [expected]);
        }
        contexts.with(0, NEVER, |_| Ok::<_, ()>(())).expect("works");
        assert!(uses(&contexts).is_empty(), "it was given up");
    }

    #[test]
    fn a_large_input_uses_a_context_up() {
        let contexts = Contexts::new(2);
        contexts
            .with(10 * BYTES_OF_A_USE, NEVER, |_| Ok::<_, ()>(()))
            .expect("works");
        assert_eq!(uses(&contexts), [11]);
        contexts
            .with(MOST_USES * BYTES_OF_A_USE, NEVER, |_| Ok::<_, ()>(()))
            .expect("works");
        assert!(uses(&contexts).is_empty(), "it was given up");
    }

    #[test]
    fn a_context_in_which_something_failed_is_given_up() {
        let contexts = Contexts::new(2);
        contexts.with(0, NEVER, |_| Ok::<_, ()>(())).expect("works");
        assert_eq!(contexts.with(0, NEVER, |_| Err::<(), _>(())), Err(()));
        assert!(uses(&contexts).is_empty());
    }

    #[test]
    fn nobody_shares_a_context_and_few_are_kept() {
        let contexts = Contexts::new(2);
        contexts
            .with(0, NEVER, |one| {
                contexts.with(0, NEVER, |two| {
                    contexts.with(0, NEVER, |three| {
                        assert!(one != two && two != three && one != three);
                        Ok::<_, ()>(())
                    })
                })
            })
            .expect("works");
        assert_eq!(uses(&contexts), [1, 1]);
    }
}
