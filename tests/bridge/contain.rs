//! What contained calls leave behind, in this process and in one of their own.

use super::*;
use std::{hint, thread};

fn deeper(level: usize) -> usize {
    let frame = hint::black_box([level; 64]);
    if frame[0] == usize::MAX {
        return 0;
    }
    deeper(level + 1) + frame[level % 64]
}

fn overflow() -> Result<usize, String> {
    // SAFETY: the frames of `deeper` own nothing.
    unsafe { contained(|| deeper(0)) }
}

#[test]
fn a_call_gives_its_result() {
    // SAFETY: the closure owns nothing.
    assert_eq!(unsafe { contained(|| 42) }, Ok(42));
}

#[test]
fn the_end_of_a_stack_is_an_error() {
    let overflows = || {
        for _ in 0..3 {
            assert_eq!(overflow(), Err("the end of the stack was reached (SIGSEGV)".to_owned()));
        }
    };
    thread::spawn(overflows).join().expect("goes on");
    // Threads that are not Rust's have no stack for handlers.
    let without_handler_stack = move || {
        let none = libc::stack_t {
            ss_sp: std::ptr::null_mut(),
            ss_flags: libc::SS_DISABLE,
            ss_size: 0,
        };
        // SAFETY: Rust finds none when this thread ends, and frees what it had.
        assert_eq!(unsafe { libc::sigaltstack(&none, std::ptr::null_mut()) }, 0);
        overflows();
    };
    thread::spawn(without_handler_stack).join().expect("goes on");
}

#[test]
fn copies_from_nowhere_are_errors() {
    let mut to = [0_u8; 100];
    let to = to.as_mut_ptr() as usize;
    // Some processors copy much by a function that several others end in.
    for size in [1, 100] {
        // SAFETY: the closure owns nothing, and `to` has that many bytes.
        let copied = unsafe {
            contained(move || {
                libc::memcpy(to as *mut _, hint::black_box(0x10 as *const _), hint::black_box(size)) as usize
            })
        };
        let words = copied.expect_err("nothing is there");
        assert!(words.starts_with("invalid access to memory"), "{size}: {words}");
    }
}

#[test]
fn signals_of_the_processor_have_words() {
    // SAFETY: the closures own nothing.
    unsafe {
        let read = |address: usize| contained(move || hint::black_box(*hint::black_box(address as *const u8)));
        assert_eq!(read(0x10), Err("invalid access to memory at 0x10 (SIGSEGV)".to_owned()));
        // An address that no process can have: x86-64 does not tell it, AArch64 does.
        let words = read(0x80f0_0000_0000_0000).expect_err("nothing is there");
        if cfg!(target_arch = "x86_64") {
            assert_eq!(words, "invalid access to memory (SIGSEGV)");
        }
        assert!(words.starts_with("invalid access to memory"), "{words}");
    }
}

unsafe extern "C-unwind" {
    /// `std::terminate`, `operator new` and the function of the C++ library that throws `std::length_error`.
    #[link_name = "_ZSt9terminatev"]
    fn terminate() -> !;
    #[link_name = "_Znwm"]
    fn allocate(size: usize) -> *mut c_void;
    #[link_name = "_ZSt20__throw_length_errorPKc"]
    fn throw(text: *mut c_void);
    #[link_name = "_ZSt17__throw_bad_allocv"]
    fn throw_of_memory(_: *mut c_void);
}

#[test]
fn what_gives_up_is_an_error() {
    for _ in 0..3 {
        // SAFETY: the closures own nothing.
        let (aborted, terminated, allocated) = unsafe {
            (
                contained(|| -> () { libc::abort() }),
                contained(|| -> () { terminate() }),
                contained(|| allocate(usize::MAX >> 1)).map(drop),
            )
        };
        assert_eq!(aborted, Err("it gave up (SIGABRT)".to_owned()));
        assert_eq!(
            terminated,
            Err("a C++ exception that nothing catches: unknown".to_owned())
        );
        assert_eq!(allocated, Err("out of memory".to_owned()));
    }
}

#[test]
fn an_exception_is_an_error() {
    for _ in 0..3 {
        // SAFETY: the functions throw, which C++ alone sees.
        let (thrown, exhausted) = unsafe {
            (
                gpulowerContain(throw, c"too long".as_ptr().cast_mut().cast()).into_result(),
                gpulowerContain(throw_of_memory, std::ptr::null_mut()).into_result(),
            )
        };
        assert_eq!(thrown, Err(LlvmError::Fatal("a C++ exception: too long".to_owned())));
        assert_eq!(exhausted, Err(LlvmError::Fatal("out of memory".to_owned())));
    }
}

/// Runs a test that is ignored otherwise in a process of its own; how that ended.
fn alone(test: &str) -> std::process::ExitStatus {
    let mut program = std::process::Command::new(std::env::current_exe().expect("a path"));
    program.args([&format!("bridge::contain::tests::{test}"), "--exact", "--ignored"]);
    program.output().expect("runs").status
}

/// The C library finds it, with the lock of the heap held.
#[test]
fn a_broken_heap_ends_the_process() {
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(alone("breaks_the_heap").signal(), Some(libc::SIGABRT));
}

#[test]
#[ignore = "it ends the process: `a_broken_heap_ends_the_process` runs it"]
fn breaks_the_heap() {
    // SAFETY: it is not: this is what ends the process.
    let result = unsafe {
        contained(|| {
            let block = hint::black_box(libc::malloc(24));
            libc::free(block);
            libc::free(hint::black_box(block));
        })
    };
    panic!("{result:?}");
}

/// A library that `dlopen` brings has no room for such thread-local storage.
#[test]
fn there_is_no_static_thread_local_storage() {
    let archive = concat!(env!("OUT_DIR"), "/libgpulower_bridge.a");
    let output = std::process::Command::new("readelf")
        .args(["-rW", archive])
        .output()
        .expect("readelf of binutils, which a C++ compiler comes with");
    assert!(output.status.success());
    let relocations = String::from_utf8_lossy(&output.stdout);
    assert!(relocations.contains(" R_"), "no relocations were read");
    // x86-64: initial exec and local exec; AArch64: the same.
    for kind in ["GOTTPOFF", "TPOFF64", "TPOFF32", "TLSIE", "TLSLE"] {
        let found: Vec<&str> = relocations
            .lines()
            .filter(|line| line.contains(kind) && !line.contains("DTPOFF"))
            .collect();
        assert!(found.is_empty(), "{found:#?}");
    }
}

#[test]
fn messages_say_what_to_do() {
    assert_eq!(
        LlvmError::Crashed("the end of the stack was reached (SIGSEGV)".to_owned()).to_string(),
        "LLVM or MLIR crashed: the end of the stack was reached (SIGSEGV); what it worked on is lost; report the \
         input to its authors, and compile what you do not trust with isolation=worker"
    );
}
