//! Functions of the caller's that are called with a pointer of the caller's.

use std::{
    ffi::{c_char, c_void},
    ptr,
    sync::Arc,
};

use gpulower::{Progress, ProgressCallback};

use crate::{log::Sink, problem::Text};

/// Takes a line of the log. `level` is 1 for an error, 2 for a warning, 3 for information, 4 for debugging and 5 for a
/// trace; `part` is the part of the library. The text is the library's, and valid until the function returns.
///
/// It is called from any thread, and from several at once. It must return: no exception, no longjmp. It may call this
/// library, but what it calls logs as well.
pub type LogCallback =
    Option<unsafe extern "C" fn(data: *mut c_void, level: u32, part: *const c_char, text: *const c_char)>;

/// Takes a step of a call. The struct and its text are the library's, and valid until the function returns.
///
/// It is called from the compiler's threads, and from several at once. It should return soon, since the compilation waits
/// for it, and it must return: no exception, no longjmp. It may call this library, to cancel for instance.
pub type ProgressCallbackOfC = Option<unsafe extern "C" fn(data: *mut c_void, progress: *const ProgressEvent)>;

/// So many further pieces of work are known to be part of the call: `total`.
pub const PROGRESS_PLANNED: u32 = 1;
/// A piece of work, one module for one target, begins.
pub const PROGRESS_BEGUN: u32 = 2;
/// It enters a stage.
pub const PROGRESS_STAGE: u32 = 3;
/// It is done.
pub const PROGRESS_FINISHED: u32 = 4;

/// A step of a call. Later versions may add members at the end.
#[derive(Debug)]
#[repr(C)]
pub struct ProgressEvent {
    /// The size of this struct in bytes.
    pub size: usize,
    /// One of `GPULOWER_PROGRESS_...`; others may come.
    pub event: u32,
    /// Finished: whether it was taken from the cache.
    pub from_cache: bool,
    /// Finished: whether it failed.
    pub failed: bool,
    /// The module; NULL for `GPULOWER_PROGRESS_PLANNED`.
    pub module: *const c_char,
    /// The target; NULL for `GPULOWER_PROGRESS_PLANNED`.
    pub target: *const c_char,
    /// The stage; NULL but for `GPULOWER_PROGRESS_STAGE`.
    pub stage: *const c_char,
    /// Finished: how many are done, this one included.
    pub done: usize,
    /// Finished: how many are known of. Planned: how many more.
    pub total: usize,
}

/// The caller's pointer, which goes back to the caller and nowhere else.
#[derive(Clone, Copy)]
struct Data(*mut c_void);

// SAFETY: nothing here follows it. The header says that the callbacks are called from any thread, with this pointer.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl Data {
    /// A function, so that closures capture the whole.
    const fn pointer(self) -> *mut c_void {
        self.0
    }
}

/// # Safety
///
/// The function may be called with `data` from any thread as long as it is set.
pub(super) unsafe fn log_sink(callback: LogCallback, data: *mut c_void) -> Option<Sink> {
    let (callback, data) = (callback?, Data(data));
    Some(Arc::new(move |level, part: &str, text: &str| {
        let (part, text) = (Text::from(part), Text::from(text));
        // SAFETY: the caller's contract; the text lives until the end of this block.
        unsafe { callback(data.pointer(), level, part.as_ptr(), text.as_ptr()) }
    }))
}

/// # Safety
///
/// The function may be called with `data` from any thread as long as a compiler of this configuration lives.
pub(super) unsafe fn progress(callback: ProgressCallbackOfC, data: *mut c_void) -> Option<ProgressCallback> {
    let (callback, data) = (callback?, Data(data));
    Some(Arc::new(move |progress: &Progress<'_>| {
        let mut event = ProgressEvent {
            size: size_of::<ProgressEvent>(),
            event: 0,
            from_cache: false,
            failed: false,
            module: ptr::null(),
            target: ptr::null(),
            stage: ptr::null(),
            done: 0,
            total: 0,
        };
        let subject = match progress {
            Progress::Planned { more } => {
                (event.event, event.total) = (PROGRESS_PLANNED, *more);
                None
            }
            Progress::Begun { subject } => {
                event.event = PROGRESS_BEGUN;
                Some(subject)
            }
            Progress::Stage { subject, .. } => {
                event.event = PROGRESS_STAGE;
                Some(subject)
            }
            Progress::Finished {
                subject,
                from_cache,
                failed,
                done,
                total,
            } => {
                event.event = PROGRESS_FINISHED;
                (event.from_cache, event.failed) = (*from_cache, *failed);
                (event.done, event.total) = (*done, *total);
                Some(subject)
            }
            _ => return,
        };
        let module = subject.map(|subject| Text::from(subject.module));
        let target = subject.map(|subject| Text::from(subject.target.to_string()));
        let stage = match progress {
            Progress::Stage { stage, .. } => Some(Text::from(stage.name())),
            _ => None,
        };
        let address = |text: &Option<Text>| text.as_ref().map_or(ptr::null(), Text::as_ptr);
        (event.module, event.target, event.stage) = (address(&module), address(&target), address(&stage));
        // SAFETY: the caller's contract; the event and its text live until the end of this block.
        unsafe { callback(data.pointer(), &raw const event) }
    }))
}
