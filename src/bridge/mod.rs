//! The only `unsafe` code and the only C++: LLVM, MLIR, lld, NVIDIA's libraries and the GPUs' drivers behind safe functions.
//!
//! Mechanics alone; what is done with them is decided above.
#![allow(unsafe_code, reason = "this is the room for it; every block says why it is sound")]

pub mod assemble;
pub mod constants;
mod contain;
pub mod disassemble;
pub mod downgrade;
pub mod edit;
pub mod engine;
pub mod exhausted;
pub mod external_pass;
pub mod host_module;
pub mod import;
pub mod large_values;
pub mod lld;
pub mod llvm;
pub mod memfd;
pub mod mgpu;
pub mod mlir;
pub mod mlir_context;
pub mod mlir_passes;
pub mod nvfatbin;
pub mod nvjitlink;
pub mod nvptxcompiler;
pub mod opt_main;
pub mod program_calls;
pub mod split;
pub mod stack;

pub use contain::{LlvmError, contain_crashes};
