//! What MLIR's reader of bytecode believes without looking: it writes beyond its tables of attributes and types where their
//! groups hold more than the tables do, and a heap that is broken cannot be mended (`AttrTypeReader::initialize` in
//! mlir/lib/Bytecode/Reader/BytecodeReader.cpp).
//!
//! Only that is looked at. Other damage is MLIR's to refuse, in its own words.

/// Identifiers of sections (`mlir/include/mlir/Bytecode/Encoding.h`).
const ATTRIBUTES_AND_TYPES: usize = 2;
const OFFSETS: usize = 3;
const SECTIONS: usize = 9;

/// What to do about bytecode that MLIR refused: who wrote it is in it. Nothing where that was this release.
pub(super) fn advice(bytes: &[u8]) -> Option<String> {
    let (version, producer) = producer(bytes)?;
    if producer.starts_with("MLIR22.") {
        return None;
    }
    let older = match version {
        0..=4 => "",
        _ => "as bytecode of version 4 (--emit-bytecode-version=4; in Python, write_bytecode(file, 4)), or ",
    };
    Some(format!(
        "; bytecode of version {version}, written by {producer}, and read by MLIR 22: write it there {older}as text in custom \
         form"
    ))
}

/// The version of bytecode, and what wrote it.
fn producer(bytes: &[u8]) -> Option<(u64, &str)> {
    let mut reader = Reader {
        bytes: bytes.strip_prefix(b"ML\xefR")?,
        at: 0,
    };
    let version = reader.number()?;
    let name = reader.bytes.get(reader.at..)?.split(|byte| *byte == 0).next()?;
    Some((version, std::str::from_utf8(name).ok()?))
}

/// Looks through bytecode before MLIR reads it: no group of attributes or types may be larger than what is left of its table,
/// and none of them may lie outside of its section.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let Some(sections) = sections(bytes) else { return Ok(()) };
    let (Some(contents), Some(offsets)) = (sections[ATTRIBUTES_AND_TYPES], sections[OFFSETS]) else {
        return Ok(());
    };
    let mut reader = Reader { bytes: offsets, at: 0 };
    let (Some(attributes), Some(types)) = (reader.number(), reader.number()) else {
        return Ok(());
    };
    let mut room = contents.len() as u64;
    for (what, mut entries) in [("attributes", attributes), ("types", types)] {
        while entries > 0 {
            // The number of a dialect, which MLIR compares with that of the dialects there are.
            let (Some(_), Some(group)) = (reader.number(), reader.number()) else {
                return Ok(());
            };
            if group > entries {
                return Err(format!(
                    "the bytecode is damaged: a group of {what} has {group} entries, where the table has room for {entries}"
                ));
            }
            entries -= group;
            for _ in 0..group {
                // The lowest bit says how the entry is encoded.
                let Some(size) = reader.number().map(|number| number >> 1) else {
                    return Ok(());
                };
                room = room.checked_sub(size).ok_or_else(|| {
                    format!("the bytecode is damaged: one of its {what} has {size} bytes, where the section has {room}")
                })?;
            }
        }
    }
    Ok(())
}

