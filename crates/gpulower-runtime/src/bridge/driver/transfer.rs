//! Copies between pinned host memory and a device that nobody waits for yet.

use std::ffi::c_void;

use super::entered::Entered;
use super::error::DriverError;
use super::event::Event;
use super::functions::Code;
use super::pinned::PinnedBuffer;
use super::stream::Stream;

/// A copy between pinned host memory and a device that was enqueued.
///
/// It keeps the memory until the copy is done. Dropping it waits for that; forgetting it leaks the memory.
#[derive(Debug)]
pub struct Transfer {
    memory: Option<PinnedBuffer>,
    done: Event,
}

impl Transfer {
    /// Enqueues `copy`, which gets the address of the host memory, and an event behind it.
    pub(super) fn start(
        mut memory: PinnedBuffer,
        stream: &Stream,
        call: &'static str,
        copy: impl FnOnce(&Entered<'_>, *mut c_void) -> Code,
    ) -> Result<Self, DriverError> {
        // The event comes first: once the copy is enqueued, its end has to be told.
        let done = stream.context().event()?;
        if memory.bytes() > 0 {
            let start = memory.start();
            let entered = stream.context().enter_beside(memory.context(), call)?;
            entered.check(copy(&entered, start))?;
        }
        let transfer = Self {
            memory: Some(memory),
            done,
        };
        match transfer.done.record(stream) {
            Ok(()) => Ok(transfer),
            Err(error) => {
                // Without the event only the whole stream tells when the copy is done.
                let waited = stream.synchronize();
                transfer.abandon(&waited);
                Err(error)
            }
        }
    }

    /// Gives the memory up: leaks it, if a copy may still use it.
    fn abandon(mut self, waited: &Result<(), DriverError>) {
        let memory = self.memory.take();
        if may_be_in_use(waited) {
            std::mem::forget(memory);
        }
    }

    /// Whether the copy is done. Does not wait.
    ///
    /// # Errors
    ///
    /// [`DriverError`]; that of a kernel before it, too.
    pub fn is_done(&self) -> Result<bool, DriverError> {
        self.done.is_done()
    }

    /// Waits until the copy is done, and gives the memory back.
    ///
    /// # Errors
    ///
    /// [`DriverError`]; that of a kernel before it, too.
    pub fn wait(mut self) -> Result<PinnedBuffer, DriverError> {
        let waited = self.done.synchronize();
        let memory = self.memory.take();
        match (waited, memory) {
            (Ok(()), Some(memory)) => Ok(memory),
            // It is taken by nothing but this.
            (Ok(()), None) => Err(DriverError::ContextReset {
                call: "waiting for a copy",
            }),
            (Err(error), memory) => {
                if may_be_in_use(&Err(error.clone())) {
                    std::mem::forget(memory);
                }
                Err(error)
            }
        }
    }
}

/// Whether a copy may go on after its end could not be waited for: not in a context that is lost or reset.
fn may_be_in_use(waited: &Result<(), DriverError>) -> bool {
    waited
        .as_ref()
        .is_err_and(|error| !error.is_context_lost() && !matches!(error, DriverError::ShuttingDown { .. }))
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let Some(memory) = self.memory.take() else {
            return;
        };
        if may_be_in_use(&self.done.synchronize()) {
            tracing::warn!("{memory:?} is leaked: a copy may still use it");
            std::mem::forget(memory);
        }
    }
}
