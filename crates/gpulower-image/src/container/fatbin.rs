//! Writes and reads NVIDIA's fat binary: a container of cubins and PTX for several architectures.
//!
//! The driver takes the best cubin for its device, or else compiles the PTX. [`write()`] gives the bytes that
//! `fatbinary` gives for the same images; [`read`] takes the container apart again.
//!
//! The format is not documented. It was established from the output of fatbinary 13.0 and nvFatbin 12.4 to
//! 13.0, and the output of the writer is compared with theirs. All numbers are little-endian.

use std::borrow::Cow;
use std::io::Read;

use super::WriteError;
use crate::image::cubin;
use crate::image::elf::Elf;
use crate::image::ptx;
use crate::read::{Bytes, start};
use crate::target::{NvidiaArch, Suffix};
use crate::{FileKind, ReadError};

const FORMAT: &str = "fat binary";
/// First four bytes of a container.
pub const MAGIC: [u8; 4] = 0xba55_ed50u32.to_le_bytes();
/// Container version.
const VERSION: u16 = 1;
/// Size of the container's header: magic, version (u16), this size (u16), size of all entries (u64).
pub const HEADER_SIZE: usize = 16;
/// Size of an entry's header without its extension.
const ENTRY_HEADER_SIZE: usize = 64;
/// Third and fourth byte of an entry.
const ENTRY_VERSION: u16 = 0x0101;
/// Everything in the container is padded to this.
const ALIGNMENT: usize = 8;

const KIND_PTX: u16 = 1;
const KIND_ELF: u16 = 2;
const KIND_LTO_IR: u16 = 8;

const FLAG_64_BIT: u64 = 0x1;
const FLAG_DEBUG: u64 = 0x2;
const FLAG_LINUX: u64 = 0x10;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
const FLAG_OBFUSCATED: u64 = 0x1_0000;
const FLAG_ARCH_SPECIFIC: u64 = 0x10_0000;
const FLAG_FAMILY: u64 = 0x20_0000;
const FLAG_MERCURY: u64 = 0x100_0000;

/// How an entry's content is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Compression {
    /// As it is. Every driver reads it.
    #[default]
    None,
    /// LZ4, the default of CUDA up to 12.9.
    Lz4,
    /// zstd, the default of CUDA 13. Older drivers do not read it.
    Zstd {
        /// Level 1 to 22; fatbinary takes 5, and 19 for "size".
        level: i32,
    },
}

impl Compression {
    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lz4 => "lz4",
            Self::Zstd { .. } => "zstd",
        }
    }

    /// The way with this name; zstd at the level of fatbinary.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::None),
            "lz4" => Some(Self::Lz4),
            "zstd" => Some(ZSTD_DEFAULT),
            _ => None,
        }
    }
}

/// zstd as fatbinary 13.0 uses it by default.
pub const ZSTD_DEFAULT: Compression = Compression::Zstd { level: 5 };

/// Rounds up to the container's alignment.
fn padded(size: usize) -> usize {
    size.next_multiple_of(ALIGNMENT)
}

/// Content of an image to be written.
#[derive(Debug, Clone, Copy)]
pub enum Content<'a> {
    /// PTX text, with or without a NUL at its end.
    Ptx(&'a str),
    /// A cubin.
    Cubin(&'a [u8]),
}

/// An image to be written.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// The content.
    pub content: Content<'a>,
    /// The architecture under which the driver finds it. It has to be the one the content was made for.
    pub arch: NvidiaArch,
    /// Identifier (usually the name of the source file), which tools show.
    pub identifier: Option<&'a str>,
    /// PTX: the options for the driver's compiler, for example `-O3`. Ignored for cubins.
    pub options: &'a str,
    /// Whether the image carries debug information.
    pub debug: bool,
    /// How it is stored.
    pub compression: Compression,
}

impl<'a> Image<'a> {
    /// An uncompressed image for the architecture called `arch`, without identifier and options.
    ///
    /// # Errors
    ///
    /// A name that is no architecture's.
    pub fn new(content: Content<'a>, arch: &str) -> Result<Self, WriteError> {
        let name = arch;
        let arch = NvidiaArch::parse(name).ok_or_else(|| {
            WriteError::Refused(format!(
                "`{name}` is no NVIDIA architecture: expected a name like sm_90, sm_90a or sm_100f"
            ))
        })?;
        Ok(Self {
            content,
            arch,
            identifier: None,
            options: "",
            debug: false,
            compression: Compression::None,
        })
    }
}