/// The contents of each section; `None` where MLIR refuses the file for its sections, or finds the end of it.
fn sections(bytes: &[u8]) -> Option<[Option<&[u8]>; SECTIONS]> {
    let mut reader = Reader { bytes, at: 4 };
    // The version, and the producer.
    reader.number()?;
    while reader.byte()? != 0 {}
    let mut sections = [None; SECTIONS];
    while reader.at < bytes.len() {
        let identifier = reader.byte()?;
        let length = reader.number()?;
        if identifier & 0x80 != 0 {
            let alignment = usize::try_from(reader.number()?)
                .ok()
                .filter(|number| number.is_power_of_two())?;
            reader.at = reader.at.checked_next_multiple_of(alignment)?;
        }
        let end = reader.at.checked_add(usize::try_from(length).ok()?)?;
        let section = sections.get_mut(usize::from(identifier & 0x7f))?;
        *section = Some(bytes.get(reader.at..end)?);
        reader.at = end;
    }
    Some(sections)
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A number of one to nine bytes: the zeros at the low end of the first say how many follow it.
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        let more = first.trailing_zeros() as usize;
        let rest = self.bytes.get(self.at..self.at.checked_add(more)?)?;
        self.at += more;
        let mut number = [0; 8];
        if more == 8 {
            number.copy_from_slice(rest);
            return Some(u64::from_le_bytes(number));
        }
        number[0] = first;
        number[1..=more].copy_from_slice(rest);
        Some(u64::from_le_bytes(number) >> (more + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bridge::mlir::bytecode,
        compiler::{context, parse},
    };

    fn example() -> Vec<u8> {
        let context = context();
        let text = b"gpu.module @m { gpu.func @k(%p: memref<?xf32>, %i: index) kernel { gpu.return } }";
        bytecode(&parse(&context, "k.mlir", text).expect("parses")).expect("written")
    }

    #[test]
    fn numbers_have_one_to_nine_bytes() {
        for (bytes, number) in [
            (&[0x01][..], 0),
            (&[0xff], 127),
            (&[0x02, 0x02], 128),
            (&[0x80, 1, 0, 0, 0, 0, 0, 0], 1),
            (&[0, 1, 0, 0, 0, 0, 0, 0, 0x80], 0x8000_0000_0000_0001),
        ] {
            let mut reader = Reader { bytes, at: 0 };
            assert_eq!(reader.number(), Some(number), "{bytes:?}");
            assert_eq!(reader.at, bytes.len());
            let cut = &bytes[..bytes.len() - 1];
            assert_eq!(Reader { bytes: cut, at: 0 }.number(), None, "{cut:?}");
        }
    }

    #[test]
    fn who_wrote_it_is_asked_for_another_form() {
        let ours = example();
        assert!(producer(&ours).is_some_and(|(version, name)| version == 6 && name.starts_with("MLIR22.")));
        assert_eq!(advice(&ours), None);
        let theirs = [&b"ML\xefR"[..], &[0x0d], b"MLIR23.0.0git\0"].concat();
        assert_eq!(producer(&theirs), Some((6, "MLIR23.0.0git")));
        let context = context();
        let refusal = parse(&context, "k.mlirbc", &theirs)
            .map(drop)
            .expect_err("is refused")
            .to_string();
        assert!(
            refusal.ends_with(
                "; bytecode of version 6, written by MLIR23.0.0git, and read by MLIR 22: write it there as bytecode of version 4 \
                 (--emit-bytecode-version=4; in Python, write_bytecode(file, 4)), or as text in custom form"
            ),
            "{refusal}"
        );
        assert_eq!(producer(b"ML\xefR"), None);
    }

    #[test]
    fn what_mlir_writes_is_whole() {
        let bytes = example();
        let sections = sections(&bytes).expect("has sections");
        assert!(sections[ATTRIBUTES_AND_TYPES].is_some() && sections[OFFSETS].is_some());
        assert_eq!(check(&bytes), Ok(()));
        // Cut off, it is MLIR's to refuse.
        for end in 4..bytes.len() {
            assert_eq!(check(&bytes[..end]), Ok(()));
        }
    }

    #[test]
    fn tables_that_are_too_small_are_refused() {
        let bytes = example();
        let offsets = sections(&bytes).expect("has sections")[OFFSETS].expect("has offsets");
        let start = offsets.as_ptr() as usize - bytes.as_ptr() as usize;
        let mut found = Vec::new();
        for at in start..start + offsets.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                if let Err(error) = check(&damaged) {
                    found.push(error.to_string());
                    let context = context();
                    let refusal = parse(&context, "k.mlirbc", &damaged).map(drop).expect_err("is refused");
                    assert_eq!(refusal.to_string(), error.to_string());
                }
            }
        }
        for words in [
            "a group of attributes has",
            "a group of types has",
            "one of its types has",
        ] {
            assert!(found.iter().any(|error| error.contains(words)), "{words}: {found:?}");
        }
    }
}
