//! Places in the source.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place in the source, as MLIR knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Location {
    /// As MLIR writes it, such as `"kernel.mlir":3:5` or `callsite("a.py":1:2 at "b.py":3:4)`.
    mlir: String,
    position: Option<Position>,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
struct Position {
    file: String,
    line: u32,
    column: u32,
}

impl Location {
    /// Reads a location in MLIR's syntax, as the attribute prints itself. A position is known where it is one in a file.
    pub(crate) fn from_mlir(text: &str) -> Self {
        Self {
            position: position(text),
            mlir: text.to_owned(),
        }
    }

    /// The file, if it is a position in one.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.position.as_ref().map(|position| position.file.as_str())
    }

    /// The line, from 1 on, if it is a position in a file.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.position.as_ref().map(|position| position.line)
    }

    /// The column, from 1 on, if it is a position in a file.
    #[must_use]
    pub fn column(&self) -> Option<u32> {
        self.position.as_ref().map(|position| position.column)
    }

    /// As MLIR writes it.
    #[must_use]
    pub fn as_mlir(&self) -> &str {
        &self.mlir
    }
}

/// `kernel.mlir:3:5`, which editors follow, where it is a position in a file; else as MLIR writes it.
impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.position {
            Some(Position { file, line, column }) => write!(formatter, "{file}:{line}:{column}"),
            None => formatter.write_str(&self.mlir),
        }
    }
}

/// `"FILE":LINE:COLUMN`. MLIR escapes quotes, backslashes and unprintable characters as two hexadecimal digits.
fn position(text: &str) -> Option<Position> {
    let (file, rest) = text.strip_prefix('"')?.rsplit_once("\":")?;
    let (line, column) = rest.split_once(':')?;
    // An open quote inside means that the text is of several locations.
    if file.contains('"') {
        return None;
    }
    Some(Position {
        file: unescaped(file),
        line: line.parse().ok()?,
        column: column.parse().ok()?,
    })
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match (first, code) {
            (b'\\', Some(code)) => {
                bytes.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_in_files_are_numbers() {
        let location = Location::from_mlir("\"a b.mlir\":3:5");
        assert_eq!(
            (location.file(), location.line(), location.column()),
            (Some("a b.mlir"), Some(3), Some(5))
        );
        assert_eq!(location.to_string(), "a b.mlir:3:5");
        assert_eq!(Location::from_mlir("\"a\\22b\\5C\":1:2").file(), Some("a\"b\\"));
        for other in [
            "unknown",
            "callsite(\"a\":1:2 at \"b\":3:4)",
            "\"a\"(\"b\":1:2)",
            "\"a\":1:2 to :3:4",
        ] {
            let location = Location::from_mlir(other);
            assert_eq!((location.line(), location.to_string().as_str()), (None, other));
        }
    }
}
