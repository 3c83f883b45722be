//! Outcomes of contained LLVM calls, and containment of other libraries' calls.

use std::ffi::{CStr, c_char, c_int, c_void};

/// Why a call into LLVM did not succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum LlvmError {
    /// LLVM refused the input; everything involved can still be used.
    #[error("{0}")]
    Refused(String),
    /// LLVM met a fatal error, which was contained; the context involved has been abandoned.
    #[error("LLVM fatal error: {text}{advice}", text = .0, advice = advice(.0))]
    Fatal(String),
    /// LLVM or MLIR crashed, which was contained; everything involved has been abandoned.
    #[error("LLVM or MLIR crashed: {0}; {CRASH_ADVICE}")]
    Crashed(String),
}

impl LlvmError {
    /// What LLVM said.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Refused(text) | Self::Fatal(text) | Self::Crashed(text) => text,
        }
    }

    /// Whether what the call worked on is in an unknown state, and was abandoned.
    pub const fn is_fatal(&self) -> bool {
        matches!(self, Self::Fatal(_) | Self::Crashed(_))
    }
}

/// What to do about a crash.
pub(super) const CRASH_ADVICE: &str = "what it worked on is lost; report the input to its authors, and compile what you do not trust with isolation=worker";

fn advice(fatal: &str) -> &'static str {
    if fatal.contains("Cannot select") {
        "; the target has no instruction for it: compile for a chip that has, or replace the operation"
    } else {
        ""
    }
}

/// A fatal error without the addresses of nodes in LLVM's memory, and without the nodes that one was made of: which node has
/// no instruction, and in which function.
fn without_addresses(fatal: String) -> String {
    const SELECT: &str = "Cannot select: ";
    let node = fatal.strip_prefix(SELECT).and_then(|rest| {
        let (_, node) = rest.strip_prefix("0x")?.split_once(" = ")?;
        node.split([' ', '<', '\n']).next()
    });
    match (node, fatal.rsplit_once("In function: ")) {
        (Some(node), Some((_, function))) => format!("{SELECT}{node}\nIn function: {}", function.trim_end()),
        (Some(node), None) => format!("{SELECT}{node}"),
        (None, _) => fatal,
    }
}

/// `GpulowerOutcome` of `cpp/contain.h`.
#[repr(C)]
pub(super) struct Outcome {
    kind: c_int,
    text: *mut c_char,
}

unsafe extern "C-unwind" {
    fn gpulowerFreeText(text: *mut c_char);
    fn gpulowerContainCrashes(enabled: bool);
    fn gpulowerContain(call: unsafe extern "C-unwind" fn(*mut c_void), closure: *mut c_void) -> Outcome;
    fn gpulowerSuspend() -> *mut c_void;
    fn gpulowerResume(frame: *mut c_void);
}

/// Whether crashes inside LLVM, MLIR and NVIDIA's libraries come back as errors ([`LlvmError::Crashed`]) in this process,
/// as they do unless this is called with `false`. Then they end the process, as any crash does.
///
/// It is for the whole process, because signal handlers are. Those of `SIGSEGV`, `SIGBUS`, `SIGFPE`, `SIGILL`, `SIGTRAP`
/// and `SIGABRT` are installed when the first module is compiled, and stay; with `false` before that, they are not. They hand every signal
/// that is not from such a crash on to the handler that was there before. `docs/reliability.md` says what is contained, and
/// what a program with handlers of its own has to know.
pub fn contain_crashes(enabled: bool) {
    // SAFETY: sets an atomic variable.
    unsafe { gpulowerContainCrashes(enabled) }
}

/// Calls a function of a foreign library. An error says how it crashed, and that what it worked on must not be used again.
///
/// The call is left by a jump, or by an exception of C++ on its way to `gpulowerContain`. So the function is declared
/// `extern "C-unwind"`, and the frames of Rust in between, which are those of `run` and of the closure, own nothing.
///
/// # Safety
///
/// The closure may be left in the midst of the call: it must own nothing, and neither panic nor keep a lock. What the library
/// calls back is no part of that: it begins with [`Uncontained`].
pub(super) unsafe fn contained<R: Copy>(call: impl Fn() -> R + Copy) -> Result<R, String> {
    // SAFETY: the caller's contract.
    unsafe { contained_call(call) }.map_err(LlvmError::into_text)
}