/// Writes a fat binary that holds `images` in that order.
///
/// # Errors
///
/// [`WriteError`]; nothing is stored that a driver could not load for the architecture it is stored
/// under.
pub fn write(images: &[Image<'_>]) -> Result<Vec<u8>, WriteError> {
    let mut entries = Vec::new();
    for image in images {
        write_entry(image, &mut entries)?;
    }
    Ok(container(&entries))
}

/// The container of entries that have their headers: what follows the header of another container, or a part of that.
#[must_use]
pub fn container(entries: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_SIZE + entries.len());
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((HEADER_SIZE as u16).to_le_bytes());
    bytes.extend((entries.len() as u64).to_le_bytes());
    bytes.extend(entries);
    bytes
}

/// What the header says about an image's content.
struct Described {
    kind: u16,
    /// Minor, then major: the PTX ISA, or the ABI version of a cubin and 1.
    version: (u16, u16),
    flags: u64,
    /// The bytes to store.
    payload: Vec<u8>,
    /// The options record: the length it states, and its data.
    record: Option<(u32, Vec<u8>)>,
}

fn write_entry(image: &Image<'_>, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let arch = image.arch;
    let described = match image.content {
        Content::Ptx(text) => describe_ptx(text, image)?,
        Content::Cubin(bytes) => describe_cubin(bytes, arch)?,
    };
    let mut flags = FLAG_64_BIT | FLAG_LINUX | described.flags;
    flags |= match arch.suffix {
        Suffix::Plain => 0,
        Suffix::ArchitectureSpecific => FLAG_ARCH_SPECIFIC,
        Suffix::FamilySpecific => FLAG_FAMILY,
    };
    if image.debug {
        flags |= FLAG_DEBUG;
    }
    let plain_size = described.payload.len();
    let (payload, compression_flag) = compress(described.payload, image)?;
    flags |= compression_flag;
    let (compressed_size, uncompressed_size) = if compression_flag == 0 {
        (0, 0)
    } else {
        let size = u32::try_from(payload.len()).map_err(|_| too_large(payload.len(), arch))?;
        (size, plain_size as u64)
    };

    let (mut identifier_at, mut identifier_length, mut record_at) = (0u32, 0u32, 0u32);
    let mut extension = Vec::new();
    if let Some(identifier) = image.identifier.filter(|identifier| !identifier.is_empty()) {
        if identifier.contains('\0') {
            return Err(nul("the identifier", arch));
        }
        identifier_at = ENTRY_HEADER_SIZE as u32;
        identifier_length = length(identifier.len(), arch)?;
        extension.extend(identifier.as_bytes());
        extension.push(0);
        extension.resize(padded(extension.len()), 0);
    }
    if let Some((stated_length, data)) = described.record {
        record_at = length(ENTRY_HEADER_SIZE + extension.len(), arch)?;
        extension.extend((record_at + 8).to_le_bytes());
        extension.extend(stated_length.to_le_bytes());
        extension.extend(data);
        extension.resize(padded(extension.len()), 0);
    }

    out.extend(described.kind.to_le_bytes());
    out.extend(ENTRY_VERSION.to_le_bytes());
    out.extend(length(ENTRY_HEADER_SIZE + extension.len(), arch)?.to_le_bytes());
    out.extend((padded(payload.len()) as u64).to_le_bytes());
    out.extend(compressed_size.to_le_bytes());
    out.extend(record_at.to_le_bytes());
    out.extend(described.version.0.to_le_bytes());
    out.extend(described.version.1.to_le_bytes());
    out.extend(u32::from(arch.number).to_le_bytes());
    out.extend(identifier_at.to_le_bytes());
    out.extend(identifier_length.to_le_bytes());
    out.extend(flags.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    out.extend(uncompressed_size.to_le_bytes());
    out.append(&mut extension);
    let padding = padded(payload.len()) - payload.len();
    out.extend(payload);
    out.resize(out.len() + padding, 0);
    Ok(())
}

fn too_large(bytes: usize, arch: NvidiaArch) -> WriteError {
    // Its compressed size has 32 bits.
    WriteError::Refused(format!("the image for {arch} is too large: {bytes} bytes"))
}

fn nul(what: &str, arch: NvidiaArch) -> WriteError {
    WriteError::Refused(format!("{what} for {arch} contains a NUL byte"))
}

/// The image was made for another architecture than the entry is for, and would not load.
fn arch_mismatch(what: &str, found: &str, stated: NvidiaArch) -> WriteError {
    WriteError::Refused(format!(
        "a {what} for {found} cannot be stored as {stated}: a driver would choose it for the wrong device"
    ))
}

fn length(size: usize, arch: NvidiaArch) -> Result<u32, WriteError> {
    u32::try_from(size).map_err(|_| too_large(size, arch))
}

fn describe_ptx(text: &str, image: &Image<'_>) -> Result<Described, WriteError> {
    let arch = image.arch;
    let text = text.strip_suffix('\0').unwrap_or(text);
    for (what, checked) in [("the PTX", text), ("the options string", image.options)] {
        if checked.contains('\0') {
            return Err(nul(what, arch));
        }
    }
    let header = ptx::header(text);
    let no_head = || WriteError::Refused(format!("the PTX for {arch} does not begin with .version and .target"));
    let (Some((major, minor)), Some(target)) = (header.version, header.target) else {
        return Err(no_head());
    };
    let (Ok(major), Ok(minor)) = (u16::try_from(major), u16::try_from(minor)) else {
        return Err(no_head());
    };
    if NvidiaArch::parse(&target) != Some(arch) {
        return Err(arch_mismatch("PTX module", &target, arch));
    }
    let mut payload = text.as_bytes().to_vec();
    payload.push(0);
    let mut record = image.options.as_bytes().to_vec();
    record.push(0);
    Ok(Described {
        kind: KIND_PTX,
        version: (minor, major),
        flags: 0,
        payload,
        record: Some((length(image.options.len(), arch)?, record)),
    })
}

fn describe_cubin(bytes: &[u8], arch: NvidiaArch) -> Result<Described, WriteError> {
    let unreadable = |source| WriteError::Input {
        place: format!("the cubin for {arch}"),
        source,
    };
    let read = cubin::read(bytes).map_err(unreadable)?;
    // A cubin does not say whether it is specific to a family, only whether it is to an architecture.
    let specific = arch.suffix == Suffix::ArchitectureSpecific;
    if read.arch != u32::from(arch.number) || (read.arch_specific && !specific) {
        return Err(arch_mismatch("cubin", &read.chip(), arch));
    }
    let mut record = None;
    if read.mercury {
        // The driver needs the compatibility attributes before it unpacks the cubin. They follow an empty
        // options string.
        let elf = Elf::parse(bytes).map_err(unreadable)?;
        if let Some(section) = elf.sections().iter().find(|section| section.name == ".nv.compat") {
            let contents = elf.contents(section).map_err(unreadable)?;
            let mut data = vec![0];
            data.extend(contents);
            record = Some((length(contents.len(), arch)?, data));
        }
    }
    Ok(Described {
        kind: KIND_ELF,
        version: (read.abi_version.into(), 1),
        flags: if read.mercury { FLAG_MERCURY } else { 0 },
        payload: bytes.to_vec(),
        record,
    })
}

/// Compresses `payload` as the image asks; the flag is 0 where nothing was compressed.
fn compress(payload: Vec<u8>, image: &Image<'_>) -> Result<(Vec<u8>, u64), WriteError> {
    match image.compression {
        Compression::None => Ok((payload, 0)),
        Compression::Lz4 => Ok((lz4_flex::block::compress(&payload), FLAG_LZ4)),
        Compression::Zstd { level } => {
            let compressed = zstd::bulk::compress(&payload, level)
                .map_err(|error| WriteError::Refused(format!("compressing the image for {}: {error}", image.arch)))?;
            Ok((compressed, FLAG_ZSTD))
        }
    }
}

const MAX_DECOMPRESSED: u64 = 1 << 30;

/// A fat binary, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fatbin<'data> {
    /// Its entries, in the order of the file.
    pub entries: Vec<Entry<'data>>,
    /// Size of the container in bytes, headers included.
    pub size: usize,
}

