//! `gpulower_compiler`, `gpulower_cancellation`, and the calls that do the work.

use std::{ffi::c_char, sync::Mutex};

use gpulower::{CancellationToken, Compiler};

use super::{
    CancellationHandle, CompilerHandle, ConfigHandle, ErrorHandle, RequestHandle, ResultHandle, attempt, bytes, free,
    get, locked, operation, put, text, value, versioned,
};
use crate::{
    config::Config,
    handle::Object,
    operations,
    outcome::Outcome,
    problem::{Problem, Status},
    request::Request,
};

versioned!("GPULOWER_1.0":
    gpulower_compiler_create, gpulower_compiler_free, gpulower_cancellation_create, gpulower_cancellation_cancel,
    gpulower_cancellation_is_cancelled, gpulower_cancellation_free, gpulower_compile, gpulower_plan, gpulower_link,
    gpulower_export, gpulower_pack, gpulower_inspect, gpulower_toolkit);
versioned!("GPULOWER_1.1": gpulower_run_pass);

/// Makes a compiler. `config` is read now; NULL is one with everything at its default. Compilers keep libraries, tools and
/// workers between calls: make one, and use it from all threads at once. From any thread.
///
/// # Safety
///
/// `compiler` is an address for a handle; `error` is NULL or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_compiler_create(
    config: *const ConfigHandle,
    compiler: *mut *mut CompilerHandle,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            put(compiler, "compiler", || {
                let made = match config.is_null() {
                    true => Config::default().compiler()?,
                    // A copy: making a compiler is logged, and who takes the log may call this library.
                    false => {
                        let config = locked(&*get::<Mutex<Config>, _>(config, "config")?).clone();
                        config.compiler()?
                    }
                };
                Ok(Object::Compiler(made.into()))
            })
        })
    }
}

/// Frees a compiler. NULL is ignored. From any thread; calls that are under way go on, and the last one ends its workers.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_compiler_free(compiler: *mut CompilerHandle) -> Status {
    free::<Compiler, _>(compiler, "compiler")
}

/// Makes something to end calls with. From any thread.
///
/// # Safety
///
/// `cancellation` is an address for a handle; `error` is NULL or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_cancellation_create(
    cancellation: *mut *mut CancellationHandle,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            put(cancellation, "cancellation", || {
                Ok(Object::Cancellation(CancellationToken::new().into()))
            })
        })
    }
}

/// Ends the calls that were given this, and whatever will be: each module and target that was not done is an error
/// (E1101). What has not begun does not begin; a running ptxas or worker is killed; in this process the work ends with the
/// stage that it is in. From any thread, also from a callback.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_cancellation_cancel(cancellation: *mut CancellationHandle) -> Status {
    let cancel = || {
        get::<CancellationToken, _>(cancellation, "cancellation")?.cancel();
        Ok(())
    };
    super::caught(cancel).map_or_else(|problem: Problem| problem.status, |()| Status::Ok)
}

/// Whether it was cancelled. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_cancellation_is_cancelled(cancellation: *const CancellationHandle) -> bool {
    value(cancellation, false, |token: &CancellationToken| {
        Some(token.is_cancelled())
    })
}

/// Frees it. NULL is ignored. From any thread; calls that were given it go on.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_cancellation_free(cancellation: *mut CancellationHandle) -> Status {
    free::<CancellationToken, _>(cancellation, "cancellation")
}

/// Carries out an operation on a request, as the request is now.
///
/// # Safety
///
/// `result` is NULL, or valid to be written to.
unsafe fn on_request(
    name: &str,
    work: impl FnOnce(&Compiler, &Request, Option<&CancellationToken>) -> Outcome,
    compiler: *const CompilerHandle,
    request: *const RequestHandle,
    cancellation: *const CancellationHandle,
    result: *mut *mut ResultHandle,
) -> Status {
    let carried_out = || {
        let compiler = get::<Compiler, _>(compiler, "compiler")?;
        let request = locked(&*get::<Mutex<Request>, _>(request, "request")?).clone();
        let token = match cancellation.is_null() {
            true => None,
            false => Some(get::<CancellationToken, _>(cancellation, "cancellation")?),
        };
        Ok(work(&compiler, &request, token.as_deref()))
    };
    // SAFETY: the caller's contract.
    unsafe { operation(result, name, carried_out) }
}

