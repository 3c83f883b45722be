//! The reader of [`super::offload_binary`].

use std::borrow::Cow;
use std::io::Read;

use super::offload_binary::{
    ALIGNMENT, ARCH, ENTRY_SIZE, HEADER_SIZE, HEADER_SIZE_V3, ImageKind, MAGIC, OffloadKindNumber, STRING_ENTRY_SIZE,
    STRING_ENTRY_SIZE_V2, TRIPLE,
};
use super::offload_binary_bytes::Region;
use super::offload_binary_error::{NEWEST_VERSION, OffloadBinaryError};

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
    /// [`FLAG_METADATA`](super::offload_binary::FLAG_METADATA), or 0.
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
/// [`OffloadBinaryError`], which names the offset.
pub fn read(bytes: &[u8]) -> Result<Vec<OffloadBinary<'_>>, OffloadBinaryError> {
    let file = Region {
        bytes,
        start: 0,
        container: "file",
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
            file.check_padding(end, file.end())?;
            return Ok(binaries);
        }
        file.check_padding(end, offset)?;
    }
}

/// Reads the offload binary at the start of `bytes`; whatever follows it is not looked at.
///
/// # Errors
///
/// As [`read`].
pub fn read_first(bytes: &[u8]) -> Result<OffloadBinary<'_>, OffloadBinaryError> {
    let file = Region {
        bytes,
        start: 0,
        container: "file",
    };
    read_at(&file, 0, &mut 0)
}

/// Reads the binary at `offset` of a file, and adds its inflated size to `inflated` if it is compressed.
fn read_at<'data>(
    file: &Region<'data>,
    offset: u64,
    inflated: &mut u64,
) -> Result<OffloadBinary<'data>, OffloadBinaryError> {
    let header = Header::read(file, offset)?;
    let binary = Region {
        bytes: file.slice("the binary", offset, header.size)?,
        start: offset,
        container: "binary",
    };
    let (compression, inflated_size, entries) = if header.inflated_size == 0 {
        (BodyCompression::None, header.size, read_entries(&binary, &header)?)
    } else {
        let (compression, bytes) = inflate(&binary, &header, inflated)?;
        let within = Region {
            bytes: &bytes,
            start: 0,
            container: "binary",
        };
        let entries = read_entries(&within, &header).map_err(|source| OffloadBinaryError::Inflated {
            offset,
            source: Box::new(source),
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
    fn read(file: &Region<'_>, offset: u64) -> Result<Self, OffloadBinaryError> {
        let there = file.rest(offset);
        let magic = there.get(..4).unwrap_or(there);
        if magic != MAGIC {
            let start: Vec<String> = magic.iter().map(|byte| format!("{byte:02x}")).collect();
            return Err(OffloadBinaryError::NotOffloadBinary {
                offset: file.start + offset,
                start: start.join(" "),
            });
        }
        file.slice("the header", offset, HEADER_SIZE as u64)?;
        let version = file.u32(offset + 4)?;
        if !(1..=NEWEST_VERSION).contains(&version) {
            return Err(OffloadBinaryError::Version { offset, version });
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
fn inflate(
    binary: &Region<'_>,
    header: &Header,
    inflated: &mut u64,
) -> Result<(BodyCompression, Vec<u8>), OffloadBinaryError> {
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

fn read_entries<'data>(binary: &Region<'data>, header: &Header) -> Result<Vec<Entry<'data>>, OffloadBinaryError> {
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
    binary: &'region Region<'data>,
    version: u32,
    /// String entries so far. Each entry has its own, so that all of them fit into the binary.
    strings: u64,
    /// Bytes of strings so far.
    string_bytes: u64,
}

impl<'data> EntryReader<'_, 'data> {
    fn entry(&mut self, at: u64) -> Result<Entry<'data>, OffloadBinaryError> {
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
    fn strings(
        &mut self,
        offset: u64,
        count: u64,
    ) -> Result<Vec<(Cow<'data, str>, Cow<'data, [u8]>)>, OffloadBinaryError> {
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
    fn terminated(&mut self, what: &'static str, offset: u64) -> Result<&'data [u8], OffloadBinaryError> {
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
    fn count(&mut self, what: &'static str, offset: u64, size: usize) -> Result<(), OffloadBinaryError> {
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
