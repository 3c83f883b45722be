//! `gpulower_request`.

use std::{ffi::c_char, sync::Mutex};

use gpulower::Library;

use super::{ErrorHandle, RequestHandle, attempt, bytes, free, get, locked, put, text, versioned};
use crate::{
    handle::Object,
    problem::{Problem, Status},
    request::{Input, Request},
};

versioned!("GPULOWER_1.0":
    gpulower_request_create, gpulower_request_set, gpulower_request_add_input, gpulower_request_add_image,
    gpulower_request_add_library, gpulower_request_add_object, gpulower_request_free);

/// Makes an empty request. It may be used for any number of calls, of any compiler. From any thread.
///
/// # Safety
///
/// `request` is an address for a handle; `error` is NULL or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_request_create(
    request: *mut *mut RequestHandle,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            put(request, "request", || Ok(Object::Request(Mutex::default().into())))
        })
    }
}

/// Sets one thing. Every option of `docs/options.md` has its name there as a key, and wins over the compiler's; and there are:
///
/// | key | value |
/// |---|---|
/// | `target` | what to compile for: `sm_90a`, `gfx90a:xnack-`, or several with commas between; may be repeated. Default: the target attributes of the modules |
/// | `emit` | what to make: `ptx`, `cubin`, `hsaco`, `asm`, `llvm`, `bitcode`, `object`, `mlir`, `binary` (the default: cubin or hsaco), or all targets of a module in one: `fatbin`, `bundle`, `offload` |
/// | `keep-going` | `true`: an input that fails costs no other. Default `false`: all or nothing |
/// | `link` | a file of bitcode or LLVM IR to link what is needed of; may be repeated |
/// | `device-link` | `true`: join the modules into one image for each target |
/// | `link-object` | a file of compiled code for that image: PTX, a relocatable cubin, an object, an archive; may be repeated |
/// | `export-form` | export: `obj` (the default), `ll`, `bc`, `self` |
/// | `finish-with` | export: what finishes the program, such as `clang-19,cuda-12.4` |
/// | `host-triple` | export: default `x86_64-unknown-linux-gnu` |
/// | `unit` | export: what the program is called. Default: the input's file name |
/// | `keep-names` | export: `true` leaves names of kernels as they are |
/// | `ptxas-of` | export: a further CUDA toolkit whose ptxas may be used; may be repeated |
/// | `pass` | run a pass: its name, such as `gpulower-serialize`. Since 1.1 |
/// | `pass-option` | run a pass: NAME=VALUE, an option of the pass; may be repeated. Since 1.1 |
///
/// From any thread; a call that is under way with this request goes on with what was set before.
///
/// # Safety
///
/// `key` and `value` are NUL-terminated; `error` is NULL or an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_request_set(
    request: *mut RequestHandle,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            let request = get::<Mutex<Request>, _>(request, "request")?;
            let (key, value) = (text(key, "key")?, text(value, "value")?);
            locked(&request).set(key, value)
        })
    }
}

/// Adds something to a request: bytes with a name.
///
/// # Safety
///
/// As for the functions below.
unsafe fn add(
    request: *mut RequestHandle,
    name: *const c_char,
    data: *const u8,
    length: usize,
    error: *mut *mut ErrorHandle,
    to: impl FnOnce(&mut Request, String, &[u8]) -> Result<(), Problem>,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            let request = get::<Mutex<Request>, _>(request, "request")?;
            let (name, data) = (text(name, "name")?, bytes(data, length, "data")?);
            to(&mut locked(&request), name.to_owned(), data)
        })
    }
}

/// Adds an input: MLIR as text or bytecode, LLVM IR as text or bitcode, PTX, or compiled code for `gpulower_link`. The bytes
/// are copied. `name` is for messages, and its extension tells text formats apart: `kernels.mlir`, `kernels.ll`. From any
/// thread.
///
/// # Safety
///
/// `name` is NUL-terminated; `data` is the address of `length` bytes; `error` is NULL or an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_request_add_input(
    request: *mut RequestHandle,
    name: *const c_char,
    data: *const u8,
    length: usize,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        add(request, name, data, length, error, |request, name, data| {
            let (bytes, target) = (data.into(), None);
            request.inputs.push(Input { name, bytes, target });
            Ok(())
        })
    }
}

/// Adds an image, or a container of images, for `gpulower_pack`. `target` says what an image is for that does not say so
/// itself, or says less (a cubin does not say that it is of a family); it may be NULL. The bytes are copied. From any thread.
///
/// # Safety
///
/// `name` is NUL-terminated, and so is `target`, or it is NULL; `data` is the address of `length` bytes; `error` is NULL or
/// an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_request_add_image(
    request: *mut RequestHandle,
    name: *const c_char,
    target: *const c_char,
    data: *const u8,
    length: usize,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        add(request, name, data, length, error, |request, name, data| {
            let target = match target.is_null() {
                true => None,
                false => Some(text(target, "target")?.to_owned()),
            };
            let bytes = data.into();
            request.inputs.push(Input { name, bytes, target });
            Ok(())
        })
    }
}

/// Adds a library of bitcode or LLVM IR, of which what is needed is linked into the kernels. The bytes are copied. From any
/// thread.
///
/// # Safety
///
/// As for `gpulower_request_add_input`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_request_add_library(
    request: *mut RequestHandle,
    name: *const c_char,
    data: *const u8,
    length: usize,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        add(request, name, data, length, error, |request, name, data| {
            let bytes = data.into();
            request.libraries.push(Library::Memory { name, bytes });
            Ok(())
        })
    }
}

/// Adds compiled code that is linked with what the inputs become: PTX, a relocatable cubin, LTO-IR, an AMDGPU object, an
/// archive of these. The bytes are copied. From any thread.
///
/// # Safety
///
/// As for `gpulower_request_add_input`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_request_add_object(
    request: *mut RequestHandle,
    name: *const c_char,
    data: *const u8,
    length: usize,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        add(request, name, data, length, error, |request, name, data| {
            let bytes = data.into();
            request.objects.push(Library::Memory { name, bytes });
            Ok(())
        })
    }
}

/// Frees a request. NULL is ignored. From any thread; a call that is under way with it goes on.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_request_free(request: *mut RequestHandle) -> Status {
    free::<Mutex<Request>, _>(request, "request")
}
