//! The compressed form of [`super::bundle`]: a header that begins with `CCOB`, and a zlib or zstd stream. All numbers are
//! little endian.
//!
//! | | version 1 | version 2 | version 3 |
//! |---|---|---|---|
//! | magic, version, method | 4 + 2 + 2 bytes | the same | the same |
//! | size with this header | - | 4 bytes | 8 bytes |
//! | size without compression | 4 bytes | 4 bytes | 8 bytes |
//! | hash | 8 bytes | 8 bytes | 8 bytes |
//! | written by clang | 18 | 19 to 21 | 22 |
//!
//! The hash is the first half of the MD5 of the bundle without compression (`llvm::MD5::MD5Result::low`); clang only
//! reports it, here it has to be right. Version 1 does not say where it ends: its stream does.

use std::fmt;
use std::io::{Read, Write};

use md5::{Digest, Md5};

use super::bundle::tail;
use super::bundle_error::{BundleError, BundleWriteError};

pub(super) const MAGIC: &[u8] = b"CCOB";

/// Version of the header of a compressed bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(into = "u16")]
#[non_exhaustive]
pub enum CompressionVersion {
    /// Written by clang 18, read by 18 and later.
    V1,
    /// Written by clang 19 to 21, read by 19 and later.
    V2,
    /// Written by clang 22, read by 20 and later: the first for 4 GiB and more. HIP runtimes learned it late
    /// (llvm/llvm-project#152600).
    V3,
}

impl CompressionVersion {
    /// The version as a number, as the header has it.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }

    const fn header_size(self) -> u64 {
        match self {
            Self::V1 => 20,
            Self::V2 => 24,
            Self::V3 => 32,
        }
    }
}

impl From<CompressionVersion> for u16 {
    fn from(version: CompressionVersion) -> Self {
        version.number()
    }
}

/// What compressed a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CompressionMethod {
    /// zlib, which clang uses where it was built without zstd.
    Zlib,
    /// zstd.
    Zstd,
}

impl CompressionMethod {
    const fn number(self) -> u16 {
        match self {
            Self::Zlib => 0,
            Self::Zstd => 1,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Zlib => "zlib",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for CompressionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a bundle is to be compressed. The default is clang 22's: version 3, zstd at level 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compression {
    /// Version of the header.
    pub version: CompressionVersion,
    /// The compressor.
    pub method: CompressionMethod,
    /// Its level: 0 to 9 for zlib, -131072 to 22 for zstd.
    pub level: i32,
}

impl Default for Compression {
    fn default() -> Self {
        Self {
            version: CompressionVersion::V3,
            method: CompressionMethod::Zstd,
            level: 3,
        }
    }
}

/// What the header of a compressed bundle says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct CompressedHeader {
    /// Version of the header.
    pub version: CompressionVersion,
    /// The compressor.
    pub method: CompressionMethod,
    /// Size of the bundle without compression, in bytes.
    pub uncompressed_size: u64,
    /// First half of the MD5 of the bundle without compression.
    pub hash: u64,
}

fn hash(bytes: &[u8]) -> u64 {
    let digest = Md5::digest(bytes);
    u64::from_le_bytes(digest.first_chunk::<8>().copied().unwrap_or_default())
}

pub(super) fn compress(bundle: &[u8], compression: Compression) -> Result<Vec<u8>, BundleWriteError> {
    let Compression { version, method, level } = compression;
    let levels = match method {
        CompressionMethod::Zlib => 0..=9,
        CompressionMethod::Zstd => zstd::compression_level_range(),
    };
    if !levels.contains(&level) {
        return Err(BundleWriteError::Level {
            method: method.name(),
            level,
            least: *levels.start(),
            most: *levels.end(),
        });
    }
    let stream = match method {
        CompressionMethod::Zlib => compress_zlib(bundle, level),
        CompressionMethod::Zstd => compress_zstd(bundle, level),
    }
    .map_err(BundleWriteError::Compress)?;

    let uncompressed_size = bundle.len() as u64;
    let size = version.header_size() + stream.len() as u64;
    let short = |bytes: u64| {
        u32::try_from(bytes).map_err(|_| BundleWriteError::TooLarge {
            version: version.number(),
            bytes,
        })
    };
    let mut bytes = MAGIC.to_vec();
    bytes.extend(version.number().to_le_bytes());
    bytes.extend(method.number().to_le_bytes());
    match version {
        CompressionVersion::V1 => bytes.extend(short(uncompressed_size)?.to_le_bytes()),
        CompressionVersion::V2 => {
            bytes.extend(short(size)?.to_le_bytes());
            bytes.extend(short(uncompressed_size)?.to_le_bytes());
        }
        CompressionVersion::V3 => {
            bytes.extend(size.to_le_bytes());
            bytes.extend(uncompressed_size.to_le_bytes());
        }
    }
    bytes.extend(hash(bundle).to_le_bytes());
    bytes.extend(stream);
    Ok(bytes)
}

fn compress_zlib(bundle: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    let level = flate2::Compression::new(u32::try_from(level).unwrap_or_default());
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), level);
    encoder.write_all(bundle)?;
    encoder.finish()
}

/// As LLVM does it (llvm/lib/Support/Compression.cpp): in one go, and with long distance matching, by which the images for
/// similar devices share what they have in common.
fn compress_zstd(bundle: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    let mut compressor = zstd::bulk::Compressor::new(level)?;
    compressor.set_parameter(zstd::zstd_safe::CParameter::EnableLongDistanceMatching(true))?;
    compressor.compress(bundle)
}

