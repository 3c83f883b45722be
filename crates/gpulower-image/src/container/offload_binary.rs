//! Writes and reads LLVM's offload binary: one image with what it is for, as clang embeds it into host objects.
//!
//! A host object carries any number of them, one after the other, in its section
//! [`.llvm.offloading`](super::host_sections::LLVM_OFFLOADING_SECTION), and the linker wrapper of clang takes them out
//! again. [`write()`] writes version 1, which every clang from 15 on reads; [`read`] reads versions 1 to 3.
//!
//! The number that says for which language an image is differs between releases of clang, and a file does not say
//! which release it is for. The writer is told the [`KindNumbering`]; the reader gives the number, and what each of the
//! two makes of it ([`OffloadKindNumber`]).
//!
//! Source: `llvm/Object/OffloadBinary.h` and `OffloadBinary.cpp`; version 2 as in LLVM 23, version 3 as on LLVM's main
//! branch of September 2026. All numbers are little-endian, all offsets count from the start of a binary.

pub use super::offload_binary_error::OffloadBinaryError;
pub use super::offload_binary_read::{BodyCompression, Entry, OffloadBinary, read, read_first};

use std::collections::BTreeMap;
use std::fmt;

/// First four bytes of an offload binary.
pub const MAGIC: [u8; 4] = [0x10, 0xff, 0x10, 0xad];
/// Every binary of a file, and every image in one, starts at a multiple of this.
pub const ALIGNMENT: usize = 8;
/// Set in [`Entry::flags`] where there is no image, and the entry is there for its strings.
pub const FLAG_METADATA: u32 = 1;
/// Key of the target triple.
pub const TRIPLE: &str = "triple";
/// Key of the chip.
pub const ARCH: &str = "arch";

/// The version that is written.
const WRITTEN_VERSION: u32 = 1;
/// Size of the header of versions 1 and 2: magic, version (u32), size, offset of the entries, and size (version 1) or
/// number (version 2) of the entries.
pub(super) const HEADER_SIZE: usize = 32;
/// Size of the header of version 3, which adds the size of the inflated binary.
pub(super) const HEADER_SIZE_V3: usize = 40;
/// Size of an entry: image kind (u16), offload kind (u16), flags (u32), offset and number of the string entries, offset
/// and size of the image.
pub(super) const ENTRY_SIZE: usize = 40;
/// Size of a string entry of version 1: offsets of key and value.
pub(super) const STRING_ENTRY_SIZE: usize = 16;
/// Size of a string entry from version 2 on, which adds the size of the value.
pub(super) const STRING_ENTRY_SIZE_V2: usize = 24;

/// What an image is. The linker wrappers of clang 15 to 19 rely on it; later ones look at the image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[non_exhaustive]
pub enum ImageKind {
    /// Not stated.
    None,
    /// An object; clang from 19 on says this of cubins, too.
    Object,
    /// LLVM bitcode.
    Bitcode,
    /// A cubin.
    Cubin,
    /// A fat binary.
    Fatbinary,
    /// PTX text.
    Ptx,
    /// SPIR-V; known from LLVM 22 on.
    SpirV,
    /// A number this crate does not know.
    Other(u16),
}

impl ImageKind {
    /// The kind with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Object,
            2 => Self::Bitcode,
            3 => Self::Cubin,
            4 => Self::Fatbinary,
            5 => Self::Ptx,
            6 => Self::SpirV,
            other => Self::Other(other),
        }
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::None => 0,
            Self::Object => 1,
            Self::Bitcode => 2,
            Self::Cubin => 3,
            Self::Fatbinary => 4,
            Self::Ptx => 5,
            Self::SpirV => 6,
            Self::Other(number) => number,
        }
    }
}

impl fmt::Display for ImageKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "unspecified",
            Self::Object => "object",
            Self::Bitcode => "bitcode",
            Self::Cubin => "cubin",
            Self::Fatbinary => "fatbinary",
            Self::Ptx => "PTX",
            Self::SpirV => "SPIR-V",
            Self::Other(number) => return write!(formatter, "unknown kind {number}"),
        })
    }
}

/// The language whose host code launches an image, and whose runtime loads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[non_exhaustive]
pub enum OffloadKind {
    /// Not stated.
    None,
    /// OpenMP.
    OpenMp,
    /// CUDA.
    Cuda,
    /// HIP.
    Hip,
    /// SYCL; known from clang 21 on.
    Sycl,
}