/// One image of a fat binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'data> {
    /// What it is; scrambled, if it is LTO-IR.
    pub kind: FileKind,
    /// The architecture it is stored under.
    pub arch: NvidiaArch,
    /// Major and minor version: the PTX ISA, or 1 and the ABI version of a cubin.
    pub version: (u16, u16),
    /// The flags as stored.
    pub flags: u64,
    /// Identifier, if there is one.
    pub identifier: Option<&'data str>,
    /// PTX: options for the driver's compiler.
    pub options: Option<&'data str>,
    /// Cubin: copy of its `.nv.compat` section.
    pub compatibility: Option<&'data [u8]>,
    /// How the payload is stored; the level of zstd is not recorded and reads as 0.
    pub compression: Compression,
    /// The payload as stored: compressed, or plain with padding.
    pub stored: &'data [u8],
    /// Size of the payload when decompressed; 0 if it is not compressed.
    pub uncompressed_size: u64,
    /// Where the entry starts, in bytes from the start of the file.
    pub offset: u64,
    /// Where the stored payload starts, in bytes from the start of the file.
    pub payload_offset: u64,
}

impl<'data> Entry<'data> {
    /// Whether the image carries debug information.
    #[must_use]
    pub fn is_debug(&self) -> bool {
        self.flags & FLAG_DEBUG != 0
    }

