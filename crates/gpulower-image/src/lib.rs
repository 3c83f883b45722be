//! Reads and writes GPU code: what a chip takes, what an image holds, what a container is made of.
//!
//! Pure Rust: no LLVM, no C++, no vendor's software. All readers take untrusted bytes: they return errors, never panic, and
//! allocate no more than the input justifies.
//!
//! | to | see |
//! |---|---|
//! | name a chip or a target ID | [`Target`], `"gfx90a:xnack+".parse()` |
//! | read a cubin, an AMDGPU code object or PTX, with its kernels' resources | [`image`] |
//! | read or write a fat binary, a bundle, offload binaries, a host object | [`container`] |
//! | know how full a multiprocessor is with blocks of a kernel, with a picture | [`occupancy`] |
//! | know what bytes are | [`FileKind::of`] |
//! | say what is in any file | [`inspect::inspect()`] |
//! | know what a device loads of it | [`inspect::device::answer`] |
//! | put images into one container | [`pack::Pack`] |
//! | know which releases of clang register which kernels of a host file | [`offload::check::check()`] |
//!
//! ```
//! use gpulower_image::Target;
//!
//! let target: Target = "gfx90a:xnack+".parse()?;
//! assert_eq!(target.to_string(), "gfx90a:xnack+");
//! # Ok::<(), gpulower_image::target::TargetError>(())
//! ```
#![forbid(unsafe_code)]

#[macro_use]
mod table;

pub mod container;
#[cfg(test)]
mod elf_tests;
mod file_kind;
pub mod image;
pub mod inspect;
mod nearest;
pub mod occupancy;
pub mod offload;
pub mod pack;
mod read;
#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod rules_tests;
#[cfg(test)]
mod seeds_tests;
pub mod target;

pub use crate::{
    file_kind::FileKind,
    nearest::nearest,
    read::{ReadError, ReadProblem},
    target::Target,
};
