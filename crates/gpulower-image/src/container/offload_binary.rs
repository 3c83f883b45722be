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

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;

use super::WriteError;
use crate::ReadError;
use crate::read::{Bytes, start};

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

const FORMAT: &str = "offload binary";
/// Newest version that is read.
const NEWEST_VERSION: u32 = 3;
/// The version that is written.
const WRITTEN_VERSION: u32 = 1;
/// Size of the header of versions 1 and 2: magic, version (u32), size, offset of the entries, and size (version 1) or
/// number (version 2) of the entries.
const HEADER_SIZE: usize = 32;
/// Size of the header of version 3, which adds the size of the inflated binary.
const HEADER_SIZE_V3: usize = 40;
/// Size of an entry: image kind (u16), offload kind (u16), flags (u32), offset and number of the string entries, offset
/// and size of the image.
const ENTRY_SIZE: usize = 40;
/// Size of a string entry of version 1: offsets of key and value.
const STRING_ENTRY_SIZE: usize = 16;
/// Size of a string entry from version 2 on, which adds the size of the value.
const STRING_ENTRY_SIZE_V2: usize = 24;

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
    /// A language that these releases do not know.
    pub fn new(
        kind: ImageKind,
        language: OffloadKind,
        numbering: KindNumbering,
        triple: &'a str,
        arch: &'a str,
        bytes: &'a [u8],
    ) -> Result<Self, WriteError> {
        let number = language.number(numbering).ok_or_else(|| {
            WriteError::Refused(format!(
                "clang up to 20 has no number for {}: write for clang 21 or later",
                language.name()
            ))
        })?;
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
/// [`WriteError`].
pub fn write(images: &[Image<'_>]) -> Result<Vec<u8>, WriteError> {
    if images.is_empty() {
        return Err(WriteError::Empty(
            "an offload binary needs an image: there is none to write",
        ));
    }
    let mut out = Vec::new();
    for image in images {
        check_strings(&image.strings)?;
        write_one(image, &mut out);
    }
    Ok(out)
}

fn check_strings(strings: &[(&str, &str)]) -> Result<(), WriteError> {
    for key in [TRIPLE, ARCH] {
        if !strings.iter().any(|&(other, _)| other == key) {
            return Err(WriteError::Refused(format!(
                "an offload image needs the key `{key}`: clang's linker wrapper groups images by it"
            )));
        }
    }
    let mut keys: Vec<&str> = strings.iter().map(|&(key, _)| key).collect();
    keys.sort_unstable();
    if let Some(key) = keys.windows(2).find_map(|pair| match pair {
        [first, second] if first == second => Some((*first).to_owned()),
        _ => None,
    }) {
        return Err(WriteError::Refused(format!(
            "the key `{key}` of an offload image is there twice"
        )));
    }
    match strings
        .iter()
        .flat_map(|&(key, value)| [key, value])
        .find(|text| text.contains('\0'))
    {
        Some(text) => Err(WriteError::Refused(format!(
            "{text:?} among the strings of an offload image has a NUL byte, which would end it"
        ))),
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

/// Most bytes that all compressed binaries of a file may inflate to: far above what is shipped, far below what exhausts
/// memory.
const MAX_INFLATED: u64 = 1 << 30;
/// One byte of deflate stands for at most this many ("Maximum Compression Factor" in zlib's technical details).
const MAX_ZLIB_RATIO: u64 = 1032;
/// A zstd block of four bytes (a header of three, and one to repeat) stands for at most 128 KiB (RFC 8878, section
/// 3.1.1.2).
const MAX_ZSTD_RATIO: u64 = 32 * 1024;
/// First four bytes of a zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// What zstd's decoder allows for if it is not told otherwise (`ZSTD_WINDOWLOG_LIMIT_DEFAULT` in `zstd.h`).
const ZSTD_DEFAULT_WINDOW_LOG: u32 = 27;
/// Longest key or value that is read, in bytes.
const MAX_STRING: usize = 64 * 1024;
/// Bytes that strings may have in addition to [`STRING_SHARING`] times those of the binary.
const MIN_STRING_BUDGET: u64 = 64 * 1024;
/// How often strings may share each byte of a binary, on average. Triples and chips of many entries do share theirs, but
/// without a limit the time to read a binary would be quadratic in its size.
const STRING_SHARING: u64 = 16;

/// How the part of a binary behind its header is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub enum BodyCompression {
    /// Not at all; versions 1 and 2 always are so.
    None,
    /// zstd.
    Zstd,
    /// zlib.
    Zlib,
}

/// One binary of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OffloadBinary<'data> {
    /// Version of the format, 1 to 3.
    pub version: u32,
    /// Where it starts, in bytes from the start of the file.
    pub offset: u64,
    /// Its size in the file, in bytes, without the padding behind a compressed one.
    pub size: u64,
    /// How it is stored.
    pub compression: BodyCompression,
    /// Its size in bytes when inflated; the same as `size` if it is not compressed.
    pub inflated_size: u64,
    /// Its entries, in the order of the file: one in version 1, any number in the later ones.
    pub entries: Vec<Entry<'data>>,
}

/// One image of an offload binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'data> {
    /// What it is.
    pub image_kind: ImageKind,
    /// The language it belongs to.
    pub offload_kind: OffloadKindNumber,
    /// [`FLAG_METADATA`], or 0.
    pub flags: u32,
    /// Keys and values, in the order of the file. Values are text but for those that some producer of version 2 put
    /// there.
    pub strings: Vec<(Cow<'data, str>, Cow<'data, [u8]>)>,
    /// The image itself.
    pub image: Cow<'data, [u8]>,
    /// Where the image starts: in bytes from the start of the file, or from the start of the inflated binary if that is
    /// compressed.
    pub image_offset: u64,
}

impl Entry<'_> {
    /// The value of a key; none if there is no such key, or if the value is not text.
    #[must_use]
    pub fn string(&self, key: &str) -> Option<&str> {
        let (_, value) = self.strings.iter().find(|(other, _)| other == key)?;
        std::str::from_utf8(value).ok()
    }

    /// The target triple, such as `nvptx64-nvidia-cuda`.
    #[must_use]
    pub fn triple(&self) -> Option<&str> {
        self.string(TRIPLE)
    }

    /// The chip, such as `sm_90` or `gfx90a:xnack-`.
    #[must_use]
    pub fn arch(&self) -> Option<&str> {
        self.string(ARCH)
    }

    fn into_owned(self) -> Entry<'static> {
        Entry {
            image_kind: self.image_kind,
            offload_kind: self.offload_kind,
            flags: self.flags,
            strings: self
                .strings
                .into_iter()
                .map(|(key, value)| (Cow::Owned(key.into_owned()), Cow::Owned(value.into_owned())))
                .collect(),
            image: Cow::Owned(self.image.into_owned()),
            image_offset: self.image_offset,
        }
    }
}

