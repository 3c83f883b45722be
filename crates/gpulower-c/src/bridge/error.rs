//! `gpulower_error`.

use std::ffi::c_char;

use super::{ErrorHandle, free, result::NO_INPUT, shown, value, versioned};
use crate::problem::{Problem, Status};

versioned!("GPULOWER_1.0":
    gpulower_error_code, gpulower_error_stage, gpulower_error_module, gpulower_error_target, gpulower_error_kernel_count,
    gpulower_error_kernel, gpulower_error_location, gpulower_error_file, gpulower_error_line, gpulower_error_column,
    gpulower_error_message, gpulower_error_text, gpulower_error_input, gpulower_error_free);

/// The code, such as `E0401`, which stays the same in all releases: `docs/errors.md`. NULL for a warning. This and what
/// else is text is lent until the error is freed, or the result that it goes with. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_code(error: *const ErrorHandle) -> *const c_char {
    shown(error, |error: &Problem| error.code.as_ref())
}

/// The stage, such as `lower` or `ptx-to-cubin`. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_stage(error: *const ErrorHandle) -> *const c_char {
    shown(error, |error: &Problem| Some(&error.stage))
}

/// The symbol of the `gpu.module`, or the name of the input; NULL where it is about none. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_module(error: *const ErrorHandle) -> *const c_char {
    shown(error, |error: &Problem| error.module.as_ref())
}

/// The target; NULL where it is about none. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_target(error: *const ErrorHandle) -> *const c_char {
    shown(error, |error: &Problem| error.target.as_ref())
}

/// How many kernels are concerned, where that is known. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_kernel_count(error: *const ErrorHandle) -> usize {
    value(error, 0, |error: &Problem| Some(error.kernels.len()))
}

/// A kernel that is concerned; NULL where there is none of this number. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_kernel(error: *const ErrorHandle, index: usize) -> *const c_char {
    shown(error, |error: &Problem| error.kernels.get(index))
}

/// The place in the source as MLIR writes it, such as `callsite("a.py":1:2 at "b.py":3:4)`; NULL where it is not known.
/// From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_location(error: *const ErrorHandle) -> *const c_char {
    shown(error, |error: &Problem| error.location.as_ref())
}

/// The file of the place, if it has a position in one; else NULL. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_file(error: *const ErrorHandle) -> *const c_char {
    shown(error, |error: &Problem| error.file.as_ref())
}

/// The line of the place, from 1 on; 0 where it is not known. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_line(error: *const ErrorHandle) -> u32 {
    value(error, 0, |error: &Problem| error.line)
}

/// The column of the place, from 1 on; 0 where it is not known. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_column(error: *const ErrorHandle) -> u32 {
    value(error, 0, |error: &Problem| error.column)
}

/// What is wrong, without stage, module, target and place. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_message(error: *const ErrorHandle) -> *const c_char {
    shown(error, |error: &Problem| Some(&error.message))
}

/// All of it in one text: place, stage, module, target, message, notes. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_text(error: *const ErrorHandle) -> *const c_char {
    shown(error, |error: &Problem| Some(&error.text))
}

/// The input that it is about, by its number from 0 on; `GPULOWER_NO_INPUT` where it is about none. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_input(error: *const ErrorHandle) -> usize {
    value(error, NO_INPUT, |error: &Problem| error.input)
}

/// Frees an error that a function handed out through its argument `error`. Those of a result go with it. NULL is ignored.
/// From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_error_free(error: *mut ErrorHandle) -> Status {
    free::<Problem, _>(error, "error")
}
