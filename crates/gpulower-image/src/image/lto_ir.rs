//! The head of NVIDIA's LTO-IR, which says what it is for. The rest only NVIDIA's tools read.

/// First four bytes (observed with nvcc 13.0.88).
pub const MAGIC: [u8; 4] = [0xed, 0x43, 0x4e, 0x7f];

/// The number of the architecture that LTO-IR was made for, and whether it is for that one alone (`a`). Whether it is for a
/// family is not recorded.
///
/// Observed with nvcc 13.0.88: from offset 0x18 to the offset that is at 0x10 there are pairs of a tag and a value (u16
/// each) which a pair of zeros ends. Tag 1 is ten times the number of the architecture, tag 0x20 the variant, 1 for `a`.
#[must_use]
pub fn arch(bytes: &[u8]) -> Option<(u16, bool)> {
    const FIRST: usize = 0x18;
    let end: [u8; 4] = bytes.get(0x10..0x14)?.try_into().ok()?;
    let fields = bytes.get(FIRST..usize::try_from(u32::from_le_bytes(end)).ok()?)?;
    let (pairs, _) = fields.as_chunks::<4>();
    let field = |wanted: u16| {
        pairs
            .iter()
            .map(|&[a, b, c, d]| (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d])))
            .take_while(|&(tag, _)| tag != 0)
            .find(|&(tag, _)| tag == wanted)
            .map(|(_, value)| value)
    };
    Some((field(1)? / 10, field(0x20) == Some(1)))
}
