//! The only `unsafe` code and the only C++ of this crate: LLVM, MLIR, lld and NVIDIA's libraries behind safe functions.
//!
//! Mechanics alone; what is done with them is decided above. The rules:
//!
//! - No safe function can be misused into undefined behaviour: its contract is in the types, or it is an `unsafe fn`, of which
//!   there are none outside of this module but `jit::Program::run`. What cannot be checked is assumed of melior and inkwell,
//!   whose safe functions are taken to be sound, and of files that a person names as a vendor's library.
//! - What is `pub` is what other crates see; `misuse.md` shows what they cannot do. All else is `pub(crate)` or less.
//! - LLVM and MLIR are left by a jump where they end in a fatal error or crash (`cpp/contain.h`). No frame of Rust lies between
//!   the jump and where it goes, but for those of [`contain::contained`] and of [`mgpu`]'s functions, which own nothing then.
//!   A function that C++ calls back begins with [`contain::Uncontained`]: as long as it runs, nothing jumps.
//! - Functions of C++ are declared `extern "C-unwind"`: an exception (memory that cannot be had) ends in a catch of ours, or
//!   ends the process, and is defined either way. Functions of Rust that C++ calls are `extern "C"`: a panic ends the process
//!   there, where it is not caught before.
#![allow(unsafe_code, reason = "this is the place for it; every block says why it is sound")]
#![warn(unreachable_pub)]

pub(crate) mod assemble;
pub(crate) mod constants;
pub(crate) mod contain;
pub(crate) mod disassemble;
pub(crate) mod downgrade;
pub(crate) mod edit;
pub(crate) mod engine;
pub(crate) mod exhausted;
pub(crate) mod external_pass;
pub(crate) mod host_module;
pub(crate) mod import;
pub(crate) mod kernel_arguments;
pub(crate) mod kernel_sizes;
pub(crate) mod large_values;
pub(crate) mod lld;
pub(crate) mod llvm;
pub(crate) mod memfd;
pub(crate) mod mgpu;
pub(crate) mod mlir;
pub(crate) mod mlir_context;
pub(crate) mod mlir_passes;
pub(crate) mod nvfatbin;
pub(crate) mod nvjitlink;
pub(crate) mod nvptxcompiler;
pub(crate) mod opt_main;
pub(crate) mod other_releases;
pub(crate) mod places;
pub(crate) mod program_calls;
pub(crate) mod shared_alignment;
pub(crate) mod split;
pub(crate) mod stack;
pub(crate) mod target_machine;
pub(crate) mod tasks;
pub(crate) mod vendor_error;
pub(crate) mod watch;

pub(crate) use contain::{LlvmError, contain_crashes};
