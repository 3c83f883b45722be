//! Streams: work that a device does in order.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::Arc;

use super::context::{Context, Handle};
use super::error::DriverError;
use super::event::Event;

/// `CU_STREAM_NON_BLOCKING`, `hipStreamNonBlocking`.
const NON_BLOCKING: u32 = 1;

/// Work that a device does one piece after the other. Work in different streams may overlap.
///
/// Clones share one stream. It is `Send` and `Sync`: two threads may enqueue into one stream, in the order in which they come.
/// Dropping the last clone lets what was enqueued go on; nothing waits for it.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    context: Context,
    handle: Handle,
    /// Whether it is destroyed with this value.
    owned: bool,
}

impl Context {
    /// A new stream, which does not wait for the default stream, nor that for it.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn stream(&self) -> Result<Stream, DriverError> {
        self.stream_with_priority(0)
    }

    /// As [`stream`](Self::stream), with a priority: smaller numbers go first, 0 is the usual one. A number outside of what
    /// the device has counts as the nearest that it has.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn stream_with_priority(&self, priority: i32) -> Result<Stream, DriverError> {
        let entered = self.enter("creating a stream")?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is valid for one write.
        entered.check(unsafe { (entered.functions().stream_create)(&raw mut handle, NON_BLOCKING, priority) })?;
        Ok(self.stream_of(handle, true))
    }

    /// The priorities that make a difference, the most urgent first: (-5, 0).
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn stream_priorities(&self) -> Result<(i32, i32), DriverError> {
        let entered = self.enter("the priorities of streams")?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the pointers are valid for one write each.
        entered.check(unsafe { (entered.functions().stream_priorities)(&raw mut least, &raw mut greatest) })?;
        Ok((greatest, least))
    }

    /// The default stream, which waits for other libraries' blocking streams, and they for it.
    #[must_use]
    pub fn default_stream(&self) -> Stream {
        self.stream_of(ptr::null_mut(), false)
    }

    /// A stream of another library: `CUstream`, `cudaStream_t` or `hipStream_t`. It stays theirs to destroy.
    ///
    /// # Safety
    ///
    /// The handle is a stream of this context, and is not destroyed before the last clone of the value is dropped.
    pub unsafe fn stream_from_raw(&self, handle: *mut c_void) -> Stream {
        self.stream_of(handle, false)
    }

    fn stream_of(&self, handle: *mut c_void, owned: bool) -> Stream {
        Stream(Arc::new(Inner {
            context: self.clone(),
            handle: Handle(handle),
            owned,
        }))
    }
}

impl Stream {
    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// `CUstream` or `hipStream_t`, for other libraries: valid as long as a clone of this lives and the context is not reset.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.0.handle.0
    }

    /// Waits until everything that was enqueued is done.
    ///
    /// # Errors
    ///
    /// [`DriverError`]; that of a kernel that failed, mostly [`DriverError::ContextLost`].
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let entered = self.context().enter("waiting for a stream")?;
        // SAFETY: the stream lives, and its context is current.
        entered.check(unsafe { (entered.functions().stream_synchronize)(self.raw()) })
    }

    /// Whether everything that was enqueued is done. Does not wait.
    ///
    /// # Errors
    ///
    /// As [`synchronize`](Self::synchronize).
    pub fn is_done(&self) -> Result<bool, DriverError> {
        let entered = self.context().enter("asking whether a stream is done")?;
        // SAFETY: the stream lives, and its context is current.
        entered.check_done(unsafe { (entered.functions().stream_query)(self.raw()) })
    }

    /// Lets what is enqueued from here on wait until `event` has happened. The caller does not wait.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn wait_for(&self, event: &Event) -> Result<(), DriverError> {
        // The event may be of another device's context: that is how devices wait for each other.
        let entered = self.context().enter_beside(event.context(), "letting a stream wait")?;
        // SAFETY: stream and event live, and the stream's context is current.
        entered.check(unsafe { (entered.functions().stream_wait)(self.raw(), event.raw(), 0) })
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        if let Some(entered) = self.context.enter_to_release("destroying a stream") {
            // SAFETY: it is ours, and this is its end. The driver keeps what is in it until that is done.
            entered.log(unsafe { (entered.functions().stream_destroy)(self.handle.0) });
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stream({:p} of {:?})", self.raw(), self.context().device())
    }
}
