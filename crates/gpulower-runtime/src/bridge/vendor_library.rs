//! What the vendor libraries loaded at run time have in common: opening, finding a function, and texts
//! whose size is asked for first.

use std::ffi::{c_char, c_int};
use std::path::Path;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// A text larger than this is cut: no log comes near it, and a wild size must not exhaust memory.
const LONGEST_TEXT: usize = 64 << 20;

/// Opens `path` with its symbols kept private.
///
/// # Errors
///
/// The dynamic loader's message.
///
/// # Safety
///
/// The constructors of the library run: the caller vouches for the file.
pub unsafe fn open(path: &Path) -> Result<Library, String> {
    // SAFETY: the caller vouches for the constructors.
    unsafe { Library::open(Some(path.as_os_str()), RTLD_NOW | RTLD_LOCAL) }.map_err(|error| {
        // The `Display` of libloading names the call only; the loader's text is in its source.
        std::error::Error::source(&error).map_or_else(|| error.to_string(), |source| source.to_string())
    })
}

/// Reads a text through a pair of "give its size" (including a NUL, by convention) and "copy it".
///
/// `copy` receives room for one byte more than the size that was asked for. Failures give an empty text:
/// the texts are logs, which must not hide the result that they belong to.
pub fn sized_text(size: impl FnOnce(*mut usize) -> c_int, copy: impl FnOnce(*mut c_char) -> c_int) -> String {
    let mut length = 0usize;
    if size(&raw mut length) != 0 || length == 0 || length > LONGEST_TEXT {
        return String::new();
    }
    let mut bytes = vec![0u8; length + 1];
    if copy(bytes.as_mut_ptr().cast()) != 0 {
        return String::new();
    }
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(length);
    bytes.truncate(end);
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_says_why() {
        // SAFETY: there is no such file, so nothing runs.
        let message = unsafe { open(Path::new("/nowhere/libx.so")) }.unwrap_err();
        assert!(message.contains("/nowhere/libx.so"), "{message}");
        assert!(message.contains("No such file"), "{message}");
    }

    #[test]
    fn texts_end_at_their_nul_and_failures_are_empty() {
        let size = |length: *mut usize| {
            // SAFETY: `sized_text` passes a valid pointer.
            unsafe { *length = 6 };
            0
        };
        let copy = |text: *mut c_char| {
            // SAFETY: `sized_text` gives room for seven bytes.
            unsafe { std::ptr::copy_nonoverlapping(c"hello".as_ptr(), text, 6) };
            0
        };
        assert_eq!(sized_text(size, copy), "hello");
        assert_eq!(sized_text(|_| 1, |_| 0), "");
        assert_eq!(sized_text(size, |_| 1), "");
    }
}
