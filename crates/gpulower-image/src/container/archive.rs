//! Reads `ar` archives (`.a`): members with their names and places.
//!
//! Both dialects are read: GNU's (long names in the member `//`) and BSD's (`#1/LENGTH`, the name in front of the
//! contents). Symbol tables are passed over. Source: LLVM's `llvm/Object/Archive.h` and the manual page `ar(5)`.

use crate::ReadError;

/// The first bytes of an archive.
pub const MAGIC: &[u8] = b"!<arch>\n";
/// The first bytes of a thin archive, which names files and holds none.
pub const THIN_MAGIC: &[u8] = b"!<thin>\n";

/// Bytes of a member's header: name (16), date (12), owner (6), group (6), mode (8), size (10), end mark (2).
const HEADER_SIZE: usize = 60;

/// One member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member<'data> {
    /// Its name, with what is no UTF-8 replaced. It says nothing about where the member may be written.
    pub name: String,
    /// Where its contents start, in bytes from the start of the archive.
    pub offset: u64,
    /// Its contents.
    pub contents: &'data [u8],
}

/// Reads the members in their order. Those before a damaged one are kept: the error comes beside them.
pub fn read(bytes: &[u8]) -> (Vec<Member<'_>>, Option<ReadError>) {
    let mut members = Vec::new();
    let error = read_into(bytes, &mut members).err();
    (members, error)
}

fn read_into<'data>(bytes: &'data [u8], members: &mut Vec<Member<'data>>) -> Result<(), ReadError> {
    if bytes.starts_with(THIN_MAGIC) {
        return Err(ReadError::not_read(
            "a thin archive holds the names of its members and none of their bytes: name the object files, or make a full \
             archive of it with llvm-ar cqsL FULL.a THIN.a",
        ));
    }
    if !bytes.starts_with(MAGIC) {
        return Err(ReadError::other_format(
            "not an archive: it does not start with !<arch>",
        ));
    }
    let mut long_names: &[u8] = &[];
    let mut name_bytes = 0usize;
    let mut position = MAGIC.len();
    while let Some(rest) = bytes.get(position..).filter(|rest| !rest.is_empty()) {
        let damaged = |what: &str, problem: String| ReadError::damaged("archive", what, position as u64, problem);
        // Some writers pad the last member.
        if rest == b"\n" {
            break;
        }
        let Some(header) = rest.first_chunk::<HEADER_SIZE>() else {
            return Err(damaged(
                "a member's header",
                format!("{} bytes are left of {HEADER_SIZE}", rest.len()),
            ));
        };
        if !header.ends_with(b"`\n") {
            return Err(damaged("a member's header", "it does not end with its mark".to_owned()));
        }
        let field = header.as_slice();
        let size = decimal(field.get(48..58).unwrap_or_default())
            .ok_or_else(|| damaged("a member's header", "its size is no decimal number".to_owned()))?;
        let Some(contents) = rest.get(HEADER_SIZE..).and_then(|rest| rest.get(..size)) else {
            return Err(damaged(
                "a member",
                format!("it has {size} bytes, and {} are left", rest.len() - HEADER_SIZE),
            ));
        };
        let raw = field.get(..16).unwrap_or_default().trim_ascii_end();
        let (name, contents, skipped) = match raw {
            b"//" => {
                long_names = contents;
                (None, contents, 0)
            }
            b"/" | b"/SYM64/" => (None, contents, 0),
            [b'#', b'1', b'/', length @ ..] => {
                let length = decimal(length).filter(|&length| length <= contents.len());
                let length =
                    length.ok_or_else(|| damaged("a member's name", "it is longer than the member".to_owned()))?;
                let (name, contents) = contents.split_at(length);
                let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
                (
                    Some(name).filter(|name| !name.starts_with(b"__.SYMDEF")),
                    contents,
                    length,
                )
            }
            [b'/', offset @ ..] => {
                let name = decimal(offset)
                    .and_then(|offset| long_names.get(offset..))
                    .and_then(|names| names.split(|&byte| byte == b'\n').next())
                    .ok_or_else(|| {
                        damaged(
                            "a member's name",
                            "it lies outside of the table of long names".to_owned(),
                        )
                    })?;
                (Some(name.strip_suffix(b"/").unwrap_or(name)), contents, 0)
            }
            name => (Some(name.strip_suffix(b"/").unwrap_or(name)), contents, 0),
        };
        if let Some(name) = name {
            // Members that shared one long name could make a small file describe a large result.
            name_bytes += name.len();
            if name_bytes > bytes.len() {
                return Err(damaged("a member's name", "the names overlap".to_owned()));
            }
            members.push(Member {
                name: String::from_utf8_lossy(name).into_owned(),
                offset: (position + HEADER_SIZE + skipped) as u64,
                contents,
            });
        }
        // Members begin at even offsets.
        position = (position + HEADER_SIZE + size).next_multiple_of(2);
    }
    Ok(())
}

fn decimal(field: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(field).ok()?.trim_end();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
#[path = "../../tests/private/archive.rs"]
mod tests;
