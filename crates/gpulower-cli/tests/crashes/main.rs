//! Crashes of LLVM and MLIR in the process that embeds the library, and signals that are its own.
//!
//! Each case is a process of its own: signal handlers are for all of it. Without arguments, or with those of `cargo test`,
//! the program runs every case and compares how it ended.
#![allow(unsafe_code, reason = "faults that are caught or not are made here")]

use std::{
    env, hint,
    os::unix::process::ExitStatusExt,
    process::{Command, ExitCode, Output},
    thread,
    time::Duration,
};

use gpulower::{Compilation, Compiler, Emit, ErrorKind, Failure, Stage, Target, contain_crashes};
use rustix::process::{Signal, getpid, kill_process};

/// MLIR 22 asks `index` for its bits, through a null pointer, while it reads the type
/// (`TDMGatherBaseType::verify` in mlir/lib/Dialect/AMDGPU/IR/AMDGPUDialect.cpp).
const CRASHES: &str = "gpu.module @m { gpu.func @k(%a: !amdgpu.tdm_gather_base<index, i32>) kernel { gpu.return } }";

/// It needs no device library: where none is found, these tests are about crashes all the same.
const SAXPY: &str = "gpu.module @saxpy { gpu.func @saxpy(%p: memref<?xf32>, %a: f32) kernel {
      %i = gpu.thread_id x
      %x = memref.load %p[%i] : memref<?xf32>
      %y = arith.mulf %x, %a : f32
      memref.store %y, %p[%i] : memref<?xf32>
      gpu.return } }";

/// A case: its name, what its process does, and what is wrong with how that ended.
type Case = (&'static str, fn(), fn(&Output) -> bool);

const CASES: &[Case] = &[
    (
        "a crash is an error, and the next compilation works",
        goes_on,
        |output| output.status.success() && output.stderr.is_empty(),
    ),
    ("crashes while lld links on another thread", while_lld_links, |output| {
        output.status.success() && output.stderr.is_empty()
    }),
    ("a crash with containment switched off", switched_off, |output| {
        ended_by(output, Signal::SEGV)
    }),
    ("the end of a stack of the program's own", own_overflow, |output| {
        // What Rust's handler does, which was there before.
        ended_by(output, Signal::ABORT) && String::from_utf8_lossy(&output.stderr).contains("has overflowed its stack")
    }),
    ("a signal from elsewhere", signal_from_elsewhere, |output| {
        ended_by(output, Signal::FPE)
    }),
    (
        "a signal from elsewhere while LLVM works",
        signal_while_compiling,
        |output| ended_by(output, Signal::FPE),
    ),
    ("a trap of the program's own", own_trap, |output| {
        ended_by(output, Signal::TRAP)
    }),
    ("an abort of the program's own", own_abort, |output| {
        ended_by(output, Signal::ABORT)
    }),
    ("an abort while LLVM works", abort_while_compiling, |output| {
        ended_by(output, Signal::ABORT)
    }),
    ("a handler of the program's own", own_handler, |output| {
        output.status.code() == Some(42) && output.stdout == b"address 0x10\n"
    }),
];

fn main() -> ExitCode {
    let name = env::args().nth(1).unwrap_or_default();
    if let Some((_, run, _)) = CASES.iter().find(|(case, ..)| *case == name) {
        run();
        return ExitCode::SUCCESS;
    }
    let mut failed = 0;
    for (name, _, is_right) in CASES {
        let output = env::current_exe()
            .and_then(|program| Command::new(program).arg(name).output())
            .expect("this program starts");
        if is_right(&output) {
            println!("crashes: {name} ... ok");
        } else {
            println!("crashes: {name} ... FAILED: {output:?}");
            failed += 1;
        }
    }
    println!("crashes: {} passed, {failed} failed", CASES.len() - failed);
    ExitCode::from(u8::from(failed > 0))
}

fn ended_by(output: &Output, signal: Signal) -> bool {
    output.status.signal() == Some(signal.as_raw())
}

fn compiler() -> Compiler {
    Compiler::builder().threads(1).build()
}

fn compile(compiler: &Compiler, text: &str) -> Result<Compilation, Failure> {
    let target: Target = "sm_90".parse().expect("a target");
    compiler.compile_source("k.mlir", text.as_bytes(), &[target], Emit::Ptx)
}

fn saxpy(compiler: &Compiler) -> Vec<u8> {
    let compilation = compile(compiler, SAXPY).expect("compiles");
    compilation.artifacts[0].bytes.clone()
}

fn goes_on() {
    let compiler = compiler();
    let before = saxpy(&compiler);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let failure = compile(&compiler, CRASHES).map(drop).expect_err("crashes");
                    let error = &failure.errors[0];
                    assert_eq!(error.stage, Stage::Input);
                    assert_eq!(
                        error.to_string(),
                        "k.mlir:1:1: input: LLVM or MLIR crashed: invalid access to memory at 0x0 (SIGSEGV); what it \
                         worked on is lost; report the input to its authors, and compile what you do not trust with \
                         isolation=worker"
                    );
                    assert_eq!(saxpy(&compiler), before);
                }
            });
        }
    });
    assert_eq!(saxpy(&compiler), before);
}

