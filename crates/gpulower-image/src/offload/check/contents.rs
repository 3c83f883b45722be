//! What the check needs of a host file, whether that is an object, a program or LLVM IR.

use super::super::layout;
use crate::FileKind;
use crate::container::host_sections::{HIP_WRAPPER_SECTION, NV_WRAPPER_SECTION};

/// A section of an ELF file, or what one global variable of LLVM IR adds to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    /// By which pointers into it are asked for.
    pub(super) number: usize,
    pub(super) section: &'a str,
    /// `sh_type`.
    pub(super) kind: u32,
    /// None if it reaches behind the end of the file.
    pub(super) contents: Option<&'a [u8]>,
    /// Whether the linker's garbage collection leaves it alone.
    pub(super) retained: bool,
}

/// What a pointer points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointee<'a> {
    Null,
    /// A place in the file: number of the part and offset.
    Place(usize, u64),
    /// A symbol that another file defines, or one without known contents.
    Elsewhere(&'a str),
}

/// A host file.
pub(super) trait HostContents {
    fn kind(&self) -> FileKind;

    /// The parts of the sections that are asked for, in the order of the file.
    fn parts(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<Part<'_>>;

    /// What the pointer at `offset` in a part points to; none if that cannot be said.
    fn pointee(&self, part: usize, offset: u64) -> Option<Pointee<'_>>;

    /// The text that ends with a NUL byte at a place.
    fn text(&self, pointee: Pointee<'_>) -> Option<&str>;

    /// Whether something refers to the start of a section, as clang's registration code does. None if the file has no
    /// symbols that could tell.
    fn refers_to_start_of(&self, section: &str) -> Option<bool>;

    /// Bytes of the file, against which what is read from it is counted.
    fn size(&self) -> usize;
}

/// The sections with wrappers of fat binaries or bundles, which the program hands to the runtime by itself.
pub(super) fn is_wrapper(section: &str) -> bool {
    [NV_WRAPPER_SECTION, HIP_WRAPPER_SECTION].contains(&section)
}

/// The section of entries that a name stands for: `clang -r` adds a hash to it, so that nothing else reads the section
/// again.
pub(super) fn entry_section(name: &str) -> Option<&'static str> {
    layout::ENTRY_SECTIONS
        .into_iter()
        .find(|base| match name.strip_prefix(base) {
            Some("") => true,
            Some(rest) => rest
                .strip_prefix('_')
                .is_some_and(|hash| !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit())),
            None => false,
        })
}

/// The eight bytes at an offset, little-endian.
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..offset.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

/// The four bytes at an offset.
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// The two bytes at an offset.
pub(super) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    let bytes = bytes.get(offset..offset.checked_add(2)?)?;
    Some(u16::from_le_bytes(bytes.try_into().ok()?))
}

/// The text before the first NUL byte from an offset on.
pub(super) fn text_at(bytes: &[u8], offset: u64) -> Option<&str> {
    let bytes = bytes.get(usize::try_from(offset).ok()?..)?;
    let end = bytes.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(bytes.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_of_entries_may_have_a_hash() {
        for (name, base) in [
            ("llvm_offload_entries", Some("llvm_offload_entries")),
            ("llvm_offload_entries_da689624faba660d", Some("llvm_offload_entries")),
            ("cuda_offloading_entries_7f6e", Some("cuda_offloading_entries")),
            ("hip_offloading_entries_", None),
            ("llvm_offload_entries_of_others", None),
            (".relallvm_offload_entries", None),
            ("omp_offloading_entries", Some("omp_offloading_entries")),
        ] {
            assert_eq!(entry_section(name), base, "{name}");
        }
    }
}