/// Reads a file, or a section [`.llvm.offloading`](super::host_sections::LLVM_OFFLOADING_SECTION), that consists of
/// offload binaries and nothing else.
///
/// Compressed ones are inflated, to 1 GiB in all.
///
/// # Errors
///
/// [`ReadError`], which names the offset.
pub fn read(bytes: &[u8]) -> Result<Vec<OffloadBinary<'_>>, ReadError> {
    let file = Bytes {
        container: Some("file"),
        ..Bytes::of(FORMAT, bytes)
    };
    let mut binaries = Vec::new();
    let mut inflated = 0;
    let mut offset = 0;
    loop {
        let binary = read_at(&file, offset, &mut inflated)?;
        let end = offset + binary.size;
        binaries.push(binary);
        offset = end.next_multiple_of(ALIGNMENT as u64);
        if offset >= file.end() {
            check_padding(&file, end, file.end())?;
            return Ok(binaries);
        }
        check_padding(&file, end, offset)?;
    }
}

/// Reads the offload binary at the start of `bytes`; whatever follows it is not looked at.
///
/// # Errors
///
/// As [`read`].
pub fn read_first(bytes: &[u8]) -> Result<OffloadBinary<'_>, ReadError> {
    let file = Bytes {
        container: Some("file"),
        ..Bytes::of(FORMAT, bytes)
    };
    read_at(&file, 0, &mut 0)
}

