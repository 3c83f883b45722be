//! The driver behind `gpulower-opt`.

use std::ffi::{CString, OsStr, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;

use melior::dialect::DialectRegistry;

use super::contain::Bytes;

unsafe extern "C-unwind" {
    fn gpulowerOptMain(argc: c_int, argv: *mut *mut c_char) -> c_int;
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

/// Runs `mlir-opt`'s driver on a command line and returns the exit status, 0 or 1. The driver prints and, for `--help`
/// or a bad option, exits: it is for the `main` of a tool.
pub fn opt_main(arguments: impl IntoIterator<Item = OsString>) -> i32 {
    let arguments: Vec<CString> = arguments
        .into_iter()
        .filter_map(|argument| CString::new(argument.into_vec()).ok())
        .collect();
    let mut pointers: Vec<*mut c_char> = arguments.iter().map(|argument| argument.as_ptr().cast_mut()).collect();
    let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
    pointers.push(std::ptr::null_mut());
    // SAFETY: a NULL-terminated array of NUL-terminated strings that outlive the call; the driver does not write them.
    unsafe { gpulowerOptMain(count, pointers.as_mut_ptr()) }
}

/// Registers all dialects, their extensions, and the translations to LLVM IR.
pub(crate) fn register_dialects(registry: &DialectRegistry) {
    // SAFETY: the registry is alive; the C++ side takes the object behind the C handle.
    unsafe { gpulowerRegisterDialects(registry.to_raw().ptr.cast()) }
}
