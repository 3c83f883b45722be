//! lld's ELF linker, called inside this process.
//!
//! lld keeps one global context, so links follow each other on one thread. lld also resets every LLVM
//! command line option (`cl::opt`) that is registered when it starts: the shim hides them from it, so
//! that those of the program around this library keep their values.

use std::ffi::{CString, OsStr, c_char, c_uint, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;

use super::contain::{LlvmError, Uncontained};

unsafe extern "C-unwind" {
    fn gpulowerInitializeTargets();
    fn gpulowerLldLinkElf(
        argv: *const *const c_char,
        argc: usize,
        sink: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
        context: *mut c_void,
    ) -> c_uint;
}

/// Copies lld's text into the `String` behind `context`.
unsafe extern "C" fn collect(context: *mut c_void, text: *const c_char, length: usize) {
    let _uncontained = Uncontained::new();
    if length == 0 {
        return;
    }
    // SAFETY: `link_here` passes a pointer to its own `Vec<u8>` as context, which nothing else touches
    // during the call; the shim passes `length` readable bytes that live until this returns.
    unsafe {
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), length);
        (*context.cast::<Vec<u8>>()).extend_from_slice(bytes);
    }
}

/// A link to be done, and where its outcome goes: lld's status and what it printed.
struct Request {
    arguments: Vec<CString>,
    reply: mpsc::Sender<(u32, Vec<u8>)>,
}

/// The one thread that links, for the life of the process, and the process that it is of: one that was forked has none.
///
/// lld has one context per process, so links follow each other anyway. And lld keeps objects in thread-local storage;
/// after a fatal error one of them is half made, and the destructor that runs when its thread ends would free garbage.
/// This thread never ends.
static LINKER: Mutex<Option<(u32, mpsc::Sender<Request>)>> = Mutex::new(None);

/// Has the thread that links do so.
fn send(request: Request) -> Result<(), String> {
    let mut linker = lock(&LINKER);
    let this = std::process::id();
    let sender = match &*linker {
        Some((process, sender)) if *process == this => sender,
        _ => &linker.insert((this, start().map_err(|error| error.to_string())?)).1,
    };
    sender.send(request).map_err(|_| "it has ended".to_owned())
}

fn start() -> io::Result<mpsc::Sender<Request>> {
    let (requests, inbox) = mpsc::channel::<Request>();
    thread::Builder::new()
        .name("gpulower-lld".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            for request in inbox {
                // Nobody waiting any more is no reason to stop.
                let _ = request.reply.send(link_here(&request.arguments));
            }
        })?;
    Ok(requests)
}

/// lld expects a stack like that of a main thread.
const STACK_BYTES: usize = 16 << 20;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The lock protects no invariant that a panic could break.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Links on this thread.
fn link_here(arguments: &[CString]) -> (u32, Vec<u8>) {
    let argv: Vec<*const c_char> = arguments.iter().map(|argument| argument.as_ptr()).collect();
    let mut text: Vec<u8> = Vec::new();
    // SAFETY: `argv` holds `argv.len()` pointers to NUL-terminated strings that outlive the call; `collect` is called at
    // most once, with the context given here, before the call returns; only the linking thread calls this, so lld is
    // never entered twice at once; no Rust frame lies between the shim and lld, so that lld's jump out of a fatal error
    // skips no Rust destructor.
    let status = unsafe {
        gpulowerInitializeTargets();
        gpulowerLldLinkElf(argv.as_ptr(), argv.len(), collect, (&raw mut text).cast::<c_void>())
    };
    (status, text)
}

/// Runs `ld.lld` with `args` (without the program name) and returns what it printed, which on success
/// is warnings or nothing.
///
/// Give `--threads=1`: only the calling thread is protected against lld's fatal errors, and small
/// links are slower with a pool. `-o -` must not be given: it writes to the process's standard output.
///
/// # Errors
///
/// [`LlvmError`] with lld's own text when the link fails, or when an argument contains a NUL byte. It is fatal when lld stopped
/// half way (a damaged input, for example): its state was cleared, and later links were seen to work, but lld itself promises
/// nothing from there on.
pub(crate) fn link<S: AsRef<OsStr>>(args: &[S]) -> Result<String, LlvmError> {
    let mut owned = vec![c"ld.lld".to_owned()];
    for argument in args {
        let argument = argument.as_ref();
        owned.push(
            CString::new(argument.as_bytes())
                .map_err(|_| LlvmError::Refused(format!("the argument {argument:?} contains a NUL byte")))?,
        );
    }
    tracing::trace!(?owned, "lld");
    let unavailable = |reason: &str| LlvmError::Fatal(format!("the thread that links cannot be used: {reason}"));
    let (reply, result) = mpsc::channel();
    let request = Request {
        arguments: owned,
        reply,
    };
    send(request).map_err(|reason| unavailable(&reason))?;
    let (status, text) = result.recv().map_err(|_| unavailable("it has ended"))?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    let can_run_again = status & 0x100 == 0;
    if status & 0xff == 0 && can_run_again {
        Ok(text)
    } else {
        if text.trim().is_empty() {
            "it gave no reason, as it does where there is no memory left".clone_into(&mut text);
        }
        Err(match can_run_again {
            true => LlvmError::Refused(text),
            false => LlvmError::Fatal(text),
        })
    }
}

#[cfg(test)]
#[path = "../../tests/bridge/lld.rs"]
mod tests;