/// Between two binaries there is nothing but zeros.
fn check_padding(file: &Bytes<'_>, from: u64, to: u64) -> Result<(), ReadError> {
    let padding = file.slice("the padding", from, to.saturating_sub(from))?;
    if padding.iter().all(|&byte| byte == 0) {
        return Ok(());
    }
    Err(file.damaged("the padding behind a binary", from, "it is not zero"))
}

/// Reads the binary at `offset` of a file, and adds its inflated size to `inflated` if it is compressed.
fn read_at<'data>(file: &Bytes<'data>, offset: u64, inflated: &mut u64) -> Result<OffloadBinary<'data>, ReadError> {
    let header = Header::read(file, offset)?;
    let binary = Bytes {
        start: offset,
        container: Some("binary"),
        ..Bytes::of(FORMAT, file.slice("the binary", offset, header.size)?)
    };
    let (compression, inflated_size, entries) = if header.inflated_size == 0 {
        (BodyCompression::None, header.size, read_entries(&binary, &header)?)
    } else {
        let (compression, bytes) = inflate(&binary, &header, inflated)?;
        let within = Bytes {
            container: Some("binary"),
            ..Bytes::of(FORMAT, &bytes)
        };
        let entries = read_entries(&within, &header).map_err(|error| {
            let place = format!("in the inflated content of the offload binary at offset {offset:#x}");
            error.within(place, None)
        })?;
        let entries = entries.into_iter().map(Entry::into_owned).collect();
        (compression, header.inflated_size, entries)
    };
    Ok(OffloadBinary {
        version: header.version,
        offset,
        size: header.size,
        compression,
        inflated_size,
        entries,
    })
}

/// The header of a binary, checked but for what depends on the size of the inflated binary.
struct Header {
    version: u32,
    size: u64,
    entries_offset: u64,
    entries_count: u64,
    /// 0 if the binary is not compressed.
    inflated_size: u64,
}

impl Header {
    fn read(file: &Bytes<'_>, offset: u64) -> Result<Self, ReadError> {
        let there = file.rest(offset);
        let magic = there.get(..4).unwrap_or(there);
        if magic != MAGIC {
            let offset = file.start + offset;
            let found = start(magic, 4);
            return Err(ReadError::other_format(format!(
                "not an offload binary: at offset {offset:#x} there is [{found}] instead of [10 ff 10 ad]"
            ))
            .at(offset));
        }
        file.slice("the header", offset, HEADER_SIZE as u64)?;
        let version = file.u32(offset + 4)?;
        if !(1..=NEWEST_VERSION).contains(&version) {
            return Err(ReadError::not_read(format!(
                "the offload binary at offset {offset:#x} has version {version}; versions 1 to {NEWEST_VERSION} are read"
            ))
            .at(offset));
        }
        let header_size = if version < 3 { HEADER_SIZE } else { HEADER_SIZE_V3 } as u64;
        file.slice("the header", offset, header_size)?;
        let size = file.u64(offset + 8)?;
        if size < header_size {
            let problem = format!("{size} bytes are less than its header, which has {header_size}");
            return Err(file.damaged("the size of the binary", offset + 8, problem));
        }
        let entries_offset = file.u64(offset + 16)?;
        let last = file.u64(offset + 24)?;
        let inflated_size = if version < 3 { 0 } else { file.u64(offset + 32)? };
        if entries_offset < header_size || (inflated_size != 0 && entries_offset != header_size) {
            let problem = format!("{entries_offset}, where the header has {header_size} bytes");
            return Err(file.damaged("the offset of the entries", offset + 16, problem));
        }
        if version == 1 && last != ENTRY_SIZE as u64 {
            let problem = format!("{last} bytes; it has {ENTRY_SIZE}");
            return Err(file.damaged("the size of the entry", offset + 24, problem));
        }
        Ok(Self {
            version,
            size,
            entries_offset,
            entries_count: if version == 1 { 1 } else { last },
            inflated_size,
        })
    }
}

