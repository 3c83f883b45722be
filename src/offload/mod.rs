//! From a whole program, host code and kernels, to host code that launches through the CUDA or HIP runtime, as plain data
//! for whatever makes a file of it.
//!
//! ```text
//! program.mlir ──outline, name──┬─ device modules ── compiler ── images
//!                               └─ host code ── LLVM dialect, stubs, support functions ── LLVM IR
//! ```
//!
//! [`host::lower`] does all of it but compiling the device modules; [`program`] says what it leaves to be done. For that,
//! [`layout`] knows what each release of clang takes, [`entries`], [`embed`] and [`registration`] write it as LLVM IR, and
//! [`images`] chooses the form of the images. [`mod@check`] reads what was made and says which release registers what.
//!
//! [`export`](mod@export) ties them together: a module in, the file to carry and the command that finishes it out.
//!
//! The check, and what it stands on, build without LLVM.

pub mod check;
#[cfg(feature = "compile")]
pub mod clang_program;
pub mod clang_version;
#[cfg(feature = "compile")]
mod debug_text;
#[cfg(feature = "compile")]
pub mod embed;
#[cfg(feature = "compile")]
pub mod entries;
#[cfg(feature = "compile")]
pub mod error;
#[cfg(feature = "compile")]
pub mod export;
#[cfg(feature = "compile")]
pub mod host;
pub mod images;
#[cfg(feature = "compile")]
pub mod ir_text;
pub mod layout;
#[cfg(feature = "compile")]
mod modules;
#[cfg(feature = "compile")]
pub mod profile;
#[cfg(feature = "compile")]
pub mod profile_table;
#[cfg(feature = "compile")]
pub mod program;
#[cfg(feature = "compile")]
pub mod registration;
pub mod release;
pub mod runtime;
#[cfg(feature = "compile")]
mod splat;
#[cfg(feature = "compile")]
mod stub;
#[cfg(feature = "compile")]
mod support;
#[cfg(feature = "compile")]
pub mod triple;

#[cfg(all(test, feature = "compile"))]
mod finish_tests;
#[cfg(all(test, feature = "compile"))]
mod profile_bench;
#[cfg(all(test, feature = "compile"))]
mod test_bench;

#[cfg(feature = "compile")]
pub use error::OffloadError;
#[cfg(feature = "compile")]
pub use export::{Export, ExportError, ExportForm, ExportOptions, export, export_source};
#[cfg(feature = "compile")]
pub use host::{HostOptions, HostProgram, Names, Support};
#[cfg(feature = "compile")]
pub use program::{Kernel, KernelModule, Program, Variable};
pub use runtime::Runtime;
#[cfg(feature = "compile")]
pub use triple::{HostArchitecture, HostTriple};
