//! Numbers of NVIDIA's fat binary container, shared by its writer and its reader.
//!
//! The format is not documented. It was established from the output of fatbinary 13.0 and nvFatbin 12.4 to
//! 13.0, and the output of the writer is compared with theirs. All numbers are little-endian.

/// First four bytes of a container.
pub const MAGIC: [u8; 4] = 0xba55_ed50u32.to_le_bytes();
/// Container version.
pub(super) const VERSION: u16 = 1;
/// Size of the container's header: magic, version (u16), this size (u16), size of all entries (u64).
pub(super) const HEADER_SIZE: usize = 16;
/// Size of an entry's header without its extension.
pub(super) const ENTRY_HEADER_SIZE: usize = 64;
/// Third and fourth byte of an entry.
pub(super) const ENTRY_VERSION: u16 = 0x0101;
/// Everything in the container is padded to this.
pub(super) const ALIGNMENT: usize = 8;

pub(super) const KIND_PTX: u16 = 1;
pub(super) const KIND_ELF: u16 = 2;
pub(super) const KIND_LTO_IR: u16 = 8;

pub(super) const FLAG_64_BIT: u64 = 0x1;
pub(super) const FLAG_DEBUG: u64 = 0x2;
pub(super) const FLAG_LINUX: u64 = 0x10;
pub(super) const FLAG_LZ4: u64 = 0x2000;
pub(super) const FLAG_ZSTD: u64 = 0x8000;
pub(super) const FLAG_OBFUSCATED: u64 = 0x1_0000;
pub(super) const FLAG_ARCH_SPECIFIC: u64 = 0x10_0000;
pub(super) const FLAG_FAMILY: u64 = 0x20_0000;
pub(super) const FLAG_MERCURY: u64 = 0x100_0000;

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
pub(super) fn padded(size: usize) -> usize {
    size.next_multiple_of(ALIGNMENT)
}
