//! The reader of [`super::fatbin`].

use std::borrow::Cow;
use std::io::Read;

use super::fatbin_format::{
    Compression, ENTRY_HEADER_SIZE, FLAG_ARCH_SPECIFIC, FLAG_DEBUG, FLAG_FAMILY, FLAG_LZ4, FLAG_MERCURY,
    FLAG_OBFUSCATED, FLAG_ZSTD, HEADER_SIZE, KIND_ELF, KIND_LTO_IR, KIND_PTX, MAGIC, VERSION,
};
use crate::FileKind;
use crate::target::{NvidiaArch, Suffix};

/// Largest image that is decompressed, in bytes: far above any cubin, far below what exhausts memory.
const MAX_DECOMPRESSED: u64 = 1 << 30;

/// Why a file could not be read as a fat binary.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FatbinError {
    /// The file does not start with the magic number.
    #[error("not a fat binary: it starts with [{start}] instead of [50 ed 55 ba]")]
    NotFatbin {
        /// The first bytes, in hexadecimal.
        start: String,
    },
    /// Something lies behind the end of the file.
    #[error(
        "truncated fat binary: {what} needs {size} bytes at offset {offset:#x}, but the file has only {available} bytes"
    )]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it starts, in bytes from the start of the file.
        offset: u64,
        /// How many bytes it has.
        size: u64,
        /// Size of the file.
        available: u64,
    },
    /// Something contradicts the format.
    #[error("damaged fat binary: {what} at offset {offset:#x}: {problem}")]
    Damaged {
        /// What was being read.
        what: &'static str,
        /// Where it starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
}

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
    /// [`FatbinError::Damaged`] if it does not decompress to the size that is stated.
    pub fn payload(&self) -> Result<Cow<'data, [u8]>, FatbinError> {
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

    fn damaged(&self, problem: String) -> FatbinError {
        FatbinError::Damaged {
            what: "a compressed image",
            offset: self.payload_offset,
            problem,
        }
    }

    fn decompress_lz4(&self) -> Result<Vec<u8>, FatbinError> {
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

    fn decompress_zstd(&self) -> Result<Vec<u8>, FatbinError> {
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

    fn check_size(&self, bytes: Vec<u8>) -> Result<Vec<u8>, FatbinError> {
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
/// [`FatbinError`], which names the offset. Payloads are checked when they are asked for.
pub fn read(bytes: &[u8]) -> Result<Fatbin<'_>, FatbinError> {
    let fatbin = read_first(bytes)?;
    if fatbin.size < bytes.len() {
        return Err(FatbinError::Damaged {
            what: "the end of the container",
            offset: fatbin.size as u64,
            problem: format!("{} bytes follow it", bytes.len() - fatbin.size),
        });
    }
    Ok(fatbin)
}

/// Reads the fat binary at the start of `bytes`; others may follow, as in the section `.nv_fatbin` of a host
/// object, where each begins at [`Fatbin::size`] of the one before.
///
/// # Errors
///
/// As [`read`].
pub fn read_first(bytes: &[u8]) -> Result<Fatbin<'_>, FatbinError> {
    let magic = bytes.get(..4).unwrap_or(bytes);
    if magic != MAGIC {
        let start: Vec<String> = magic.iter().map(|byte| format!("{byte:02x}")).collect();
        let start = start.join(" ");
        return Err(FatbinError::NotFatbin { start });
    }
    let file = Bytes(bytes);
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
    let file = Bytes(file.slice("the container", 0, end)?);
    let mut entries = Vec::new();
    let mut offset = HEADER_SIZE as u64;
    while offset < end {
        let (entry, next) = file.entry(offset)?;
        entries.push(entry);
        offset = next;
    }
    Ok(Fatbin {
        entries,
        size: file.0.len(),
    })
}

fn damaged(what: &'static str, offset: u64, problem: String) -> FatbinError {
    FatbinError::Damaged { what, offset, problem }
}

/// Checked reads at offsets of a file.
struct Bytes<'data>(&'data [u8]);

impl<'data> Bytes<'data> {
    fn slice(&self, what: &'static str, offset: u64, size: u64) -> Result<&'data [u8], FatbinError> {
        let range = || {
            let start = usize::try_from(offset).ok()?;
            let end = usize::try_from(offset.checked_add(size)?).ok()?;
            self.0.get(start..end)
        };
        range().ok_or(FatbinError::Truncated {
            what,
            offset,
            size,
            available: self.0.len() as u64,
        })
    }

    fn array<const N: usize>(&self, offset: u64) -> Result<[u8; N], FatbinError> {
        let bytes = self.slice("a field", offset, N as u64)?;
        // `slice` returned N bytes, so that the default is never taken.
        Ok(bytes.try_into().unwrap_or([0; N]))
    }

    fn u16(&self, offset: u64) -> Result<u16, FatbinError> {
        self.array(offset).map(u16::from_le_bytes)
    }

    fn u32(&self, offset: u64) -> Result<u32, FatbinError> {
        self.array(offset).map(u32::from_le_bytes)
    }

    fn u64(&self, offset: u64) -> Result<u64, FatbinError> {
        self.array(offset).map(u64::from_le_bytes)
    }

    /// Reads the entry at `start`; the second value is where the next one starts.
    fn entry(&self, start: u64) -> Result<(Entry<'data>, u64), FatbinError> {
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
        let number = u16::try_from(number).map_err(|_| FatbinError::Damaged {
            what: "an entry's architecture",
            offset: at,
            problem: format!("there is no sm_{number}"),
        })?;
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
    fn slice(&self, what: &'static str, at: u32, length: u32) -> Result<&'data [u8], FatbinError> {
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

    fn text(&self, what: &'static str, at: u32, length: u32) -> Result<&'data str, FatbinError> {
        std::str::from_utf8(self.slice(what, at, length)?)
            .map_err(|_| damaged(what, self.start + u64::from(at), "not UTF-8".to_owned()))
    }

    fn identifier(&self, at: u32, length: u32) -> Result<Option<&'data str>, FatbinError> {
        // CUDA 12.4 writes an empty identifier where there is none.
        if at == 0 || length == 0 {
            return Ok(None);
        }
        self.text("an entry's identifier", at, length).map(Some)
    }

    /// Offset and length of the options record's data.
    fn record(&self, at: u32) -> Result<Option<(u32, u32)>, FatbinError> {
        if at == 0 {
            return Ok(None);
        }
        let record = self.slice("an entry's options record", at, 8)?;
        let file = Bytes(record);
        Ok(Some((file.u32(0)?, file.u32(4)?)))
    }
}