    /// Whether the image is a cubin with intermediate code that the driver finishes.
    #[must_use]
    pub fn is_mercury(&self) -> bool {
        self.flags & FLAG_MERCURY != 0
    }

    /// Whether the image is scrambled, as NVIDIA's tools do with LTO-IR: the payload is opaque then.
    #[must_use]
    pub fn is_obfuscated(&self) -> bool {
        self.flags & FLAG_OBFUSCATED != 0
    }

    /// The content: the cubin with the padding that the container gave it, if it was stored plain (a cubin's
    /// size is a multiple of 8 in practice); PTX text without its terminating NUL and padding.
    ///
    /// # Errors
    ///
    /// [`ReadProblem::Damaged`](crate::ReadProblem::Damaged) if it does not decompress to the size that is stated.
    pub fn payload(&self) -> Result<Cow<'data, [u8]>, ReadError> {
        let mut payload = match self.compression {
            Compression::None => Cow::Borrowed(self.stored),
            Compression::Lz4 => Cow::Owned(self.decompress_lz4()?),
            Compression::Zstd { .. } => Cow::Owned(self.decompress_zstd()?),
        };
        if self.kind == FileKind::Ptx
            && let Some(end) = payload.iter().position(|&byte| byte == 0)
        {
            match &mut payload {
                Cow::Borrowed(bytes) => *bytes = bytes.get(..end).unwrap_or_default(),
                Cow::Owned(bytes) => bytes.truncate(end),
            }
        }
        Ok(payload)
    }

    fn damaged(&self, problem: String) -> ReadError {
        damaged("a compressed image", self.payload_offset, problem)
    }

    fn decompress_lz4(&self) -> Result<Vec<u8>, ReadError> {
        // One byte of an LZ4 block stands for 255 bytes at most, which bounds what is allocated.
        let most = (self.stored.len() as u64).saturating_mul(255).min(MAX_DECOMPRESSED);
        let size = usize::try_from(self.uncompressed_size)
            .ok()
            .filter(|_| self.uncompressed_size <= most)
            .ok_or_else(|| {
                self.damaged(format!(
                    "{} bytes of LZ4 cannot give {} bytes",
                    self.stored.len(),
                    self.uncompressed_size
                ))
            })?;
        let bytes =
            lz4_flex::block::decompress(self.stored, size).map_err(|error| self.damaged(format!("LZ4: {error}")))?;
        self.check_size(bytes)
    }

    fn decompress_zstd(&self) -> Result<Vec<u8>, ReadError> {
        if self.uncompressed_size > MAX_DECOMPRESSED {
            return Err(self.damaged(format!(
                "it says that it has {} bytes; at most {MAX_DECOMPRESSED} are read",
                self.uncompressed_size
            )));
        }
        let zstd = |error: std::io::Error| self.damaged(format!("zstd: {error}"));
        let decoder = zstd::stream::read::Decoder::with_buffer(self.stored)
            .map_err(zstd)?
            .single_frame();
        let mut bytes = Vec::new();
        // The buffer grows with what really comes out, whatever size is stated.
        decoder
            .take(self.uncompressed_size.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(zstd)?;
        self.check_size(bytes)
    }

    fn check_size(&self, bytes: Vec<u8>) -> Result<Vec<u8>, ReadError> {
        if bytes.len() as u64 == self.uncompressed_size {
            return Ok(bytes);
        }
        Err(self.damaged(format!(
            "it does not decompress to the {} bytes that are stated",
            self.uncompressed_size
        )))
    }
}