/// The same for a function of LLVM's or MLIR's.
///
/// # Safety
///
/// As for [`contained`].
pub(super) unsafe fn contained_call<R: Copy>(call: impl Fn() -> R + Copy) -> Result<R, LlvmError> {
    struct Call<F, R> {
        function: F,
        result: Option<R>,
    }
    unsafe extern "C-unwind" fn run<F: Fn() -> R, R>(closure: *mut c_void) {
        // SAFETY: the closure is the value below, which nothing else touches meanwhile.
        let call = unsafe { &mut *closure.cast::<Call<F, R>>() };
        call.result = Some((call.function)());
    }
    fn runner<F: Fn() -> R, R>(_: &F) -> unsafe extern "C-unwind" fn(*mut c_void) {
        run::<F, R>
    }
    let run = runner(&call);
    let mut call = Call {
        function: call,
        result: None,
    };
    // SAFETY: `run` gets the value that it expects. The frames between it and the library own nothing, as the caller vouches
    // for: to jump over them leaves nothing undone.
    let outcome = unsafe { gpulowerContain(run, (&raw mut call).cast()) };
    match (outcome.into_result(), call.result) {
        (Ok(()), Some(result)) => Ok(result),
        (Err(error), _) => Err(error),
        (Ok(()), None) => Err(LlvmError::Fatal("it did not return".to_owned())),
    }
}

/// While it lives, nothing jumps over the frames of this thread: for functions that C++ calls back.
pub(super) struct Uncontained(*mut c_void);

impl Uncontained {
    pub(super) fn new() -> Self {
        // SAFETY: changes a variable of this thread, and is undone when the value is dropped.
        Self(unsafe { gpulowerSuspend() })
    }
}

impl Drop for Uncontained {
    fn drop(&mut self) {
        // SAFETY: a value cannot leave its thread, and the frame is that of the call that is still going on around it.
        unsafe { gpulowerResume(self.0) }
    }
}

impl Outcome {
    pub(super) fn into_result(self) -> Result<(), LlvmError> {
        let text = if self.text.is_null() {
            // Words are allocated with the outcome, but for success.
            "out of memory".to_owned()
        } else {
            // SAFETY: a non-null text is a NUL-terminated string that this value owns.
            unsafe {
                let text = CStr::from_ptr(self.text).to_string_lossy().trim_end().to_owned();
                gpulowerFreeText(self.text);
                text
            }
        };
        match self.kind {
            0 => Ok(()),
            1 => Err(LlvmError::Refused(text)),
            2 => Err(LlvmError::Fatal(without_addresses(text))),
            _ => Err(LlvmError::Crashed(text)),
        }
    }
}

/// `GpulowerBytes` of `cpp/device.cpp` and `GpulowerString` of `cpp/pass.cpp`: borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    pub(crate) data: *const u8,
    pub(crate) length: usize,
}

impl Bytes {
    pub(super) fn new(bytes: &[u8]) -> Self {
        Self {
            data: bytes.as_ptr(),
            length: bytes.len(),
        }
    }

    /// # Safety
    ///
    /// The bytes have to be alive for `'a`.
    pub(super) unsafe fn as_slice<'a>(self) -> &'a [u8] {
        if self.data.is_null() {
            return &[];
        }
        // SAFETY: the caller vouches for the lifetime; pointer and length come as a pair.
        unsafe { std::slice::from_raw_parts(self.data, self.length) }
    }

    /// # Safety
    ///
    /// The bytes have to be alive for `'a`.
    pub(super) unsafe fn to_text(self) -> String {
        // SAFETY: forwarded to the caller.
        String::from_utf8_lossy(unsafe { self.as_slice() }).into_owned()
    }
}

/// Bytes that a function of C++ hands over, once or piece by piece. There may be any number of them: where there is no
/// memory for them, that is an error.
#[derive(Default)]
pub(super) struct Collected {
    bytes: Vec<u8>,
    is_short: bool,
}

impl Collected {
    /// For C++, with [`Self::closure`].
    pub(super) extern "C" fn sink(closure: *mut c_void, bytes: Bytes) {
        let _uncontained = Uncontained::new();
        // SAFETY: the closure is a value that nothing else touches during the call; so long live the bytes.
        let (this, bytes) = unsafe { (&mut *closure.cast::<Self>(), bytes.as_slice()) };
        this.append(bytes);
    }

    pub(super) fn append(&mut self, bytes: &[u8]) {
        if self.bytes.try_reserve(bytes.len()).is_ok() {
            self.bytes.extend_from_slice(bytes);
        } else {
            self.is_short = true;
        }
    }

    pub(super) fn closure(&mut self) -> *mut c_void {
        (&raw mut *self).cast()
    }

    pub(super) fn finish(self) -> Result<Vec<u8>, LlvmError> {
        match self.is_short {
            false => Ok(self.bytes),
            true => Err(LlvmError::Fatal("out of memory".to_owned())),
        }
    }
}

#[cfg(test)]
#[path = "../../tests/bridge/contain.rs"]
mod tests;