/// The binary as it was before it was compressed, but for its header.
fn inflate(binary: &Bytes<'_>, header: &Header, inflated: &mut u64) -> Result<(BodyCompression, Vec<u8>), ReadError> {
    let (stored_header, body) = binary
        .bytes
        .split_at_checked(HEADER_SIZE_V3)
        .unwrap_or((binary.bytes, &[]));
    let (compression, ratio) = if body.starts_with(&ZSTD_MAGIC) {
        (BodyCompression::Zstd, MAX_ZSTD_RATIO)
    } else {
        // As LLVM's reader does: what is not zstd is zlib.
        (BodyCompression::Zlib, MAX_ZLIB_RATIO)
    };
    let size_at = 32;
    let body_size = header
        .inflated_size
        .checked_sub(HEADER_SIZE_V3 as u64)
        .filter(|&size| size <= (body.len() as u64).saturating_mul(ratio))
        .ok_or_else(|| {
            let (stored, size) = (body.len(), header.inflated_size);
            let problem = format!("{stored} bytes of {compression:?} cannot inflate to a binary of {size}");
            binary.damaged("the inflated size", size_at, problem)
        })?;
    *inflated = inflated.saturating_add(body_size);
    if *inflated > MAX_INFLATED {
        let problem = format!("more than {MAX_INFLATED} bytes in this file");
        return Err(binary.damaged("the inflated size", size_at, problem));
    }
    let failed = |problem: String| binary.damaged("the compressed content", HEADER_SIZE_V3 as u64, problem);
    let mut bytes = stored_header.to_vec();
    // The buffer grows with what really comes out, whatever size is stated.
    let most = body_size.saturating_add(1);
    let read = match compression {
        BodyCompression::Zstd => zstd::stream::read::Decoder::with_buffer(body).and_then(|mut decoder| {
            // A long distance between matches is allowed where there is that much content.
            let window = header.inflated_size.checked_next_power_of_two().map_or(64, u64::ilog2);
            decoder.window_log_max(window.max(ZSTD_DEFAULT_WINDOW_LOG))?;
            decoder.single_frame().take(most).read_to_end(&mut bytes)
        }),
        _ => flate2::bufread::ZlibDecoder::new(body)
            .take(most)
            .read_to_end(&mut bytes),
    };
    read.map_err(|error| failed(format!("{compression:?}: {error}")))?;
    if bytes.len() as u64 != header.inflated_size {
        let size = header.inflated_size;
        return Err(failed(format!(
            "it does not inflate to a binary of the {size} bytes that are stated"
        )));
    }
    Ok((compression, bytes))
}

fn read_entries<'data>(binary: &Bytes<'data>, header: &Header) -> Result<Vec<Entry<'data>>, ReadError> {
    let count = header.entries_count;
    let size = count.saturating_mul(ENTRY_SIZE as u64);
    let table = binary.slice("the entries", header.entries_offset, size)?;
    let (fixed, _) = table.as_chunks::<ENTRY_SIZE>();
    let mut reader = EntryReader {
        binary,
        version: header.version,
        strings: 0,
        string_bytes: 0,
    };
    let mut at = header.entries_offset;
    let mut entries = Vec::with_capacity(fixed.len());
    // Nothing but an image may lie where an image does.
    let mut taken = vec![(0, at + size)];
    for _ in fixed {
        let entry = reader.entry(at)?;
        if !entry.image.is_empty() {
            let start = entry.image_offset - binary.start;
            taken.push((start, start + entry.image.len() as u64));
        }
        entries.push(entry);
        at += ENTRY_SIZE as u64;
    }
    taken.sort_unstable();
    for pair in taken.windows(2) {
        if let &[(_, end), (start, _)] = pair
            && start < end
        {
            let problem = format!("it overlaps what reaches to {:#x}", binary.start + end);
            return Err(binary.damaged("an image", start, problem));
        }
    }
    Ok(entries)
}

/// Reads the entries of one binary, and counts what they claim.
struct EntryReader<'region, 'data> {
    binary: &'region Bytes<'data>,
    version: u32,
    /// String entries so far. Each entry has its own, so that all of them fit into the binary.
    strings: u64,
    /// Bytes of strings so far.
    string_bytes: u64,
}