/// Reads a file that is one fat binary and nothing else.
///
/// # Errors
///
/// [`ReadError`], which names the offset. Payloads are checked when they are asked for.
pub fn read(bytes: &[u8]) -> Result<Fatbin<'_>, ReadError> {
    let fatbin = read_first(bytes)?;
    if fatbin.size < bytes.len() {
        return Err(damaged(
            "the end of the container",
            fatbin.size as u64,
            format!("{} bytes follow it", bytes.len() - fatbin.size),
        ));
    }
    Ok(fatbin)
}

/// Reads the fat binary at the start of `bytes`; others may follow, as in the section `.nv_fatbin` of a host
/// object, where each begins at [`Fatbin::size`] of the one before.
///
/// # Errors
///
/// As [`read`].
pub fn read_first(bytes: &[u8]) -> Result<Fatbin<'_>, ReadError> {
    let magic = bytes.get(..4).unwrap_or(bytes);
    if magic != MAGIC {
        return Err(ReadError::other_format(format!(
            "not a fat binary: it starts with [{}] instead of [50 ed 55 ba]",
            start(magic, 4)
        )));
    }
    let file = Bytes::of(FORMAT, bytes);
    file.slice("the header", 0, HEADER_SIZE as u64)?;
    let (version, header_size) = (file.u16(4)?, file.u16(6)?);
    if (version, usize::from(header_size)) != (VERSION, HEADER_SIZE) {
        return Err(damaged(
            "the header",
            4,
            format!("version {version} with a header of {header_size} bytes is not known (1 and 16 are)"),
        ));
    }
    let size = file.u64(8)?;
    file.slice("the entries", HEADER_SIZE as u64, size)?;
    let end = HEADER_SIZE as u64 + size;
    // Nothing behind the container belongs to it.
    let file = Bytes::of(FORMAT, file.slice("the container", 0, end)?);
    let mut entries = Vec::new();
    let mut offset = HEADER_SIZE as u64;
    while offset < end {
        let (entry, next) = file.entry(offset)?;
        entries.push(entry);
        offset = next;
    }
    Ok(Fatbin {
        entries,
        size: file.bytes.len(),
    })
}

fn damaged(what: &str, offset: u64, problem: impl std::fmt::Display) -> ReadError {
    ReadError::damaged(FORMAT, what, offset, problem)
}

/// The entries.
impl<'data> Bytes<'data> {
    /// Reads the entry at `start`; the second value is where the next one starts.
    fn entry(&self, start: u64) -> Result<(Entry<'data>, u64), ReadError> {
        let fixed = ENTRY_HEADER_SIZE as u64;
        self.slice("an entry's header", start, fixed)?;
        let header_size = u64::from(self.u32(start + 4)?);
        if header_size < fixed || header_size % 8 != 0 {
            return Err(damaged(
                "an entry's header",
                start + 4,
                format!("its size is {header_size}: not a multiple of 8 from 64 on"),
            ));
        }
        let header = self.slice("an entry's header", start, header_size)?;
        let payload_offset = start + header_size;
        let stored_size = self.u64(start + 8)?;
        let stored = self.slice("an entry's payload", payload_offset, stored_size)?;
        let next = payload_offset + stored_size;
        let flags = self.u64(start + 0x28)?;
        let compressed_size = u64::from(self.u32(start + 0x10)?);
        let (compression, stored) = match (flags & FLAG_LZ4 != 0, flags & FLAG_ZSTD != 0) {
            (false, false) => (Compression::None, stored),
            (true, true) => {
                let problem = format!("flags {flags:#x} say LZ4 and zstd");
                return Err(damaged("an entry's header", start + 0x28, problem));
            }
            (lz4, _) => {
                let used = usize::try_from(compressed_size)
                    .ok()
                    .and_then(|size| stored.get(..size))
                    .ok_or_else(|| {
                        damaged(
                            "an entry's compressed size",
                            start + 0x10,
                            format!("{compressed_size} bytes, of {stored_size} that are stored"),
                        )
                    })?;
                let zstd = Compression::Zstd { level: 0 };
                (if lz4 { Compression::Lz4 } else { zstd }, used)
            }
        };
        let kind = match self.u16(start)? {
            KIND_PTX => FileKind::Ptx,
            KIND_ELF => FileKind::Cubin,
            KIND_LTO_IR => FileKind::LtoIr,
            _ => FileKind::Unknown,
        };
        let extension = Extension { header, start };
        let identifier = extension.identifier(self.u32(start + 0x20)?, self.u32(start + 0x24)?)?;
        let record = extension.record(self.u32(start + 0x14)?)?;
        let (options, compatibility) = match (kind, record) {
            (FileKind::Cubin, Some((at, length))) => {
                // An empty options string comes first.
                (
                    None,
                    Some(extension.slice("an entry's attributes", at.saturating_add(1), length)?),
                )
            }
            (_, Some((at, length))) => (Some(extension.text("an entry's options", at, length)?), None),
            (_, None) => (None, None),
        };
        let suffix = match (flags & FLAG_ARCH_SPECIFIC != 0, flags & FLAG_FAMILY != 0) {
            (true, _) => Suffix::ArchitectureSpecific,
            (false, true) => Suffix::FamilySpecific,
            (false, false) => Suffix::Plain,
        };
        let at = start + 0x1c;
        let number = self.u32(at)?;
        let number = u16::try_from(number)
            .map_err(|_| damaged("an entry's architecture", at, format!("there is no sm_{number}")))?;
        let entry = Entry {
            kind,
            arch: NvidiaArch { number, suffix },
            version: (self.u16(start + 0x1a)?, self.u16(start + 0x18)?),
            flags,
            identifier,
            options,
            compatibility,
            compression,
            stored,
            uncompressed_size: self.u64(start + 0x38)?,
            offset: start,
            payload_offset,
        };
        Ok((entry, next))
    }
}

