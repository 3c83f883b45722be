//! The only `unsafe` code and the only C++: LLVM, MLIR, lld and NVIDIA's libraries behind safe functions.
//!
//! Mechanics alone; what is done with them is decided above.
#![allow(unsafe_code, reason = "this is the room for it; every block says why it is sound")]

pub mod assemble;
pub mod constants;
mod contain;
pub mod cuda_driver;
pub mod disassemble;
pub mod import;
pub mod lld;
pub mod llvm;
pub mod memfd;
pub mod mlir;
pub mod nvfatbin;
pub mod nvjitlink;
pub mod nvptxcompiler;
pub mod opt_main;
pub mod pass;
pub mod passes;
mod vendor_library;

pub use contain::LlvmError;
