//! Outcomes of contained LLVM calls.

use std::ffi::{CStr, c_char, c_int};

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
}

fn advice(fatal: &str) -> &'static str {
    if fatal.contains("Cannot select") {
        "; the target has no instruction for it: compile for a chip that has, or replace the operation"
    } else {
        ""
    }
}

/// `GpulowerOutcome` of `cpp/contain.h`.
#[repr(C)]
pub(super) struct Outcome {
    kind: c_int,
    text: *mut c_char,
}

unsafe extern "C" {
    fn gpulowerFreeText(text: *mut c_char);
}

impl Outcome {
    pub(super) fn into_result(self) -> Result<(), LlvmError> {
        let text = if self.text.is_null() {
            String::new()
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
            _ => Err(LlvmError::Fatal(text)),
        }
    }
}

/// `GpulowerBytes` of `cpp/device.cpp` and `GpulowerString` of `cpp/pass.cpp`: borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Bytes {
    pub data: *const u8,
    pub length: usize,
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
