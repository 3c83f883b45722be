//! Numbers of NVIDIA's fat binary container, shared by its writer and its reader.
//!
//! The format is not documented. It was established from the output of fatbinary 13.0 and nvFatbin 12.4 to
//! 13.0, and the output of the writer is compared with theirs. All numbers are little-endian.

/// First four bytes of a container.
pub(super) const MAGIC: u32 = 0xba55_ed50;
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

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[non_exhaustive]
pub enum ImageKind {
    /// PTX text.
    Ptx,
    /// A cubin.
    Elf,
    /// NVVM LTO-IR. It is scrambled: only NVIDIA's tools read it.
    LtoIr,
    /// A kind this crate does not know.
    Other(u16),
}

/// How an entry's content is stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[non_exhaustive]
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

/// zstd as fatbinary 13.0 uses it by default.
pub const ZSTD_DEFAULT: Compression = Compression::Zstd { level: 5 };

/// Architecture of an entry: `sm_90a` is number 90, specific to that architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Arch {
    /// The number after `sm_`.
    pub number: u32,
    /// What the letter after it says.
    pub suffix: Suffix,
}

/// The letter after an architecture's number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub enum Suffix {
    /// None: runs on this and, within limits, later architectures.
    #[default]
    None,
    /// `a`: this architecture alone.
    ArchSpecific,
    /// `f`: this family of architectures.
    Family,
}

impl Arch {
    /// Reads `sm_90a`, `compute_90a` or `90a`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let digits = name
            .strip_prefix("sm_")
            .or_else(|| name.strip_prefix("compute_"))
            .unwrap_or(name);
        let (digits, suffix) = if let Some(digits) = digits.strip_suffix('a') {
            (digits, Suffix::ArchSpecific)
        } else if let Some(digits) = digits.strip_suffix('f') {
            (digits, Suffix::Family)
        } else {
            (digits, Suffix::None)
        };
        if !(2..=3).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let number = digits.parse().ok()?;
        Some(Self { number, suffix })
    }
}

impl std::fmt::Display for Arch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suffix = match self.suffix {
            Suffix::None => "",
            Suffix::ArchSpecific => "a",
            Suffix::Family => "f",
        };
        write!(formatter, "sm_{}{suffix}", self.number)
    }
}

/// Rounds up to the container's alignment.
pub(super) fn padded(size: usize) -> usize {
    size.next_multiple_of(ALIGNMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arch_names() {
        for name in ["sm_75", "sm_90a", "sm_100f", "sm_121a"] {
            assert_eq!(Arch::parse(name).unwrap().to_string(), name);
        }
        assert_eq!(Arch::parse("compute_90a"), Arch::parse("90a"));
        for name in [
            "", "sm_", "sm_a", "sm_9", "sm_90b", "gfx942", "sm_90af", "sm_+9", "sm_1000",
        ] {
            assert_eq!(Arch::parse(name), None, "{name}");
        }
    }
}
