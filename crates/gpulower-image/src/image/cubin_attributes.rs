//! The attribute records of `.nv.info*` and `.nv.compat` sections of a cubin.
//!
//! The layout is not documented; it was established by pairing bytes with `cuobjdump -elf` of CUDA 11.8 to
//! 13.0. A record is: format (u8), attribute (u8), then a value whose size the format gives.

use super::elf;
use crate::ReadError;

/// Attributes of `.nv.info`, whose first word is a symbol index.
pub(super) const REGCOUNT: u8 = 0x2f;
pub(super) const FRAME_SIZE: u8 = 0x11;
pub(super) const MIN_STACK_SIZE: u8 = 0x12;

/// Attributes of `.nv.info.KERNEL`.
pub(super) const MAX_THREADS: u8 = 0x05;
pub(super) const REQNTID: u8 = 0x10;
pub(super) const KPARAM_INFO: u8 = 0x17;
pub(super) const CBANK_PARAM_SIZE: u8 = 0x19;
pub(super) const CTA_PER_CLUSTER: u8 = 0x3d;
pub(super) const MAX_CLUSTER_RANK: u8 = 0x3f;
/// Parameters of kernels whose parameter block is larger than 4 KB.
pub(super) const KPARAM_INFO_V2: u8 = 0x45;
pub(super) const NUM_BARRIERS: u8 = 0x4c;

/// Attribute of `.nv.compat`: 1 for an architecture-specific target (`sm_90a`).
pub(super) const COMPAT_ACCELERATOR_TARGET: u8 = 0x09;

/// One record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribute<'data> {
    pub(super) kind: u8,
    pub(super) value: &'data [u8],
    /// Where the value starts in the file.
    pub(super) offset: u64,
    section: &'data str,
}

impl Attribute<'_> {
    /// The `index`-th 32-bit word of the value.
    pub(super) fn word(&self, index: usize) -> Result<u32, ReadError> {
        let at = index.saturating_mul(4);
        match self.value.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
            Some(&bytes) => Ok(u32::from_le_bytes(bytes)),
            None => Err(self.too_short(at + 4)),
        }
    }

    /// A 16-bit number at byte `at` of the value.
    pub(super) fn half(&self, at: usize) -> Result<u16, ReadError> {
        match self.value.get(at..).and_then(|rest| rest.first_chunk::<2>()) {
            Some(&bytes) => Ok(u16::from_le_bytes(bytes)),
            None => Err(self.too_short(at + 2)),
        }
    }

    /// The first byte of the value.
    pub(super) fn byte(&self) -> Result<u8, ReadError> {
        self.value.first().copied().ok_or_else(|| self.too_short(1))
    }

    /// Three words: a shape.
    pub(super) fn shape(&self) -> Result<[u32; 3], ReadError> {
        Ok([self.word(0)?, self.word(1)?, self.word(2)?])
    }

    fn too_short(&self, needed: usize) -> ReadError {
        elf::damaged(
            format!("attribute {:#04x} of section `{}`", self.kind, self.section),
            self.offset,
            format!("{} bytes where at least {needed} are needed", self.value.len()),
        )
    }
}

/// Reads all records of a section whose contents start at `start` in the file.
pub(super) fn read<'data>(
    section: &'data str,
    contents: &'data [u8],
    start: u64,
) -> Result<Vec<Attribute<'data>>, ReadError> {
    let mut attributes = Vec::new();
    let mut position = 0usize;
    while let Some(rest) = contents.get(position..).filter(|rest| !rest.is_empty()) {
        let offset = start.saturating_add(position as u64);
        let damaged = |problem: String| elf::damaged(format!("an attribute of section `{section}`"), offset, problem);
        let Some((&[format, kind, low, high], after)) = rest.split_first_chunk::<4>() else {
            return Err(damaged(format!(
                "{} bytes are left where a record has at least 4",
                rest.len()
            )));
        };
        let (value, size) = match format {
            // No value; one byte; one 16-bit number: all in the record's second half.
            1..=3 => (rest.get(2..4).unwrap_or_default(), 4),
            4 => {
                let length = usize::from(u16::from_le_bytes([low, high]));
                let value = after.get(..length).ok_or_else(|| {
                    damaged(format!(
                        "a value of {length} bytes reaches behind the end of the section"
                    ))
                })?;
                (value, 4 + length)
            }
            _ => return Err(damaged(format!("unknown record format {format}"))),
        };
        attributes.push(Attribute {
            kind,
            value,
            offset: offset.saturating_add(if format == 4 { 4 } else { 2 }),
            section,
        });
        position += size;
    }
    Ok(attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_four_formats() {
        let bytes = [
            1, 0x50, 0, 0, // no value
            2, 0x4c, 3, 0, // a byte
            3, 0x19, 0x34, 0x12, // a 16-bit number
            4, 0x2f, 8, 0, 7, 0, 0, 0, 31, 0, 0, 0, // two words
        ];
        let read = read(".nv.info", &bytes, 0x100).unwrap();
        assert_eq!(read.len(), 4);
        assert_eq!(read[1].byte().unwrap(), 3);
        assert_eq!(read[2].half(0).unwrap(), 0x1234);
        assert_eq!((read[3].word(0).unwrap(), read[3].word(1).unwrap()), (7, 31));
        let error = read[3].word(2).unwrap_err().to_string();
        assert!(
            error.contains("attribute 0x2f") && error.contains("offset 0x110"),
            "{error}"
        );
        assert_eq!(read[3].offset, 0x110);
        assert!(error.contains("8 bytes where at least 12 are needed"), "{error}");
        let error = read[3].half(7).unwrap_err().to_string();
        assert!(error.contains("8 bytes where at least 9 are needed"), "{error}");
    }

    #[test]
    fn damaged_records_name_their_offset() {
        let error = read(".nv.info", &[1, 2, 0, 0, 9, 0, 0, 0], 0x40)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("unknown record format 9") && error.contains("offset 0x44"),
            "{error}"
        );
        let error = read(".nv.info", &[4, 2, 9, 0, 1], 0x40).unwrap_err().to_string();
        assert!(error.contains("a value of 9 bytes reaches behind"), "{error}");
        let error = read(".nv.info", &[4, 2], 0x40).unwrap_err().to_string();
        assert!(error.contains("2 bytes are left"), "{error}");
    }
}