/// The variable part of an entry's header. Offsets in it count from the start of the entry.
struct Extension<'data> {
    header: &'data [u8],
    start: u64,
}

impl<'data> Extension<'data> {
    fn slice(&self, what: &'static str, at: u32, length: u32) -> Result<&'data [u8], ReadError> {
        let range = || {
            let start = usize::try_from(at).ok()?;
            self.header
                .get(start..start.checked_add(usize::try_from(length).ok()?)?)
        };
        range().ok_or_else(|| {
            damaged(
                what,
                self.start + u64::from(at),
                format!(
                    "{length} bytes reach out of the entry's header of {}",
                    self.header.len()
                ),
            )
        })
    }

    fn text(&self, what: &'static str, at: u32, length: u32) -> Result<&'data str, ReadError> {
        std::str::from_utf8(self.slice(what, at, length)?)
            .map_err(|_| damaged(what, self.start + u64::from(at), "not UTF-8".to_owned()))
    }

    fn identifier(&self, at: u32, length: u32) -> Result<Option<&'data str>, ReadError> {
        // CUDA 12.4 writes an empty identifier where there is none.
        if at == 0 || length == 0 {
            return Ok(None);
        }
        self.text("an entry's identifier", at, length).map(Some)
    }

    /// Offset and length of the options record's data.
    fn record(&self, at: u32) -> Result<Option<(u32, u32)>, ReadError> {
        if at == 0 {
            return Ok(None);
        }
        let record = self.slice("an entry's options record", at, 8)?;
        let file = Bytes::of(FORMAT, record);
        Ok(Some((file.u32(0)?, file.u32(4)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_compress_have_names() {
        for compression in [Compression::None, Compression::Lz4, ZSTD_DEFAULT] {
            assert_eq!(Compression::from_name(compression.name()), Some(compression));
        }
        assert_eq!(Compression::from_name("zlib"), None);
    }

    #[test]
    fn an_image_may_have_a_gigabyte() {
        let ptx = gpulower_testing::nvidia::store_kernel("7.8", "sm_90");
        let image = Image {
            compression: ZSTD_DEFAULT,
            ..Image::new(Content::Ptx(&ptx), "sm_90").unwrap()
        };
        let mut bytes = write(&[image]).unwrap();
        for (size, is_refused) in [(MAX_DECOMPRESSED, false), (MAX_DECOMPRESSED + 1, true)] {
            bytes[16 + 0x38..16 + 0x40].copy_from_slice(&size.to_le_bytes());
            let error = read(&bytes).unwrap().entries[0].payload().unwrap_err().to_string();
            assert_eq!(error.contains("are read"), is_refused, "{error}");
        }
    }
}
