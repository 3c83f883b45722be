//! The only `unsafe` code and the only C++: LLVM, MLIR, lld, NVIDIA's libraries and the GPUs' drivers behind safe functions.
//!
//! Mechanics alone; what is done with them is decided above.
#![allow(unsafe_code, reason = "this is the room for it; every block says why it is sound")]

#[cfg(feature = "compile")]
pub mod assemble;
#[cfg(feature = "compile")]
pub mod constants;
#[cfg(feature = "compile")]
mod contain;
#[cfg(feature = "compile")]
pub mod cuda_driver;
#[cfg(feature = "compile")]
pub mod disassemble;
#[cfg(feature = "compile")]
pub mod downgrade;
#[cfg(feature = "runtime")]
pub mod driver;
#[cfg(all(feature = "compile", feature = "runtime"))]
pub mod engine;
#[cfg(feature = "compile")]
pub mod exhausted;
#[cfg(all(feature = "compile", feature = "runtime"))]
pub mod host_module;
#[cfg(feature = "compile")]
pub mod import;
#[cfg(feature = "compile")]
pub mod large_values;
#[cfg(feature = "compile")]
pub mod lld;
#[cfg(feature = "compile")]
pub mod llvm;
#[cfg(feature = "compile")]
pub mod memfd;
#[cfg(all(feature = "compile", feature = "runtime"))]
pub mod mgpu;
#[cfg(feature = "compile")]
pub mod mlir;
#[cfg(feature = "compile")]
pub mod mlir_context;
#[cfg(feature = "compile")]
pub mod nvfatbin;
#[cfg(feature = "compile")]
pub mod nvjitlink;
#[cfg(feature = "compile")]
pub mod nvptxcompiler;
#[cfg(feature = "compile")]
pub mod opt_main;
#[cfg(feature = "compile")]
pub mod pass;
#[cfg(feature = "compile")]
pub mod passes;
#[cfg(feature = "compile")]
pub mod split;
#[cfg(feature = "compile")]
pub mod stack;
mod vendor_library;

#[cfg(feature = "compile")]
pub use contain::{LlvmError, contain_crashes};