impl OffloadKind {
    /// Its number, or none where the releases with that numbering do not know the language.
    #[must_use]
    pub fn number(self, numbering: KindNumbering) -> Option<u16> {
        match (self, numbering) {
            (Self::None, _) => Some(0),
            (Self::OpenMp, _) => Some(1),
            (Self::Cuda, _) => Some(2),
            (Self::Hip, KindNumbering::Sequential) => Some(3),
            (Self::Hip, KindNumbering::BitMask) => Some(4),
            (Self::Sycl, KindNumbering::Sequential) => None,
            (Self::Sycl, KindNumbering::BitMask) => Some(8),
        }
    }

    /// The name that LLVM's tools give it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::OpenMp => "openmp",
            Self::Cuda => "cuda",
            Self::Hip => "hip",
            Self::Sycl => "sycl",
        }
    }
}

/// How a release of clang numbers the languages. HIP differs; OpenMP and CUDA are the same in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KindNumbering {
    /// Clang 15 to 20: OpenMP 1, CUDA 2, HIP 3.
    Sequential,
    /// Clang from 21 on: OpenMP 1, CUDA 2, HIP 4, SYCL 8, any of which may come together.
    BitMask,
}

/// The number of a language as a file has it, which does not say in which numbering.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct OffloadKindNumber(pub u16);

impl OffloadKindNumber {
    /// The languages that a release with this numbering takes it for; empty if it knows none with the number.
    #[must_use]
    pub fn read_as(self, numbering: KindNumbering) -> Vec<OffloadKind> {
        const LANGUAGES: [OffloadKind; 4] = [
            OffloadKind::OpenMp,
            OffloadKind::Cuda,
            OffloadKind::Hip,
            OffloadKind::Sycl,
        ];
        if self.0 == 0 {
            return vec![OffloadKind::None];
        }
        let known = LANGUAGES
            .into_iter()
            .filter_map(|kind| Some((kind, kind.number(numbering)?)));
        match numbering {
            KindNumbering::Sequential => known
                .filter(|&(_, number)| number == self.0)
                .map(|(kind, _)| kind)
                .collect(),
            KindNumbering::BitMask if self.0 > 0b1111 => Vec::new(),
            KindNumbering::BitMask => known
                .filter(|&(_, bit)| bit & self.0 != 0)
                .map(|(kind, _)| kind)
                .collect(),
        }
    }
}

impl fmt::Display for OffloadKindNumber {
    /// `cuda` where both numberings agree, and else `3 (clang up to 20: hip; from 21: openmp+cuda)`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |numbering| {
            let kinds = self.read_as(numbering);
            if kinds.is_empty() {
                return "unknown".to_owned();
            }
            let names: Vec<_> = kinds.into_iter().map(OffloadKind::name).collect();
            names.join("+")
        };
        let (before, after) = (name(KindNumbering::Sequential), name(KindNumbering::BitMask));
        if before == after && before != "unknown" {
            return formatter.write_str(&before);
        }
        write!(formatter, "{} (clang up to 20: {before}; from 21: {after})", self.0)
    }
}

/// Why images could not be written as offload binaries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OffloadBinaryWriteError {
    /// There is no image.
    #[error("an offload binary needs an image: there is none to write")]
    Empty,
    /// The releases for which the number is do not know the language.
    #[error("clang up to 20 has no number for {}: write for clang 21 or later", kind.name())]
    UnknownKind {
        /// The language.
        kind: OffloadKind,
    },
    /// A key that the linker wrapper asks for is not there.
    #[error("an offload image needs the key `{key}`: clang's linker wrapper groups images by it")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A key is there twice.
    #[error("the key `{key}` of an offload image is there twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// A key or a value has a NUL byte, which would end it.
    #[error("{text:?} among the strings of an offload image has a NUL byte, which would end it")]
    Nul {
        /// The key or value.
        text: String,
    },
}

/// An image to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image<'a> {
    /// What it is.
    pub kind: ImageKind,
    /// The number of the language in the file.
    pub offload_kind: OffloadKindNumber,
    /// [`FLAG_METADATA`], or 0.
    pub flags: u32,
    /// Keys and values, in the order of the file. [`TRIPLE`] and [`ARCH`] have to be among them.
    pub strings: Vec<(&'a str, &'a str)>,
    /// The image itself.
    pub bytes: &'a [u8],
}

impl<'a> Image<'a> {
    /// An image with its language, triple (`nvptx64-nvidia-cuda`) and chip (`sm_90`), for the releases of clang that
    /// number languages so. The strings have the order that LLVM's tools give them.
    ///
    /// # Errors
    ///
    /// [`OffloadBinaryWriteError::UnknownKind`].
    pub fn new(
        kind: ImageKind,
        language: OffloadKind,
        numbering: KindNumbering,
        triple: &'a str,
        arch: &'a str,
        bytes: &'a [u8],
    ) -> Result<Self, OffloadBinaryWriteError> {
        let number = language
            .number(numbering)
            .ok_or(OffloadBinaryWriteError::UnknownKind { kind: language })?;
        Ok(Self {
            kind,
            offload_kind: OffloadKindNumber(number),
            flags: 0,
            strings: vec![(ARCH, arch), (TRIPLE, triple)],
            bytes,
        })
    }
}