/// lld's recovery context has handlers of its own meanwhile, and raises what it takes again.
fn while_lld_links() {
    let compiler = compiler();
    let target: Target = "gfx942".parse().expect("a target");
    let link = || {
        let compilation = compiler.compile_source("k.mlir", SAXPY.as_bytes(), &[target], Emit::Hsaco);
        compilation.expect("compiles").artifacts[0].bytes.clone()
    };
    let before = link();
    thread::scope(|scope| {
        let linking = scope.spawn(|| (0..50).all(|_| link() == before));
        while !linking.is_finished() {
            compile(&compiler, CRASHES).map(drop).expect_err("crashes");
        }
        assert!(linking.join().expect("links"));
    });
}

fn switched_off() {
    contain_crashes(false);
    let compiler = compiler();
    saxpy(&compiler);
    drop(compile(&compiler, CRASHES));
}

fn own_overflow() {
    fn deeper(level: usize) -> usize {
        let frame = hint::black_box([level; 64]);
        if frame[0] == usize::MAX {
            return 0;
        }
        deeper(level + 1) + frame[level % 64]
    }
    saxpy(&compiler());
    thread::spawn(|| hint::black_box(deeper(0)))
        .join()
        .expect("it does not return");
}

/// Not SIGSEGV: Rust's handler takes the first one of those for a fault, which would come again.
fn send_itself_a_signal() {
    kill_process(getpid(), Signal::FPE).expect("sent");
    thread::sleep(Duration::from_secs(10));
}

fn signal_from_elsewhere() {
    saxpy(&compiler());
    send_itself_a_signal();
}

fn signal_while_compiling() {
    let compiler = compiler();
    saxpy(&compiler);
    let sender = thread::spawn(|| {
        thread::sleep(Duration::from_millis(100));
        send_itself_a_signal();
    });
    while !sender.is_finished() {
        saxpy(&compiler);
    }
}

fn own_abort() {
    saxpy(&compiler());
    std::process::abort();
}

fn abort_while_compiling() {
    let compiler = compiler();
    saxpy(&compiler);
    let aborting = thread::spawn(|| {
        thread::sleep(Duration::from_millis(100));
        std::process::abort();
    });
    while !aborting.is_finished() {
        saxpy(&compiler);
    }
}

/// The processor goes on behind such an instruction.
fn own_trap() {
    saxpy(&compiler());
    // SAFETY: it ends the process.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("int3");
    }
    #[cfg(target_arch = "aarch64")]
    unsafe {
        std::arch::asm!("brk #0");
    }
}

/// The handler is installed before anything is compiled, and gets a fault of the program's own with its address.
fn own_handler() {
    extern "C" fn handle(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the system passes what it knows of the signal; `write` and `_exit` may be called here.
        unsafe {
            let text: &[u8] = match (*info).si_addr() as usize {
                0x10 => b"address 0x10\n",
                _ => b"another address\n",
            };
            libc::write(1, text.as_ptr().cast(), text.len());
            libc::_exit(42);
        }
    }
    // SAFETY: the handler has the type that SA_SIGINFO asks for.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handle as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()), 0);
    }
    let compiler = compiler();
    let before = saxpy(&compiler);
    let failure = compile(&compiler, CRASHES).map(drop).expect_err("crashes");
    assert_eq!(failure.errors[0].kind, ErrorKind::Crash);
    assert_eq!(saxpy(&compiler), before);
    // SAFETY: it is not: this is the fault.
    unsafe { hint::black_box(std::ptr::read_volatile(hint::black_box(0x10 as *const u8))) };
}