/// Decompresses the bundle at the start of `bytes`, which lie at `base` of the file: its header, its size in the file, and
/// what came out. `budget` is what may come out, in bytes, and is lowered by what does.
pub(super) fn decompress(
    bytes: &[u8],
    base: u64,
    budget: &mut u64,
) -> Result<(CompressedHeader, u64, Vec<u8>), BundleError> {
    let (header, stated_size) = read_header(bytes, base)?;
    let header_size = header.version.header_size();
    let end = usize::try_from(stated_size.unwrap_or(bytes.len() as u64)).ok();
    let stream = end
        .and_then(|end| bytes.get(..end))
        .ok_or(BundleError::Truncated {
            what: "a compressed bundle",
            offset: base,
            size: stated_size.unwrap_or_default(),
            end: base.saturating_add(bytes.len() as u64),
        })
        .map(|bundle| tail(bundle, header_size))?;

    if header.uncompressed_size > *budget {
        return Err(BundleError::TooLarge {
            offset: base,
            size: header.uncompressed_size,
            limit: *budget,
        });
    }
    let stream_at = base.saturating_add(header_size);
    let damaged = |problem: String| BundleError::Damaged {
        what: "a compressed bundle",
        offset: stream_at,
        problem,
    };
    let failed = |error: std::io::Error| damaged(format!("{}: {error}", header.method));
    // The buffer grows with what really comes out, whatever size is stated.
    let most = header.uncompressed_size.saturating_add(1);
    let mut content = Vec::new();
    let used = match header.method {
        CompressionMethod::Zlib => {
            let mut decoder = flate2::bufread::ZlibDecoder::new(stream);
            (&mut decoder).take(most).read_to_end(&mut content).map_err(failed)?;
            decoder.total_in()
        }
        CompressionMethod::Zstd => {
            // Where the first frame ends; version 1 says so nowhere else.
            let used = zstd::zstd_safe::find_frame_compressed_size(stream)
                .map_err(|code| damaged(format!("zstd: {}", zstd::zstd_safe::get_error_name(code))))?;
            let frame = stream.get(..used).unwrap_or(stream);
            let mut decoder = zstd::stream::read::Decoder::with_buffer(frame).map_err(failed)?;
            decoder
                .window_log_max(window_log(header.uncompressed_size))
                .map_err(failed)?;
            decoder.take(most).read_to_end(&mut content).map_err(failed)?;
            used as u64
        }
    };
    if content.len() as u64 != header.uncompressed_size {
        let stated = header.uncompressed_size;
        return Err(damaged(format!(
            "it does not decompress to the {stated} bytes that are stated"
        )));
    }
    if stated_size.is_some() && used < stream.len() as u64 {
        let rest = stream.len() as u64 - used;
        return Err(damaged(format!("{rest} bytes follow the {} stream", header.method)));
    }
    let computed = hash(&content);
    if computed != header.hash {
        return Err(BundleError::Hash {
            offset: base,
            stored: header.hash,
            computed,
        });
    }
    *budget = budget.saturating_sub(content.len() as u64);
    Ok((header, header_size.saturating_add(used), content))
}

/// The largest window, as a power of two, that a frame of `size` bytes may ask zstd to allocate: what holds it all, within
/// 16 MiB (a frame that was written before its size was known) and 128 MiB (zstd's own limit).
fn window_log(size: u64) -> u32 {
    (u64::BITS - size.leading_zeros()).clamp(24, 27)
}

/// Reads a header, and the size of the compressed bundle where the header states it.
fn read_header(bytes: &[u8], base: u64) -> Result<(CompressedHeader, Option<u64>), BundleError> {
    let end = base.saturating_add(bytes.len() as u64);
    let truncated = |size| BundleError::Truncated {
        what: "the header of a compressed bundle",
        offset: base,
        size,
        end,
    };
    let damaged = |at: u64, problem: String| BundleError::Damaged {
        what: "the header of a compressed bundle",
        offset: base.saturating_add(at),
        problem,
    };
    let short = |at| {
        tail(bytes, at)
            .first_chunk::<2>()
            .map(|bytes| u16::from_le_bytes(*bytes))
    };
    let word = |at| {
        let bytes = tail(bytes, at).first_chunk::<4>();
        bytes.map(|bytes| u64::from(u32::from_le_bytes(*bytes)))
    };
    let long = |at| {
        tail(bytes, at)
            .first_chunk::<8>()
            .map(|bytes| u64::from_le_bytes(*bytes))
    };

    let (version, method) = short(4).zip(short(6)).ok_or_else(|| truncated(8))?;
    let version = match version {
        1 => CompressionVersion::V1,
        2 => CompressionVersion::V2,
        3 => CompressionVersion::V3,
        other => return Err(damaged(4, format!("version {other} is not known (1, 2 and 3 are)"))),
    };
    let method = match method {
        0 => CompressionMethod::Zlib,
        1 => CompressionMethod::Zstd,
        other => {
            let problem = format!("compression method {other} is not known (0, zlib, and 1, zstd, are)");
            return Err(damaged(6, problem));
        }
    };
    let header_size = version.header_size();
    let (size, uncompressed_size, hash) = match version {
        CompressionVersion::V1 => (Some(None), word(8), long(12)),
        CompressionVersion::V2 => (word(8).map(Some), word(12), long(16)),
        CompressionVersion::V3 => (long(8).map(Some), long(16), long(24)),
    };
    let (Some(size), Some(uncompressed_size), Some(hash)) = (size, uncompressed_size, hash) else {
        return Err(truncated(header_size));
    };
    if let Some(size) = size.filter(|&size| size < header_size) {
        let problem = format!("the compressed bundle is said to have {size} bytes, less than its header");
        return Err(damaged(8, problem));
    }
    let header = CompressedHeader {
        version,
        method,
        uncompressed_size,
        hash,
    };
    Ok((header, size))
}
