//! The functions of the interface: what is `pub` here is in the header. The only module that follows a pointer.
//!
//! What all of them keep to:
//!
//! - A handle is a number (`handle.rs`) and is never followed. Pointers to data are: that they are valid is the caller's
//!   part, and said in the header; NULL, lengths that cannot be, and text that is no UTF-8 are errors.
//! - Nothing unwinds into the caller: [`caught`] is around everything that can panic.
//! - What is handed out as borrowed (text, bytes) lives in an object that its handle keeps alive.

#![allow(unsafe_code, reason = "an interface for C")]

mod callbacks;
mod compiler;
mod config;
mod error;
mod library;
mod request;
mod result;

use std::{
    ffi::{CStr, c_char},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use gpulower::{ErrorKind, Stage};

use crate::{
    handle::{self, Handled, Object},
    outcome::Outcome,
    problem::{Problem, Status, Text},
};

/// Gives functions the version of the interface with which they came. They have to be in the same file.
macro_rules! versioned {
    ($version:literal: $($name:ident),* $(,)?) => {
        // A program, such as that of the unit tests, defines no versions.
        #[cfg(not(test))]
        std::arch::global_asm!($(concat!(
            ".symver ", stringify!($name), ", ", stringify!($name), "@@", $version
        )),*);
    };
}
use versioned;

/// What a compiler is made with.
#[derive(Debug)]
pub struct ConfigHandle;
/// What is to be done in one call.
#[derive(Debug)]
pub struct RequestHandle;
/// Compiles, links, packs and exports.
#[derive(Debug)]
pub struct CompilerHandle;
/// Ends calls early, from any thread.
#[derive(Debug)]
pub struct CancellationHandle;
/// What a call came to.
#[derive(Debug)]
pub struct ResultHandle;
/// What went wrong, or deserves attention.
#[derive(Debug)]
pub struct ErrorHandle;

/// A panic is an error. What it says goes to the log, not to the standard error output of somebody else's process.
fn caught<T>(call: impl FnOnce() -> Result<T, Problem>) -> Result<T, Problem> {
    #[cfg(not(test))]
    {
        static QUIET: std::sync::Once = std::sync::Once::new();
        // The hook is that of this library's copy of Rust's runtime.
        QUIET.call_once(|| std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}"))));
    }
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<&str>().copied();
        let words = words.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(Problem {
            status: Status::Internal,
            ..Problem::new(
                Stage::Plan,
                ErrorKind::Internal,
                format!(
                    "internal error: {} (this is a bug in gpulower)",
                    words.unwrap_or("unknown")
                ),
            )
        })
    })
}

/// What a handle stands for.
fn get<T: Handled, H>(handle: *const H, argument: &str) -> Result<std::sync::Arc<T>, Problem> {
    handle::get(handle.addr(), argument)
}

fn pointer<H>(handle: usize) -> *mut H {
    ptr::without_provenance_mut(handle)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn free<T: Handled, H>(handle: *mut H, argument: &str) -> Status {
    if handle.is_null() {
        return Status::Ok;
    }
    caught(|| handle::free::<T>(handle.addr(), argument)).map_or_else(|problem| problem.status, |()| Status::Ok)
}

/// Runs a call whose error goes to `error`, unless that is NULL.
///
/// # Safety
///
/// `error` is NULL, or valid to be written to.
unsafe fn attempt(error: *mut *mut ErrorHandle, call: impl FnOnce() -> Result<(), Problem>) -> Status {
    let problem = caught(call).err();
    let status = problem.as_ref().map_or(Status::Ok, |problem| problem.status);
    if !error.is_null() && error.is_aligned() {
        let handle = problem.map_or(ptr::null_mut(), |problem| {
            pointer(handle::insert(Object::Error(problem.into())))
        });
        // SAFETY: the caller's contract.
        unsafe { error.write(handle) }
    }
    status
}

/// Puts a handle of a new object into `place`.
///
/// # Safety
///
/// `place` is NULL, or valid to be written to.
unsafe fn put<H>(
    place: *mut *mut H,
    argument: &str,
    make: impl FnOnce() -> Result<Object, Problem>,
) -> Result<(), Problem> {
    writable(place, argument)?;
    // SAFETY: the caller's contract. Nobody is left with a value that was never set.
    unsafe { place.write(ptr::null_mut()) };
    let handle = handle::insert(make()?);
    // SAFETY: as before.
    unsafe { place.write(pointer(handle)) };
    Ok(())
}

fn writable<T>(place: *mut T, argument: &str) -> Result<(), Problem> {
    if place.is_null() || !place.is_aligned() {
        return Err(Problem::argument(format!(
            "{argument} is NULL, or no address of such a value"
        )));
    }
    Ok(())
}

/// Runs an operation and puts its result into `result`, whatever it came to.
///
/// # Safety
///
/// `result` is NULL, or valid to be written to.
unsafe fn operation(
    result: *mut *mut ResultHandle,
    name: &str,
    work: impl FnOnce() -> Result<Outcome, Problem>,
) -> Status {
    if writable(result, "result").is_err() {
        return Status::InvalidArgument;
    }
    let outcome = caught(work).unwrap_or_else(|problem| Outcome::failed(name, vec![problem]));
    let status = outcome.status;
    // SAFETY: the caller's contract.
    unsafe { result.write(pointer(handle::insert_result(outcome))) };
    status
}

/// # Safety
///
/// `text` is NULL, or NUL-terminated, and stays as it is for `'a`.
unsafe fn text<'a>(text: *const c_char, argument: &str) -> Result<&'a str, Problem> {
    if text.is_null() {
        return Err(Problem::argument(format!("{argument} is NULL")));
    }
    // SAFETY: the caller's contract.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|error| Problem::argument(format!("{argument} is not UTF-8: {error}")))
}

/// # Safety
///
/// `data` is NULL, or the address of `length` bytes that stay as they are for `'a`.
unsafe fn bytes<'a>(data: *const u8, length: usize, argument: &str) -> Result<&'a [u8], Problem> {
    match (data.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Problem::argument(format!(
            "{argument} is NULL, with a length of {length}"
        ))),
        (false, length) if length > isize::MAX.cast_unsigned() => Err(Problem::argument(format!(
            "{argument} cannot have a length of {length}"
        ))),
        // SAFETY: the caller's contract.
        (false, length) => Ok(unsafe { std::slice::from_raw_parts(data, length) }),
    }
}

/// Text that lives as long as what the handle stands for; NULL where there is none.
fn shown<T: Handled, H>(handle: *const H, text: impl FnOnce(&T) -> Option<&Text>) -> *const c_char {
    value(handle, ptr::null(), |object| text(object).map(Text::as_ptr))
}

/// A value of what a handle stands for, or `otherwise`.
fn value<T: Handled, H, V>(handle: *const H, otherwise: V, read: impl FnOnce(&T) -> Option<V>) -> V {
    let value = caught(|| Ok(read(&*get::<T, H>(handle, "")?)));
    value.ok().flatten().unwrap_or(otherwise)
}
