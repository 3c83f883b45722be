//! `gpulower_result`.

use std::{ffi::c_char, ptr};

use super::{ErrorHandle, ResultHandle, caught, free, get, pointer, shown, value, versioned, writable};
use crate::{
    outcome::{Outcome, Product},
    problem::{Problem, Status},
};

versioned!("GPULOWER_1.0":
    gpulower_result_artifact_count, gpulower_result_artifact_bytes, gpulower_result_artifact_copy,
    gpulower_result_artifact_module, gpulower_result_artifact_format, gpulower_result_artifact_targets,
    gpulower_result_artifact_input, gpulower_result_error_count, gpulower_result_error, gpulower_result_warning_count,
    gpulower_result_warning, gpulower_result_report, gpulower_result_free);

/// No input: what it is about came from none, or from several.
pub const NO_INPUT: usize = usize::MAX;

/// How many artifacts there are; 0 for what is no result. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_artifact_count(result: *const ResultHandle) -> usize {
    value(result, 0, |outcome: &Outcome| Some(outcome.products.len()))
}

fn product<T>(outcome: &Outcome, index: usize, read: impl FnOnce(&Product) -> T) -> Result<T, Problem> {
    let count = outcome.products.len();
    let missing = || {
        Problem::misuse(
            Status::OutOfRange,
            format!("there are {count} artifacts, none with number {index}"),
        )
    };
    outcome.products.get(index).map(read).ok_or_else(missing)
}

/// Lends the bytes of an artifact, until the result is freed. They end with a NUL that `length` does not count. From any
/// thread.
///
/// # Safety
///
/// `data` and `length` are addresses for such values.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_result_artifact_bytes(
    result: *const ResultHandle,
    index: usize,
    data: *mut *const u8,
    length: *mut usize,
) -> Status {
    let lend = || {
        writable(data, "data")?;
        writable(length, "length")?;
        let outcome = get::<Outcome, _>(result, "result")?;
        let (address, size) = product(&outcome, index, |product| {
            (product.bytes().as_ptr(), product.bytes().len())
        })?;
        // SAFETY: the caller's contract.
        unsafe {
            data.write(address);
            length.write(size);
        }
        Ok(())
    };
    caught(lend).map_or_else(|problem| problem.status, |()| Status::Ok)
}

/// Copies the bytes of an artifact into a buffer of `capacity` bytes. `length` gets their number, also when the buffer is too
/// small (`GPULOWER_STATUS_BUFFER_TOO_SMALL`), or NULL with a capacity of 0. From any thread.
///
/// # Safety
///
/// `buffer` is the address of `capacity` bytes; `length` is the address of a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_result_artifact_copy(
    result: *const ResultHandle,
    index: usize,
    buffer: *mut u8,
    capacity: usize,
    length: *mut usize,
) -> Status {
    let copy = || {
        writable(length, "length")?;
        let outcome = get::<Outcome, _>(result, "result")?;
        product(&outcome, index, |product| {
            let bytes = product.bytes();
            // SAFETY: the caller's contract.
            unsafe { length.write(bytes.len()) };
            if bytes.len() > capacity {
                return Err(Problem::misuse(Status::BufferTooSmall, "the buffer is too small"));
            }
            if !bytes.is_empty() {
                writable(buffer, "buffer")?;
                // SAFETY: the caller's contract; what is ours is none of the caller's buffers.
                unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
            }
            Ok(())
        })?
    };
    caught(copy).map_or_else(|problem| problem.status, |()| Status::Ok)
}

/// The symbol of the `gpu.module` that an artifact was made of, or the name of the input. Lent until the result is freed;
/// NULL where there is no such artifact. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_artifact_module(result: *const ResultHandle, index: usize) -> *const c_char {
    shown(result, |outcome: &Outcome| Some(&outcome.products.get(index)?.module))
}

/// What the bytes of an artifact are: `ptx`, `cubin`, `hsaco`, `fatbin` and so on. Lent until the result is freed; NULL
/// where there is no such artifact. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_artifact_format(result: *const ResultHandle, index: usize) -> *const c_char {
    shown(result, |outcome: &Outcome| Some(&outcome.products.get(index)?.format))
}

/// The targets of an artifact: `sm_80, sm_90`. Lent until the result is freed; NULL where there is no such artifact. From
/// any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_artifact_targets(result: *const ResultHandle, index: usize) -> *const c_char {
    shown(result, |outcome: &Outcome| Some(&outcome.products.get(index)?.targets))
}

/// The input that an artifact was made of, by its number from 0 on; `GPULOWER_NO_INPUT` where it was made of several. From
/// any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_artifact_input(result: *const ResultHandle, index: usize) -> usize {
    value(result, NO_INPUT, |outcome: &Outcome| outcome.products.get(index)?.input)
}

/// How many errors there are; 0 for what is no result. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_error_count(result: *const ResultHandle) -> usize {
    value(result, 0, |outcome: &Outcome| Some(outcome.errors.len()))
}

/// An error of a result. It goes with the result, and is not freed by itself; NULL where there is none of this number. From
/// any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_error(result: *const ResultHandle, index: usize) -> *const ErrorHandle {
    value(result, ptr::null_mut::<ErrorHandle>(), |outcome: &Outcome| {
        outcome.error_handle(index).map(pointer)
    })
    .cast_const()
}

/// How many warnings there are; 0 for what is no result. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_warning_count(result: *const ResultHandle) -> usize {
    value(result, 0, |outcome: &Outcome| Some(outcome.warnings.len()))
}

/// A warning of a result, which is read like an error, but has no code. It goes with the result; NULL where there is none of
/// this number. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_warning(result: *const ResultHandle, index: usize) -> *const ErrorHandle {
    value(result, ptr::null_mut::<ErrorHandle>(), |outcome: &Outcome| {
        outcome.warning_handle(index).map(pointer)
    })
    .cast_const()
}

/// The report, a JSON object with `schema`, `operation`, `errors`, `warnings` and what the operation has to say: resources of
/// kernels, times of stages, choices. Fields may be added to schema 1; none changes its meaning. Lent until the result is
/// freed; NULL for what is no result. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_report(result: *const ResultHandle) -> *const c_char {
    shown(result, |outcome: &Outcome| Some(&outcome.report))
}

/// Frees a result, its errors and warnings, and what was lent of them. NULL is ignored. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_result_free(result: *mut ResultHandle) -> Status {
    free::<Outcome, _>(result, "result")
}
