//! What goes wrong with NVIDIA's libraries and programs.

use std::{
    ffi::CString,
    fmt::Display,
    path::{Path, PathBuf},
    process::ExitStatus,
};

use gpulower_runtime::vendor_library;
use libloading::os::unix::Library;

use super::contain::CRASH_ADVICE;
use crate::interrupt::InterruptError;

/// Why a library or a program of NVIDIA's could not be used, or did not do its work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VendorError {
    /// It cannot be loaded, or it is another library.
    #[error("{} {problem}", .path.display())]
    Load { path: PathBuf, problem: String },
    /// What it was to be given cannot be passed, or would be misunderstood.
    #[error("{0}")]
    Argument(String),
    /// It returned an error; the log is empty when there is none.
    #[error("{call} returned {code} ({name}){}{}", if log.is_empty() { "" } else { ": " }, log.trim_end())]
    Failed {
        /// The function that failed, and on what.
        call: String,
        code: i32,
        /// What the code is called.
        name: &'static str,
        log: String,
    },
    /// It crashed, which was contained; its state is unknown since.
    #[error("{call} crashed: {reason}; {CRASH_ADVICE}")]
    Crashed { call: String, reason: String },
    /// The program ended with an error.
    #[error("{} failed ({status}): {}", .program.display(), log.trim_end())]
    Ended {
        program: PathBuf,
        status: ExitStatus,
        /// Everything it printed.
        log: String,
    },
    /// There was a reason to stop the program.
    #[error("{} was stopped: {interrupt}", .program.display())]
    Interrupted {
        program: PathBuf,
        interrupt: InterruptError,
    },
    /// The program cannot be started or waited for, or it is another one.
    #[error("{0}")]
    Unusable(String),
}

impl VendorError {
    /// The library lacks a function of its interface.
    pub(super) fn missing(path: &Path, function: impl Display, not: &str) -> Self {
        Self::Load {
            path: path.to_owned(),
            problem: format!("has no function {function}: {not}"),
        }
    }
}

/// Loads a library.
///
/// # Safety
///
/// Its constructors run; the caller vouches for them.
pub(super) unsafe fn open(path: &Path) -> Result<Library, VendorError> {
    // SAFETY: the caller vouches for the library.
    unsafe { vendor_library::open(path) }.map_err(|reason| VendorError::Load {
        path: path.to_owned(),
        problem: format!("could not be loaded: {reason}"),
    })
}

/// `text` as C has it; `what` is its name in the error.
pub(super) fn c_string(what: impl Display, text: &str) -> Result<CString, VendorError> {
    CString::new(text).map_err(|error| {
        let offset = error.nul_position();
        VendorError::Argument(format!("{what} contains a NUL byte at offset {offset}"))
    })
}
