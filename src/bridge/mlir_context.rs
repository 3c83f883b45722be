//! MLIR contexts that change threads.

use melior::Context;

/// A context that may be handed to another thread. It is made here, by a function that has nothing of its thread's, and lent
/// since: no value of it is elsewhere. Handlers of diagnostics, which would come along, are detached where they are attached
/// (`mlir::capture_diagnostics`).
#[derive(Debug)]
pub(crate) struct OwnedContext(Context);

// SAFETY: an MLIR context belongs to no thread; what works in it asks that no two threads do so at once without its locks.
// Whoever has this value is the only one who has the context, and all modules of it borrow it.
unsafe impl Send for OwnedContext {}

impl OwnedContext {
    /// Makes a context.
    pub(crate) fn new(make: fn() -> Context) -> Self {
        Self(make())
    }

    /// The context.
    pub(crate) const fn context(&self) -> &Context {
        &self.0
    }
}
