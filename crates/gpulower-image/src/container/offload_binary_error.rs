//! What can be wrong with a file of [`super::offload_binary`].

/// Newest version that is read.
pub(super) const NEWEST_VERSION: u32 = 3;

/// Why a file could not be read as offload binaries.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OffloadBinaryError {
    /// A binary does not start with the magic number.
    #[error("not an offload binary: at offset {offset:#x} there is [{start}] instead of [10 ff 10 ad]")]
    NotOffloadBinary {
        /// Where a binary should start, in bytes from the start of the file.
        offset: u64,
        /// The bytes there, in hexadecimal.
        start: String,
    },
    /// The version is newer than this crate, or 0.
    #[error("the offload binary at offset {offset:#x} has version {version}; versions 1 to {NEWEST_VERSION} are read")]
    Version {
        /// Where the binary starts, in bytes from the start of the file.
        offset: u64,
        /// Its version.
        version: u32,
    },
    /// Something lies behind the end of the file, or of the binary.
    #[error(
        "truncated offload binary: {what} needs {size} bytes at offset {offset:#x}, but the {container} ends at {end:#x}"
    )]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// Where it starts, in bytes from the start of the file.
        offset: u64,
        /// How many bytes it has.
        size: u64,
        /// "file" or "binary".
        container: &'static str,
        /// Where that ends, in bytes from the start of the file.
        end: u64,
    },
    /// Something contradicts the format.
    #[error("damaged offload binary: {what} at offset {offset:#x}: {problem}")]
    Damaged {
        /// What was being read.
        what: &'static str,
        /// Where it starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// Something is wrong inside a compressed binary.
    #[error("in the inflated content of the offload binary at offset {offset:#x}: {source}")]
    Inflated {
        /// Where the binary starts, in bytes from the start of the file.
        offset: u64,
        /// What is wrong; its offsets count from the start of the inflated binary.
        source: Box<OffloadBinaryError>,
    },
}
