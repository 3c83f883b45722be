//! `gpulower_config`.

use std::{
    ffi::{c_char, c_void},
    sync::Mutex,
};

use super::{
    ConfigHandle, ErrorHandle, attempt,
    callbacks::{self, ProgressCallbackOfC},
    free, get, locked, put, text, versioned,
};
use crate::{config::Config, handle::Object, problem::Status};

versioned!("GPULOWER_1.0":
    gpulower_config_create, gpulower_config_set, gpulower_config_set_progress, gpulower_config_free);

/// Makes a configuration with everything at its default. From any thread.
///
/// # Safety
///
/// `config` is an address for a handle; `error` is NULL or one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_config_create(
    config: *mut *mut ConfigHandle,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            put(config, "config", || Ok(Object::Config(Mutex::default().into())))
        })
    }
}

/// Sets one thing. Every option of `docs/options.md` has its name there as a key, for all requests; and there are:
///
/// | key | value |
/// |---|---|
/// | `environment` | `true`: read the environment when the compiler is made: CUDA_HOME, ROCM_PATH, XDG_CACHE_HOME and their like. Default `false` |
/// | `usual-places` | `false`: do not look for toolkits in the system's usual places. Default `true` |
/// | `cuda`, `rocm` | this toolkit and no other |
/// | `cuda-root`, `rocm-root` | a further toolkit to look into; may be repeated |
/// | `site-packages` | a folder of Python packages with NVIDIA's wheels; may be repeated |
/// | `path` | directories for programs such as ptxas, as in PATH |
/// | `cache-dir` | where to keep what is made once for each toolkit, and results |
/// | `cache` | `true`: keep results, in memory and in `cache-dir` if there is one. Default `false` |
/// | `cache-bytes`, `cache-memory-bytes` | most bytes of results on disk and in memory |
/// | `cache-remote` | share results with other machines: a URL such as `redis://HOST/DB/PREFIX`; with `environment`, credentials too. Since 1.1 |
/// | `cache-sign-key`, `cache-accept-key` | the file of a key to sign them with; a key that has to have signed them, again for more. Since 1.1 |
/// | `cache-shared-with` | `group:NAME` or `user:NAME`: whose entries the directory may have. Since 1.1 |
/// | `threads` | use at most so many. Default: one for each processor |
/// | `worker` | the absolute path of the program `gpulower`, or of one that calls `gpulower_worker_serve`, for `isolation` = `worker` |
/// | `worker-argument` | what the program is started with, in the place of `worker`; may be repeated |
/// | `worker-environment` | NAME=VALUE, a variable for the program, whose environment is empty otherwise; may be repeated |
///
/// From any thread.
///
/// # Safety
///
/// `key` and `value` are NUL-terminated; `error` is NULL or an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_config_set(
    config: *mut ConfigHandle,
    key: *const c_char,
    value: *const c_char,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            let config = get::<Mutex<Config>, _>(config, "config")?;
            let (key, value) = (text(key, "key")?, text(value, "value")?);
            locked(&config).set(key, value)
        })
    }
}

/// Has the compilers of this configuration tell their progress to `callback`, or nobody if it is NULL. From any thread.
///
/// # Safety
///
/// `callback` can be called with `data` from any thread as long as a compiler of this configuration works; `error` is NULL
/// or an address for a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gpulower_config_set_progress(
    config: *mut ConfigHandle,
    callback: ProgressCallbackOfC,
    data: *mut c_void,
    error: *mut *mut ErrorHandle,
) -> Status {
    // SAFETY: the caller's contract.
    unsafe {
        attempt(error, || {
            let config = get::<Mutex<Config>, _>(config, "config")?;
            locked(&config).progress = callbacks::progress(callback, data);
            Ok(())
        })
    }
}

/// Frees a configuration. Compilers that were made of it stay as they are. NULL is ignored. From any thread.
#[unsafe(no_mangle)]
pub extern "C" fn gpulower_config_free(config: *mut ConfigHandle) -> Status {
    free::<Mutex<Config>, _>(config, "config")
}
