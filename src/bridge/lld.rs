//! lld's ELF linker, called inside this process.
//!
//! lld keeps one global context, and swaps the process's signal handlers while it runs, so links
//! are serialized by a lock. lld also resets every LLVM command line option (`cl::opt`) that is
//! registered when it starts: the shim hides them from it, so that those of the program around this
//! library keep their values.

use std::ffi::{CString, OsStr, c_char, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

/// A link that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("lld failed{}: {}", if self.can_run_again { "" } else { " (fatal error)" }, self.text.trim_end())]
pub struct LldError {
    /// Everything lld printed.
    pub text: String,
    /// False when lld stopped at a fatal error (a damaged input, for example) half way. Its state was
    /// cleared, and later links were seen to work, but lld itself promises nothing from there on.
    pub can_run_again: bool,
}

/// One link at a time, as lld has one context per process.
static LINK: Mutex<()> = Mutex::new(());

unsafe extern "C" {
    fn gpulowerLldLinkElf(
        argv: *const *const c_char,
        argc: usize,
        sink: unsafe extern "C" fn(*mut c_void, *const c_char, usize),
        context: *mut c_void,
    ) -> c_uint;
}

/// Copies lld's text into the `String` behind `context`.
unsafe extern "C" fn collect(context: *mut c_void, text: *const c_char, length: usize) {
    if length == 0 {
        return;
    }
    // SAFETY: `link` passes a pointer to its own `Vec<u8>` as context, which nothing else touches
    // during the call; the shim passes `length` readable bytes that live until this returns.
    unsafe {
        let bytes = std::slice::from_raw_parts(text.cast::<u8>(), length);
        (*context.cast::<Vec<u8>>()).extend_from_slice(bytes);
    }
}

/// Runs `ld.lld` with `args` (without the program name) and returns what it printed, which on success
/// is warnings or nothing.
///
/// Give `--threads=1`: only the calling thread is protected against lld's fatal errors, and small
/// links are slower with a pool. `-o -` must not be given: it writes to the process's standard output.
///
/// # Errors
///
/// [`LldError`] with lld's own text when the link fails, or when an argument contains a NUL byte.
pub fn link<S: AsRef<OsStr>>(args: &[S]) -> Result<String, LldError> {
    let mut owned = vec![c"ld.lld".to_owned()];
    for argument in args {
        let argument = argument.as_ref();
        owned.push(CString::new(argument.as_bytes()).map_err(|_| LldError {
            text: format!("the argument {argument:?} contains a NUL byte"),
            can_run_again: true,
        })?);
    }
    let argv: Vec<*const c_char> = owned.iter().map(|argument| argument.as_ptr()).collect();
    tracing::trace!(?owned, "lld");

    let mut text: Vec<u8> = Vec::new();
    let status = {
        // The lock protects no data of ours: a panic in an earlier holder leaves nothing broken.
        let _one_link = LINK.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: `argv` holds `argv.len()` pointers to NUL-terminated strings that outlive the call;
        // `collect` is called at most once, with the context given here, before the call returns; the
        // lock keeps a second thread out of lld; no Rust frame lies between the shim and lld, so that
        // lld's jump out of a fatal error skips no Rust destructor.
        unsafe { gpulowerLldLinkElf(argv.as_ptr(), argv.len(), collect, (&raw mut text).cast::<c_void>()) }
    };
    let text = String::from_utf8_lossy(&text).into_owned();
    let can_run_again = status & 0x100 == 0;
    if status & 0xff == 0 && can_run_again {
        Ok(text)
    } else {
        Err(LldError { text, can_run_again })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// An AMDGPU object made by LLVM's own `llc`, which the build prefix provides.
    fn object(directory: &Path) -> std::path::PathBuf {
        let source = directory.join("k.ll");
        std::fs::write(
            &source,
            "target triple = \"amdgcn-amd-amdhsa\"\n\
             define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n  store i32 1, ptr addrspace(1) %p\n  ret void\n}\n",
        )
        .unwrap();
        let object = directory.join("k.o");
        let status = Command::new("/usr/lib/llvm-22/bin/llc")
            .args(["-mcpu=gfx942", "-filetype=obj", "-o"])
            .arg(&object)
            .arg(&source)
            .stdin(Stdio::null())
            .status()
            .expect("llc of LLVM 22 (package llvm-22) is needed by this test");
        assert!(status.success());
        object
    }

    #[test]
    fn link_equals_ld_lld_and_survives_fatal_errors() {
        let directory = tempfile::tempdir().unwrap();
        let object = object(directory.path());
        let damaged = directory.path().join("damaged.o");
        let bytes = std::fs::read(&object).unwrap();
        std::fs::write(&damaged, &bytes[..bytes.len() / 2]).unwrap();
        let spawned = directory.path().join("spawned");
        let status = Command::new("/usr/lib/llvm-22/bin/ld.lld")
            .args(["-shared", "-o"])
            .args([&spawned, &object])
            .status()
            .expect("ld.lld of LLVM 22 (package lld-22) is needed by this test");
        assert!(status.success());
        let expected = std::fs::read(&spawned).unwrap();

        for round in 0..3 {
            let out = directory.path().join(format!("out{round}"));
            let good = link(&[
                OsStr::new("--threads=1"),
                OsStr::new("-shared"),
                OsStr::new("-o"),
                out.as_os_str(),
                object.as_os_str(),
            ]);
            assert_eq!(good, Ok(String::new()));
            assert_eq!(std::fs::read(&out).unwrap(), expected);

            let fatal = link(&[
                OsStr::new("--threads=1"),
                OsStr::new("-shared"),
                OsStr::new("-o"),
                out.as_os_str(),
                damaged.as_os_str(),
            ])
            .unwrap_err();
            assert!(!fatal.text.is_empty(), "{fatal:?}");
            assert!(fatal.to_string().starts_with("lld failed"), "{fatal}");
        }
    }

    #[test]
    fn ordinary_errors_carry_the_text() {
        let error = link(&["--threads=1", "-shared", "/nowhere/at/all.o"]).unwrap_err();
        assert!(error.can_run_again);
        assert!(error.text.contains("/nowhere/at/all.o"), "{error}");
        let error = link(&["a\0b"]).unwrap_err();
        assert!(error.text.contains("NUL"), "{error}");
    }

    #[test]
    fn four_threads_link_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let object = object(directory.path());
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (directory, object) = (directory.path(), &object);
                scope.spawn(move || {
                    for round in 0..5 {
                        let out = directory.join(format!("{thread}-{round}"));
                        link(&[
                            OsStr::new("--threads=1"),
                            OsStr::new("-shared"),
                            OsStr::new("-o"),
                            out.as_os_str(),
                            object.as_os_str(),
                        ])
                        .unwrap();
                    }
                });
            }
        });
        let first = std::fs::read(directory.path().join("0-0")).unwrap();
        let last = std::fs::read(directory.path().join("3-4")).unwrap();
        assert_eq!(first, last);
    }
}
