//! What is in a file: every image for a GPU, in whatever containers it lies, and every kernel of each.
//!
//! [`inspect()`] takes cubins, PTX, fat binaries, AMDGPU code objects, offload bundles, offload binaries, LLVM bitcode,
//! host objects, executables, shared libraries and archives, nested as they come. [`Inspection::images`] lists the
//! images; [`Inspection::containers`] says where each lies. A part that is damaged carries its error and does not hide
//! the rest.
//!
//! The bytes are trusted in nothing: the depth of nesting, the number of parts, and the bytes that are read and
//! decompressed are limited in proportion to the file.

mod describe;
pub mod device;
mod elf_image;
mod embedded;
mod extract;
mod host;
mod limits;
mod model;
mod unpack;
mod walk;

use crate::ReadError;

pub use extract::file_names;
pub use model::{Compression, Container, DebugInfo, Image, Inspection, Kernel, SectionSize};

/// Finds and describes every image in `bytes`.
///
/// `name` is what the file is called in the result. A file of a kind that may hold images and holds none gives a result
/// without images.
///
/// # Errors
///
/// [`ReadError`] if the file is of no kind that is read. What is damaged further inside stands in the result, in
/// [`Image::error`] and [`Container::error`].
pub fn inspect(name: &str, bytes: &[u8]) -> Result<Inspection, ReadError> {
    inspect_with(name, bytes, &mut |_, _| {})
}

/// As [`inspect()`], and hands every image that can be read to `see` with its bytes, decompressed, in the order of the
/// file. An image that cannot be read is not handed over.
///
/// # Errors
///
/// As [`inspect()`].
pub fn inspect_with(name: &str, bytes: &[u8], see: &mut dyn FnMut(&Image, &[u8])) -> Result<Inspection, ReadError> {
    walk::file(name, bytes, see)
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
