//! Which releases of clang register which kernels of a host file: `gpulower_image`'s check, with LLVM to read LLVM IR.

mod llvm_ir;

#[cfg(test)]
#[path = "../../../tests/offload/check.rs"]
mod tests;
#[cfg(test)]
#[path = "../../../tests/offload/check_images.rs"]
mod tests_images;
#[cfg(test)]
#[path = "../../../tests/offload/check_ir.rs"]
mod tests_ir;
#[cfg(test)]
#[path = "../../../tests/offload/check_links.rs"]
mod tests_links;

use crate::ReadError;

pub use gpulower_image::offload::check::{FoundEntry, FoundImage, ImageSymbols, OfRelease, Registered, Report};

pub(crate) use gpulower_image::offload::check::symbols::{form_of, symbols_of};

pub(crate) use self::llvm_ir::WithLlvm;

/// Reads a host object, a program or shared library (64-bit ELF), an archive of objects, or LLVM IR as text or bitcode.
///
/// # Errors
///
/// [`ReadError`] if it is nothing of that. What is wrong inside is in the report.
pub fn check(bytes: &[u8]) -> Result<Report, ReadError> {
    gpulower_image::offload::check::check_with(bytes, Some(&WithLlvm))
}
