//! Places in the source.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place in the source, as MLIR knows it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Location {
    /// As MLIR writes it, such as `"kernel.mlir":3:5` or `callsite("a.py":1:2 at "b.py":3:4)`.
    mlir: Box<str>,
    position: Option<Position>,
    /// Whether there is more to it than the position.
    has_more: bool,
}

/// A position in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) file: String,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Location {
    /// What MLIR writes as `mlir`, and the position in it. `has_more`: MLIR's text says more than that.
    pub(crate) fn new(mlir: String, position: Option<Position>, has_more: bool) -> Self {
        Self {
            mlir: mlir.into(),
            position,
            has_more,
        }
    }

    /// A position in a file.
    pub(crate) fn in_file(file: &str, line: u32, column: u32) -> Self {
        let mut mlir = String::from('"');
        for byte in file.bytes() {
            // As llvm::printEscapedString has it.
            match byte {
                b'\\' => mlir.push_str("\\\\"),
                b' '..=b'~' if byte != b'"' => mlir.push(char::from(byte)),
                _ => mlir.push_str(&format!("\\{byte:02X}")),
            }
        }
        let position = Position {
            file: file.to_owned(),
            line,
            column,
        };
        Self::new(format!("{mlir}\":{line}:{column}"), Some(position), false)
    }

    /// The position behind `before`, which is the beginning of a file.
    pub(crate) fn after(file: &str, before: &[u8]) -> Self {
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = before.rsplit(|&byte| byte == b'\n').next().map_or(0, <[u8]>::len) + 1;
        let number = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self::in_file(file, number(line), number(column))
    }

    /// The file, where there is a position in one: the first one in a location of several, and of a call that of what was called.
    #[must_use]
    pub fn file(&self) -> Option<&str> {
        self.position.as_ref().map(|position| position.file.as_str())
    }

    /// The line, from 1 on; of a range, where it begins.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        self.position.as_ref().map(|position| position.line)
    }

    /// The column, from 1 on; of a range, where it begins.
    #[must_use]
    pub fn column(&self) -> Option<u32> {
        self.position.as_ref().map(|position| position.column)
    }

    /// As MLIR writes it.
    #[must_use]
    pub fn as_mlir(&self) -> &str {
        &self.mlir
    }

    /// Whether MLIR knows no place, and says so.
    pub(crate) fn is_unknown(&self) -> bool {
        &*self.mlir == "unknown"
    }
}

/// `kernel.mlir:3:5`, which editors follow, where it is a position or a range in a file; else as MLIR writes it.
impl fmt::Display for Location {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.position {
            Some(Position { file, line, column }) if !self.has_more => write!(formatter, "{file}:{line}:{column}"),
            _ => formatter.write_str(&self.mlir),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_in_files_read_as_editors_and_as_mlir_have_them() {
        let location = Location::in_file("a \"b\\\u{e9}.mlir", 3, 5);
        assert_eq!(
            (location.to_string().as_str(), location.as_mlir()),
            ("a \"b\\\u{e9}.mlir:3:5", "\"a \\22b\\\\\\C3\\A9.mlir\":3:5")
        );
        let after = Location::after("a", b"one\ntwo");
        assert_eq!((after.line(), after.column()), (Some(2), Some(4)));
        let called = "callsite(\"a\":1:2 at \"b\":3:4)";
        let position = Location::in_file("a", 1, 2).position;
        let location = Location::new(called.to_owned(), position, true);
        assert_eq!((location.to_string().as_str(), location.line()), (called, Some(1)));
    }
}
