//! From a whole program, host code and kernels, to host code that launches through the CUDA or HIP runtime, as plain data
//! for whatever makes a file of it.
//!
//! ```text
//! program.mlir ──outline, name──┬─ device modules ── compiler ── images
//!                               └─ host code ── LLVM dialect, stubs, support functions ── LLVM IR
//! ```
//!
//! `host::lower` does all of it but compiling the device modules; `program` says what it leaves to be done. For that,
//! [`layout`] knows what each release of clang takes, `entries`, `embed` and `registration` write it as LLVM IR, and
//! [`images`] chooses the form of the images. [`mod@check`] reads what was made and says which release registers what.
//!
//! [`export`](mod@export) ties them together: a module in, the file to carry and the command that finishes it out.
//!
//! The check, and what it stands on, are in `gpulower_image`, which builds without LLVM.

pub mod check;
pub mod clang_program;
mod debug_text;
mod embed;
mod entries;
mod error;
pub mod export;
pub(crate) mod host;
pub(crate) mod ir_text;
mod launch_sizes;
mod modules;
mod profile;
pub(crate) mod profile_table;
pub(crate) mod program;
mod registration;
mod splat;
mod stub;
mod support;
pub(crate) mod triple;

#[cfg(test)]
#[path = "../../tests/offload/finish.rs"]
mod finish_tests;
#[cfg(test)]
#[path = "../../tests/offload/finishing_site.rs"]
mod finishing_site;
#[cfg(test)]
#[path = "../../tests/offload/old_clangs.rs"]
mod old_clangs;

pub use error::OffloadError;
pub use export::{Export, ExportForm, ExportOptions, export, export_source};
pub use gpulower_image::offload::{Runtime, clang_version, images, layout, openmp, release, runtime};
pub use host::{HostOptions, HostProgram, Names, Support};
pub use program::{Kernel, KernelModule, Program, Variable};
pub use triple::{HostArchitecture, HostTriple};
