//! The driver behind `gpulower-opt`.

use std::{
    ffi::{CString, OsStr, OsString, c_char, c_int, c_void},
    io::{self, Write},
    os::unix::ffi::OsStringExt,
    sync::{Mutex, OnceLock, PoisonError},
};

use melior::dialect::DialectRegistry;

use super::contain::{Bytes, Uncontained};

/// What makes text from anywhere fit for a terminal.
static SHOWN: OnceLock<fn(&str) -> String> = OnceLock::new();

/// The begin of a character whose other bytes come next.
static BEGUN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

unsafe extern "C-unwind" {
    fn gpulowerOptMain(argc: c_int, argv: *mut *mut c_char, write: extern "C" fn(Bytes, bool)) -> c_int;
    fn gpulowerRegisterDialects(registry: *mut c_void);
    fn gpulowerIsLlvmOption(name: Bytes) -> bool;
}

/// Whether a word of a command line gives an option of LLVM itself, such as `--enable-post-misched=false`, and not one of
/// `mlir-opt`: it may change the code that is made, and the compiler knows nothing of it. Ask before [`opt_main`].
pub fn is_llvm_option(word: &OsStr) -> bool {
    let word = word.to_string_lossy();
    let name = word.trim_start_matches('-').split('=').next().unwrap_or_default();
    // SAFETY: the name lives during the call.
    word.starts_with('-') && unsafe { gpulowerIsLlvmOption(Bytes::new(name.as_bytes())) }
}

/// Writes to the standard error output for the driver. When that is closed there is nobody left to tell.
extern "C" fn write_error(bytes: Bytes, as_it_is: bool) {
    let _uncontained = Uncontained::new();
    // SAFETY: C++ passes bytes that live during the call.
    let bytes = unsafe { bytes.as_slice() };
    let mut stderr = io::stderr().lock();
    if as_it_is {
        let _ = stderr.write_all(bytes);
        return;
    }
    let mut text = std::mem::take(&mut *BEGUN.lock().unwrap_or_else(PoisonError::into_inner));
    text.extend_from_slice(bytes);
    let begun = begun_character(&text);
    let rest = text.split_off(text.len() - begun);
    let text = String::from_utf8_lossy(&text);
    let _ = match SHOWN.get() {
        Some(shown) => stderr.write_all(shown(&text).as_bytes()),
        None => stderr.write_all(text.as_bytes()),
    };
    *BEGUN.lock().unwrap_or_else(PoisonError::into_inner) = rest;
}

/// How many bytes at the end are the begin of a character.
fn begun_character(text: &[u8]) -> usize {
    (1..=text.len().min(3))
        .find(|count| {
            let end = text.get(text.len() - count..).unwrap_or_default();
            end.first().is_some_and(|byte| *byte >= 0xc2)
                && std::str::from_utf8(end).is_err_and(|error| error.error_len().is_none())
        })
        .unwrap_or(0)
}

/// Runs `mlir-opt`'s driver on a command line and returns the exit status, 0 or 1. The driver prints and, for `--help`
/// or a bad option, exits: it is for the `main` of a tool. What it writes to the standard error output, with names and lines
/// of the input, goes through `shown`.
///
/// # Safety
///
/// No other thread is in LLVM or MLIR meanwhile: what a command line sets are variables of the process. And no word names a plugin
/// (`--load-pass-plugin`), unless the caller vouches for what its constructors do.
pub unsafe fn opt_main(arguments: impl IntoIterator<Item = OsString>, shown: fn(&str) -> String) -> i32 {
    let _ = SHOWN.set(shown);
    let arguments: Vec<CString> = arguments
        .into_iter()
        .filter_map(|argument| CString::new(argument.into_vec()).ok())
        .collect();
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
    let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
    pointers.push(std::ptr::null_mut());
    // SAFETY: a NULL-terminated array of NUL-terminated strings that outlive the call; the driver does not write them.
    unsafe { gpulowerOptMain(count, pointers.as_mut_ptr(), write_error) }
}

/// Registers all dialects, their extensions, and the translations to LLVM IR.
pub(crate) fn register_dialects(registry: &DialectRegistry) {
    // SAFETY: the registry is alive; the C++ side takes the object behind the C handle.
    unsafe { gpulowerRegisterDialects(registry.to_raw().ptr.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_may_come_in_pieces() {
        let text = "aß\u{202e}".as_bytes();
        let begun: Vec<usize> = (0..=text.len()).map(|end| begun_character(&text[..end])).collect();
        assert_eq!(begun, [0, 0, 1, 0, 1, 2, 0]);
        assert_eq!(begun_character(b"\xff"), 0);
    }
}
