//! Events: points in the work of a stream.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::time::Duration;

use super::context::{Context, Handle};
use super::error::DriverError;
use super::stream::Stream;

/// `CU_EVENT_DISABLE_TIMING`, `hipEventDisableTiming`.
const DISABLE_TIMING: u32 = 2;

/// A point in the work of a stream. It has happened when everything that was enqueued before it is done.
///
/// `Send` and `Sync`, as streams are.
pub struct Event {
    context: Context,
    handle: Handle,
}

impl Context {
    /// A new event, which waits for nothing until it is recorded.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn event(&self) -> Result<Event, DriverError> {
        self.event_with(DISABLE_TIMING)
    }

    /// As [`event`](Self::event), and the time of two of them can be compared.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn timing_event(&self) -> Result<Event, DriverError> {
        self.event_with(0)
    }

    fn event_with(&self, flags: u32) -> Result<Event, DriverError> {
        let entered = self.enter("creating an event")?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is valid for one write.
        entered.check(unsafe { (entered.functions().event_create)(&raw mut handle, flags) })?;
        Ok(Event {
            context: self.clone(),
            handle: Handle(handle),
        })
    }
}

impl Stream {
    /// The time that the stream takes for what `work` enqueues in it, by two events around it.
    ///
    /// # Errors
    ///
    /// What `work` returns, or [`DriverError`].
    pub fn time<E: From<DriverError>>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<Duration, E> {
        let (start, end) = (self.context().timing_event()?, self.context().timing_event()?);
        start.record(self)?;
        work()?;
        end.record(self)?;
        end.synchronize()?;
        Ok(end.since(&start)?)
    }
}

impl Event {
    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    /// `CUevent` or `hipEvent_t`, for other libraries.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.handle.0
    }

    /// Puts the event behind everything that was enqueued in `stream` so far. Recorded again, it means the later point.
    ///
    /// # Errors
    ///
    /// [`DriverError::OtherContext`], or the driver failed.
    pub fn record(&self, stream: &Stream) -> Result<(), DriverError> {
        let call = "recording an event";
        if !stream.context().is(&self.context) {
            return Err(DriverError::OtherContext {
                call,
                first: "the event",
                second: "the stream",
            });
        }
        let entered = self.context.enter(call)?;
        // SAFETY: event and stream live, and their context is current.
        entered.check(unsafe { (entered.functions().event_record)(self.raw(), stream.raw()) })
    }

    /// Whether it has happened. Does not wait.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn is_done(&self) -> Result<bool, DriverError> {
        let entered = self.context.enter("asking whether an event has happened")?;
        // SAFETY: the event lives, and its context is current.
        entered.check_done(unsafe { (entered.functions().event_query)(self.raw()) })
    }

    /// Waits until it has happened.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let entered = self.context.enter("waiting for an event")?;
        // SAFETY: the event lives, and its context is current.
        entered.check(unsafe { (entered.functions().event_synchronize)(self.raw()) })
    }

    /// The time from `earlier` to this, both of them [timing events](Context::timing_event) that have happened.
    ///
    /// # Errors
    ///
    /// [`DriverError`].
    pub fn since(&self, earlier: &Self) -> Result<Duration, DriverError> {
        let entered = self
            .context
            .enter_beside(&earlier.context, "the time between two events")?;
        let mut milliseconds = 0f32;
        let elapsed = entered.functions().event_elapsed;
        // SAFETY: the pointer is valid for one write, and both events live.
        entered.check(unsafe { elapsed(&raw mut milliseconds, earlier.raw(), self.raw()) })?;
        // Two events of different streams may have happened the other way round.
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Some(entered) = self.context.enter_to_release("destroying an event") {
            // SAFETY: it is ours, and this is its end. Streams that wait for it go on doing so.
            entered.log(unsafe { (entered.functions().event_destroy)(self.handle.0) });
        }
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Event({:p} of {:?})", self.raw(), self.context.device())
    }
}
