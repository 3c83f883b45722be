//! What can be wrong with a bundle, read or to be written.

use crate::target::TargetError;

/// Why bytes could not be read as an offload bundle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// No bundle starts there.
    #[error(
        "not an offload bundle: at offset {offset:#x} there is \"{start}\" instead of __CLANG_OFFLOAD_BUNDLE__, CCOB or \
         a comment with __CLANG_OFFLOAD_BUNDLE____START__"
    )]
    NotBundle {
        /// Where it should start, in bytes from the start of the file.
        offset: u64,
        /// The first bytes, escaped.
        start: String,
    },
    /// Something lies behind the end of the file.
    #[error("truncated offload bundle: {what} needs {size} bytes at offset {offset:#x}, but the file ends at {end:#x}")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it starts, in bytes from the start of the file.
        offset: u64,
        /// How many bytes it has.
        size: u64,
        /// Where the file ends.
        end: u64,
    },
    /// Something contradicts the format.
    #[error("damaged offload bundle: {what} at offset {offset:#x}: {problem}")]
    Damaged {
        /// What was being read.
        what: &'static str,
        /// Where it starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The hash of a compressed bundle is not the one of what came out.
    #[error(
        "damaged offload bundle: what was compressed at offset {offset:#x} has the hash {computed:016x}, but \
         {stored:016x} is stored"
    )]
    Hash {
        /// Where the compressed bundle starts, in bytes from the start of the file.
        offset: u64,
        /// The hash in its header.
        stored: u64,
        /// The hash of the bytes.
        computed: u64,
    },
    /// More than the reader is willing to decompress.
    #[error(
        "the offload bundle compressed at offset {offset:#x} says that it has {size} bytes; at most {limit} more are \
         decompressed of this file"
    )]
    TooLarge {
        /// Where the compressed bundle starts, in bytes from the start of the file.
        offset: u64,
        /// Its stated size without compression.
        size: u64,
        /// What is left of the limit, in bytes.
        limit: u64,
    },
    /// What was compressed is no sound bundle. The offsets of the source count from the start of what was decompressed.
    #[error("in the bundle compressed at offset {offset:#x}: {source}")]
    Compressed {
        /// Where the compressed bundle starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong with the bundle inside.
        source: Box<BundleError>,
    },
}

/// Why images could not be written as an offload bundle.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleWriteError {
    /// There is nothing to write.
    #[error("a bundle needs at least one image")]
    Empty,
    /// Two entries mean the same.
    #[error("the bundle entries '{first}' and '{second}' are the same: no loader could choose between them")]
    Duplicate {
        /// The id of one.
        first: String,
        /// The id of the other.
        second: String,
    },
    /// Two entries for one AMD chip, of which one leaves a feature open that the other sets.
    #[error(transparent)]
    Ambiguous(TargetError),
    /// The alignment cannot be used.
    #[error("images of a bundle cannot be aligned to {alignment} bytes: give a power of two from 1 to 2097152")]
    Alignment {
        /// What was asked for, in bytes.
        alignment: u32,
    },
    /// A text contains a line that ends or begins an entry.
    #[error(
        "the text for '{id}' has a line that marks an entry of a bundle at offset {offset:#x}: bundles do not nest"
    )]
    Marker {
        /// The id of the entry.
        id: String,
        /// Where the line starts, in bytes from the start of the text.
        offset: usize,
    },
    /// The compression level is none that the method has.
    #[error("{method} has no compression level {level}: give one from {least} to {most}")]
    Level {
        /// "zlib" or "zstd".
        method: &'static str,
        /// What was asked for.
        level: i32,
        /// The least level.
        least: i32,
        /// The greatest level.
        most: i32,
    },
    /// Compressed bundles of version 1 and 2 have sizes of 32 bits.
    #[error("the bundle has {bytes} bytes, more than version {version} of compressed bundles can say: use version 3")]
    TooLarge {
        /// The version asked for.
        version: u16,
        /// Its size, in bytes.
        bytes: u64,
    },
    /// The compressor failed.
    #[error("compressing the bundle: {0}")]
    Compress(#[source] std::io::Error),
}
