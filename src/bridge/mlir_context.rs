//! MLIR contexts that change threads.

use melior::Context;

/// A context that may be handed to another thread. Nothing in it is kept outside of it while it is.
#[derive(Debug)]
pub struct OwnedContext(Context);

// SAFETY: an MLIR context belongs to no thread; what works in it asks that no two threads do so at once without its locks.
// Whoever has this value is the only one who has the context, and all modules of it borrow it.
unsafe impl Send for OwnedContext {}

impl OwnedContext {
    /// Takes a context over.
    pub const fn adopt(context: Context) -> Self {
        Self(context)
    }

    /// The context.
    pub const fn context(&self) -> &Context {
        &self.0
    }
}
