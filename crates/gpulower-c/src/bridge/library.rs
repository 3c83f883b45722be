//! Versions, the log, and what is for the whole process.

use std::{
    ffi::{c_char, c_void},
    sync::OnceLock,
};

use gpulower::{
    ErrorKind, Stage,
    options::{DESCRIPTIONS, OptionDescription},
    passes::{PassDescription, descriptions},
};
use serde_json::json;
use tracing::level_filters::LevelFilter;

use super::{ErrorHandle, attempt, callbacks, callbacks::LogCallback, text, versioned};
use crate::{
    config::refused,
    log,
    problem::{Problem, Status, Text},
};

versioned!("GPULOWER_1.0":
    gpulower_api_version, gpulower_version, gpulower_status_text, gpulower_options_json, gpulower_set_log,
    gpulower_contain_crashes, gpulower_worker_serve);
versioned!("GPULOWER_1.1": gpulower_passes_json);

/// Major version of this interface. A program that was built for 1.x works with a library of 1.y.
pub const API_VERSION_MAJOR: u32 = 1;
/// Minor version of this interface: functions, keys and members may have been added since a smaller one.
pub const API_VERSION_MINOR: u32 = 1;

/// The version of the interface that this library has: the major version in the upper 16 bits, the minor version in the
/// lower. Ask first, and compare with `GPULOWER_API_VERSION_MAJOR`. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_api_version() -> u32 {
    API_VERSION_MAJOR << 16 | API_VERSION_MINOR
}

/// The version of the library, such as "0.1.0". Static. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// A status in words. Static. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_status_text(status: i32) -> *const c_char {
    let text = match status {
        0 => c"ok",
        1 => c"it failed: the errors say why",
        2 => c"an argument is NULL, or has a length that cannot be",
        3 => c"a handle is NULL, of another kind, freed, or not of this library",
        4 => c"there is no element of this number",
        5 => c"the buffer is too small",
        6 => c"a bug in gpulower",
        _ => c"unknown status",
    };
    text.as_ptr()
}

/// The options that `gpulower_config_set` and `gpulower_request_set` take by name, as a JSON array of objects with
/// `names`, `summary`, `values`, `default` and `adds_up`. Static. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_options_json() -> *const c_char {
    static TEXT: OnceLock<Text> = OnceLock::new();
    let describe = |option: &OptionDescription| {
        json!({
            "names": option.names, "summary": option.summary, "values": option.values, "default": option.default,
            "adds_up": option.rules.adds_up,
        })
    };
    TEXT.get_or_init(|| {
        DESCRIPTIONS
            .iter()
            .map(describe)
            .collect::<serde_json::Value>()
            .to_string()
            .into()
    })
    .as_ptr()
}

/// The passes that `gpulower_run_pass` runs, as a JSON array of objects with `argument`, `description` and `options`, which
/// have `name`, `help` and `default`. Static. From any thread. Since 1.1.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_passes_json() -> *const c_char {
    static TEXT: OnceLock<Text> = OnceLock::new();
    let describe = |pass: &PassDescription| {
        let options = pass
            .options()
            .map(|(name, help, default)| json!({"name": name, "help": help, "default": default}));
        json!({
            "argument": pass.argument, "description": pass.description, "options": options.collect::<Vec<_>>(),
        })
    };
    TEXT.get_or_init(|| {
        descriptions()
            .iter()
            .map(describe)
            .collect::<serde_json::Value>()
            .to_string()
            .into()
    })
    .as_ptr()
}

/// Sends the library's log to `callback`, in the place of where it went before; nowhere if it is NULL. `level` is "error",
/// "warn", "info", "debug" or "trace": that, and what is graver. For the whole process. From any thread; calls that are
/// under way may use the old callback once more.
///
/// # Safety
///
/// `callback` can be called with `data` from any thread until another one is set and what is under way has ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_set_log(
    level: *const c_char,
    callback: LogCallback,
    data: *mut c_void,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            let level = text(level, "level")?;
            let filter: LevelFilter = level
                .parse()
                .map_err(|_| refused("level", level, "error, warn, info, debug or trace"))?;
            log::set(callbacks::log_sink(callback, data).map(|sink| (filter, sink)));
            Ok(())
        })
    }
}

/// Whether crashes inside LLVM, MLIR and NVIDIA's libraries come back as errors, as they do unless this is called with
/// false. For the whole process, because signal handlers are: those of SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP and SIGABRT
/// are installed with the first compilation, pass on what is not from such a crash to the handlers that were there before,
/// and stay; with false before that they are not installed. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_contain_crashes(enabled: bool) {
    gpulower::contain_crashes(enabled);
}

/// Makes this process a worker: it compiles for the process that started it, which has `worker` set to this program,
/// and returns when that one ends. To be called first of all, before anything reads the standard input or starts a thread.
///
/// # Safety
///
/// `error` is NULL or an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_worker_serve(error: *mut *mut ErrorHandle) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            gpulower::worker::serve().map_err(|error| Problem::new(Stage::Plan, ErrorKind::Worker, error.to_string()))
        })
    }
}