/// Compiles the inputs of a request, for its targets, to its form. `cancellation` may be NULL. There is a result whatever
/// happens, unless `result` is NULL: with `keep-going` it may have artifacts and errors. From any thread, from several at once
/// with the same compiler and request; it needs little stack of the calling thread.
///
/// # Safety
///
/// `result` is an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_compile(
    compiler: *const CompilerHandle,
    request: *const RequestHandle,
    cancellation: *const CancellationHandle,
    result: *mut *mut ResultHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe { on_request("compile", operations::compile, compiler, request, cancellation, result) }
}

/// Says what `gpulower_compile` would do, in the report: phases and artifacts. From any thread.
///
/// # Safety
///
/// `result` is an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_plan(
    compiler: *const CompilerHandle,
    request: *const RequestHandle,
    result: *mut *mut ResultHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        let work = |compiler: &Compiler, request: &Request, _: Option<&_>| operations::plan(compiler, request);
        on_request("plan", work, compiler, request, std::ptr::null(), result)
    }
}

/// Links the inputs of a request into one image for its one target: compiled code, and MLIR and LLVM IR, which are
/// compiled first. The artifact is a cubin or an hsaco. `cancellation` may be NULL. From any thread.
///
/// # Safety
///
/// `result` is an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_link(
    compiler: *const CompilerHandle,
    request: *const RequestHandle,
    cancellation: *const CancellationHandle,
    result: *mut *mut ResultHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe { on_request("link", operations::link, compiler, request, cancellation, result) }
}

/// Exports a whole program, host code and kernels, as one file for a machine that finishes it with its own clang. The
/// report has the command, `commands`. `cancellation` may be NULL. From any thread.
///
/// # Safety
///
/// `result` is an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_export(
    compiler: *const CompilerHandle,
    request: *const RequestHandle,
    cancellation: *const CancellationHandle,
    result: *mut *mut ResultHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe { on_request("export", operations::export, compiler, request, cancellation, result) }
}

/// Runs a pass of gpulower's (`pass`, with `pass-option`) on the one input of a request, a module in MLIR, as a pass manager
/// would run it; of the compiler it has toolkits, threads and cache. The artifact is the module, in generic form with
/// locations. The text of errors and warnings is that of the diagnostics, without their places. Of an input without bytes,
/// the options are checked, and nothing else is done. `cancellation` may be NULL. From any thread. Since 1.1.
///
/// # Safety
///
/// `result` is an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_run_pass(
    compiler: *const CompilerHandle,
    request: *const RequestHandle,
    cancellation: *const CancellationHandle,
    result: *mut *mut ResultHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        on_request(
            "run_pass",
            operations::run_pass,
            compiler,
            request,
            cancellation,
            result,
        )
    }
}

/// Puts the images of a request into one container: `emit` is `fatbin`, `bundle` or `offload`. From any thread.
///
/// # Safety
///
/// `result` is an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_pack(
    compiler: *const CompilerHandle,
    request: *const RequestHandle,
    result: *mut *mut ResultHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        let work = |compiler: &Compiler, request: &Request, _: Option<&_>| operations::pack(compiler, request);
        on_request("pack", work, compiler, request, std::ptr::null(), result)
    }
}

/// Says what is in a file, in the report: images, kernels, and what each of `devices` (such as "sm_86,gfx90a"; may be
/// NULL) loads of it. The artifacts are the images, decompressed. Damaged parts are errors. From any thread.
///
/// # Safety
///
/// `name` is NUL-terminated, and so is `devices`, or it is NULL; `data` is the address of `length` bytes; `result` is an
/// address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_inspect(
    name: *const c_char,
    data: *const u8,
    length: usize,
    devices: *const c_char,
    result: *mut *mut ResultHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        operation(result, "inspect", || {
            let (name, data) = (text(name, "name")?, bytes(data, length, "data")?);
            let devices = if devices.is_null() {
                ""
            } else {
                text(devices, "devices")?
            };
            Ok(operations::inspect(name, data, devices))
        })
    }
}

/// Says which parts of CUDA and ROCm a compiler has, where, and where it looked for the others, in the report. From any
/// thread.
///
/// # Safety
///
/// `result` is an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_toolkit(compiler: *const CompilerHandle, result: *mut *mut ResultHandle) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        operation(result, "toolkit", || {
            Ok(operations::toolkit(&*get::<Compiler, _>(compiler, "compiler")?))
        })
    }
}
