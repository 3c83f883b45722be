//! The text form of [`super::bundle`]: each entry between two comments, which name it.
//!
//! ```text
//! (empty line)
//! ; __CLANG_OFFLOAD_BUNDLE____START__ <id>
//! <text>
//! ; __CLANG_OFFLOAD_BUNDLE____END__ <id>
//! ```

use std::collections::HashSet;
use std::ops::Range;

use super::bundle::{BundleImage, Place};
use super::bundle_error::{BundleError, BundleWriteError};

/// What begins a comment in the language of a text bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[non_exhaustive]
pub enum Comment {
    /// `;`: LLVM IR.
    #[serde(rename = ";")]
    Semicolon,
    /// `#`: assembly and dependencies.
    #[serde(rename = "#")]
    Hash,
    /// `//`: preprocessed source.
    #[serde(rename = "//")]
    Slashes,
}

impl Comment {
    const ALL: [Self; 3] = [Self::Semicolon, Self::Hash, Self::Slashes];

    /// What begins the comment.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Semicolon => ";",
            Self::Hash => "#",
            Self::Slashes => "//",
        }
    }

    /// The comment for a file type of `clang-offload-bundler`, which is also the extension of such files: `ll`, `s`, `d`,
    /// `i`, `ii`, `cui`, `hipi`. The other types are binary.
    #[must_use]
    pub fn of_type(extension: &str) -> Option<Self> {
        match extension {
            "ll" => Some(Self::Semicolon),
            "s" | "d" => Some(Self::Hash),
            "i" | "ii" | "cui" | "hipi" => Some(Self::Slashes),
            _ => None,
        }
    }

    /// The line break and the beginning of the comment that opens an entry.
    fn start(self) -> Vec<u8> {
        format!("\n{} __CLANG_OFFLOAD_BUNDLE____START__ ", self.prefix()).into_bytes()
    }

    /// The line break and the beginning of the comment that closes an entry.
    fn end(self) -> Vec<u8> {
        format!("\n{} __CLANG_OFFLOAD_BUNDLE____END__ ", self.prefix()).into_bytes()
    }
}

pub(super) fn write(images: &[BundleImage<'_>], comment: Comment) -> Result<Vec<u8>, BundleWriteError> {
    let (start, end) = (comment.start(), comment.end());
    let mut bytes = Vec::new();
    for image in images {
        let text = bytes.len();
        bytes.extend(&start);
        bytes.extend(image.id.as_str().as_bytes());
        bytes.push(b'\n');
        let text = text + start.len() + image.id.as_str().len() + 1;
        bytes.extend(image.bytes);
        // The line break before the text belongs to a mark that the text begins with.
        let written = bytes.get(text - 1..).unwrap_or_default();
        if let Some(offset) = find(written, &start).or_else(|| find(written, &end)) {
            let id = image.id.to_string();
            return Err(BundleWriteError::Marker { id, offset });
        }
        bytes.extend(&end);
        bytes.extend(image.id.as_str().as_bytes());
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// The comment of the text bundle that `bytes` begin with, if they do.
pub(super) fn comment_of(bytes: &[u8]) -> Option<Comment> {
    Comment::ALL
        .into_iter()
        .find(|comment| bytes.starts_with(&comment.start()))
}

/// Reads the bundle at the start of `bytes`, which lie at `base` of the file: its size, and its entries.
pub(super) fn read(bytes: &[u8], base: u64, comment: Comment) -> Result<(u64, Vec<Place>), BundleError> {
    let text = Text { bytes, base };
    let (start, end) = (comment.start(), comment.end());
    let (mut ids, mut entries) = (HashSet::new(), Vec::new());
    let mut position = 0;
    while text.tail(position).starts_with(&start) {
        let (id, content) = text.id(position + start.len())?;
        let length = find(text.tail(content), &end).ok_or_else(|| {
            let problem = format!("no line `{}` follows", end.trim_ascii().escape_ascii());
            text.damaged("an entry", position, problem)
        })?;
        // The line break before the closing comment is not the text's.
        let close = content.saturating_add(length);
        let image = content..close;
        if let Some(nested) = find(text.bytes.get(image.clone()).unwrap_or_default(), &start) {
            let problem = format!(
                "another one starts in it at {:#x}",
                text.offset(content.saturating_add(nested))
            );
            return Err(text.damaged("an entry", position, problem));
        }
        let (closing_id, next) = text.id(close.saturating_add(end.len()))?;
        if text.bytes.get(id.clone()) != text.bytes.get(closing_id.clone()) {
            let written = text.bytes.get(closing_id.clone()).unwrap_or_default().escape_ascii();
            return Err(text.damaged("an entry", position, format!("it is closed as '{written}'")));
        }
        if !ids.insert(text.bytes.get(id.clone())) {
            return Err(text.damaged("an entry", position, "its id came before".to_owned()));
        }
        entries.push(Place { id, bytes: image });
        position = next;
    }
    let rest = text.tail(position);
    let end = if rest.iter().all(u8::is_ascii_whitespace) {
        bytes.len()
    } else {
        position
    };
    Ok((end as u64, entries))
}

/// A text bundle, and where it starts in the file.
struct Text<'data> {
    bytes: &'data [u8],
    base: u64,
}

impl<'data> Text<'data> {
    fn tail(&self, position: usize) -> &'data [u8] {
        self.bytes.get(position..).unwrap_or_default()
    }

    fn offset(&self, position: usize) -> u64 {
        self.base.saturating_add(position as u64)
    }

    fn damaged(&self, what: &'static str, position: usize, problem: String) -> BundleError {
        BundleError::Damaged {
            what,
            offset: self.offset(position),
            problem,
        }
    }

    /// The id from `position` to the end of the line, and where the next line starts.
    fn id(&self, position: usize) -> Result<(Range<usize>, usize), BundleError> {
        let damaged = |problem: &str| self.damaged("the id of an entry", position, problem.to_owned());
        let rest = self.tail(position);
        let length = rest
            .iter()
            .position(|&byte| byte == b'\n')
            .ok_or_else(|| damaged("its line does not end"))?;
        let line = rest.get(..length).unwrap_or_default();
        match std::str::from_utf8(line) {
            Err(_) => Err(damaged("it is not UTF-8")),
            Ok("") => Err(damaged("it is empty")),
            Ok(_) => Ok((
                position..position.saturating_add(length),
                position.saturating_add(length + 1),
            )),
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}