impl<'data> EntryReader<'_, 'data> {
    fn entry(&mut self, at: u64) -> Result<Entry<'data>, ReadError> {
        let binary = self.binary;
        let strings = self.strings(binary.u64(at + 8)?, binary.u64(at + 16)?)?;
        let image_offset = binary.u64(at + 24)?;
        let image = binary.slice("an image", image_offset, binary.u64(at + 32)?)?;
        Ok(Entry {
            image_kind: ImageKind::from_number(binary.u16(at)?),
            offload_kind: OffloadKindNumber(binary.u16(at + 2)?),
            flags: binary.u32(at + 4)?,
            strings,
            image: Cow::Borrowed(image),
            image_offset: binary.start + image_offset,
        })
    }

    #[expect(clippy::type_complexity, reason = "it is the type of a field of Entry")]
    fn strings(&mut self, offset: u64, count: u64) -> Result<Vec<(Cow<'data, str>, Cow<'data, [u8]>)>, ReadError> {
        let binary = self.binary;
        let entry_size = if self.version == 1 {
            STRING_ENTRY_SIZE
        } else {
            STRING_ENTRY_SIZE_V2
        } as u64;
        let size = count.saturating_mul(entry_size);
        binary.slice("the string entries", offset, size)?;
        self.strings = self.strings.saturating_add(size);
        if self.strings > binary.bytes.len() as u64 {
            let problem = "entries share them".to_owned();
            return Err(binary.damaged("the string entries", offset, problem));
        }
        let mut strings: Vec<(Cow<'data, str>, Cow<'data, [u8]>)> = Vec::new();
        let mut at = offset;
        for _ in 0..count {
            let key_offset = binary.u64(at)?;
            let key = self.terminated("a key", key_offset)?;
            let key =
                std::str::from_utf8(key).map_err(|_| binary.damaged("a key", key_offset, "not UTF-8".to_owned()))?;
            let value_offset = binary.u64(at + 8)?;
            let value = if self.version == 1 {
                self.terminated("a value", value_offset)?
            } else {
                let value = binary.slice("a value", value_offset, binary.u64(at + 16)?)?;
                self.count("a value", value_offset, value.len())?;
                value
            };
            strings.push((Cow::Borrowed(key), Cow::Borrowed(value)));
            at += entry_size;
        }
        let mut keys: Vec<&str> = strings.iter().map(|(key, _)| &**key).collect();
        keys.sort_unstable();
        if let Some(key) = keys.windows(2).find_map(|pair| match pair {
            [first, second] if first == second => Some(*first),
            _ => None,
        }) {
            let problem = format!("the key {key:?} is there twice");
            return Err(binary.damaged("the string entries", offset, problem));
        }
        Ok(strings)
    }

    /// The string at `offset`, without the NUL byte at its end.
    fn terminated(&mut self, what: &'static str, offset: u64) -> Result<&'data [u8], ReadError> {
        self.binary.slice(what, offset, 1)?;
        let rest = self.binary.rest(offset);
        let most = rest.get(..MAX_STRING).unwrap_or(rest);
        let text = most
            .iter()
            .position(|&byte| byte == 0)
            .and_then(|end| most.get(..end))
            .ok_or_else(|| {
                let problem = if rest.len() > MAX_STRING {
                    format!("longer than {MAX_STRING} bytes")
                } else {
                    "no NUL byte ends it before the end of the binary".to_owned()
                };
                self.binary.damaged(what, offset, problem)
            })?;
        self.count(what, offset, text.len())?;
        Ok(text)
    }

    /// Accounts for a string of `size` bytes.
    fn count(&mut self, what: &'static str, offset: u64, size: usize) -> Result<(), ReadError> {
        self.string_bytes = self.string_bytes.saturating_add(size as u64);
        let most = (self.binary.bytes.len() as u64)
            .saturating_mul(STRING_SHARING)
            .saturating_add(MIN_STRING_BUDGET);
        if self.string_bytes > most {
            let problem = format!("strings have more than {most} bytes, by sharing them");
            return Err(self.binary.damaged(what, offset, problem));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "offload_binary_tests.rs"]
mod tests;