/// Writes one binary of version 1 for each image, one after the other: the content of a file, or of the section
/// [`.llvm.offloading`](super::host_sections::LLVM_OFFLOADING_SECTION).
///
/// # Errors
///
/// [`OffloadBinaryWriteError`].
pub fn write(images: &[Image<'_>]) -> Result<Vec<u8>, OffloadBinaryWriteError> {
    if images.is_empty() {
        return Err(OffloadBinaryWriteError::Empty);
    }
    let mut out = Vec::new();
    for image in images {
        check_strings(&image.strings)?;
        write_one(image, &mut out);
    }
    Ok(out)
}

fn check_strings(strings: &[(&str, &str)]) -> Result<(), OffloadBinaryWriteError> {
    for key in [TRIPLE, ARCH] {
        if !strings.iter().any(|&(other, _)| other == key) {
            return Err(OffloadBinaryWriteError::MissingKey { key });
        }
    }
    let mut keys: Vec<&str> = strings.iter().map(|&(key, _)| key).collect();
    keys.sort_unstable();
    if let Some(key) = keys.windows(2).find_map(|pair| match pair {
        [first, second] if first == second => Some((*first).to_owned()),
        _ => None,
    }) {
        return Err(OffloadBinaryWriteError::DuplicateKey { key });
    }
    match strings
        .iter()
        .flat_map(|&(key, value)| [key, value])
        .find(|text| text.contains('\0'))
    {
        Some(text) => Err(OffloadBinaryWriteError::Nul { text: text.to_owned() }),
        None => Ok(()),
    }
}

fn write_one(image: &Image<'_>, out: &mut Vec<u8>) {
    let table_at = HEADER_SIZE + ENTRY_SIZE + STRING_ENTRY_SIZE * image.strings.len();
    let table = StringTable::new(image.strings.iter().flat_map(|&(key, value)| [key, value]));
    let image_at = (table_at + table.bytes.len()).next_multiple_of(ALIGNMENT);
    let size = (image_at + image.bytes.len()).next_multiple_of(ALIGNMENT);
    let start = out.len();

    out.extend(MAGIC);
    out.extend(WRITTEN_VERSION.to_le_bytes());
    for number in [size, HEADER_SIZE, ENTRY_SIZE] {
        out.extend((number as u64).to_le_bytes());
    }

    out.extend(image.kind.number().to_le_bytes());
    out.extend(image.offload_kind.0.to_le_bytes());
    out.extend(image.flags.to_le_bytes());
    for number in [
        HEADER_SIZE + ENTRY_SIZE,
        image.strings.len(),
        image_at,
        image.bytes.len(),
    ] {
        out.extend((number as u64).to_le_bytes());
    }
    for &(key, value) in &image.strings {
        for text in [key, value] {
            out.extend(((table_at + table.offset(text)) as u64).to_le_bytes());
        }
    }
    out.extend(table.bytes);
    out.resize(start + image_at, 0);
    out.extend(image.bytes);
    out.resize(start + size, 0);
}

/// Strings that end at NUL bytes, laid out as by LLVM's `StringTableBuilder` for ELF: a NUL byte first, then the strings
/// in the descending order of their reversed bytes, of which each that ends another one shares its bytes.
struct StringTable<'a> {
    bytes: Vec<u8>,
    offsets: BTreeMap<&'a str, usize>,
}

impl<'a> StringTable<'a> {
    fn new(strings: impl Iterator<Item = &'a str>) -> Self {
        let mut sorted: Vec<&str> = strings.filter(|text| !text.is_empty()).collect();
        sorted.sort_unstable_by(|left, right| right.bytes().rev().cmp(left.bytes().rev()));
        let mut table = Self {
            bytes: vec![0],
            offsets: BTreeMap::new(),
        };
        let mut previous = "";
        for text in sorted {
            if previous.ends_with(text) {
                table.offsets.insert(text, table.bytes.len() - 1 - text.len());
                continue;
            }
            table.offsets.insert(text, table.bytes.len());
            table.bytes.extend(text.as_bytes());
            table.bytes.push(0);
            previous = text;
        }
        table
    }

    /// Where `text`, one of the strings, starts; the empty string is at the start.
    fn offset(&self, text: &str) -> usize {
        self.offsets.get(text).copied().unwrap_or(0)
    }
}
