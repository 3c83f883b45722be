//! Why device code was not linked.

use std::fmt::{Display, Write};

use crate::{ReadError, error::ErrorKind, image::symbols::SymbolKind};

/// Why device code was not linked: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceLinkError {
    /// The inputs, the options or what came of them do not fit.
    #[error("{message}")]
    Refused {
        /// What kind of failure it is.
        kind: ErrorKind,
        /// What is wrong.
        message: String,
    },
    /// The linker refused.
    #[error("{tool} could not link {}: {log}", inputs.join(", "))]
    Tool {
        /// The linker and its version.
        tool: String,
        /// Names of the inputs.
        inputs: Vec<String>,
        /// What it said.
        log: String,
    },
}

impl DeviceLinkError {
    pub(super) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::Refused { kind, message }
    }

    /// The code does not fit together.
    pub(super) fn link(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Link, message)
    }

    /// Something is wrong with an input; what is inside of a container is `CONTAINER(MEMBER)`.
    pub(super) fn input(name: &str, problem: impl Display) -> Self {
        Self::link(format!("{name} cannot be linked: {problem}"))
    }

    /// What the linker made cannot be read.
    pub(super) fn unreadable(what: &str, error: &ReadError) -> Self {
        Self::new(ErrorKind::Image, format!("the {what} made cannot be read: {error}"))
    }

    pub(super) fn duplicates(symbols: &[DuplicateSymbol]) -> Self {
        let mut text = match symbols.len() {
            1 => "a symbol is defined more than once:".to_owned(),
            count => format!("{count} symbols are defined more than once:"),
        };
        for symbol in symbols {
            let kind = symbol.kind.map_or("symbol", SymbolKind::name);
            let _ = write!(text, "\n  {kind} {} in {}", symbol.name, symbol.inputs.join(" and "));
        }
        text.push_str(
            "\nKeep one definition and declare it elsewhere, or make those private that only their own file uses.",
        );
        Self::new(ErrorKind::Symbols, text)
    }

    pub(super) fn unresolved(symbols: &[MissingSymbol]) -> Self {
        let mut text = match symbols.len() {
            1 => "unresolved symbol:".to_owned(),
            count => format!("{count} unresolved symbols:"),
        };
        for symbol in symbols {
            let _ = write!(text, "\n  {}", symbol.name);
            if !symbol.needed_by.is_empty() {
                let _ = write!(text, " (needed by {})", symbol.needed_by.join("; by "));
            }
        }
        text.push_str("\nGive the file that defines ");
        text.push_str(if symbols.len() == 1 { "it." } else { "them." });
        Self::new(ErrorKind::Symbols, text)
    }
}

/// A symbol with more than one definition.
pub(super) struct DuplicateSymbol {
    pub name: String,
    /// What it is, where that is known.
    pub kind: Option<SymbolKind>,
    /// The inputs that define it, in their order.
    pub inputs: Vec<String>,
}

/// A symbol that nothing defines.
pub(super) struct MissingSymbol {
    pub name: String,
    /// Who needs it: an input, or functions and sections of data of one.
    pub needed_by: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_everything() {
        let duplicate = |name: &str, kind| DuplicateSymbol {
            name: name.to_owned(),
            kind,
            inputs: vec!["a.cubin".to_owned(), "b.ptx".to_owned()],
        };
        assert_eq!(
            DeviceLinkError::duplicates(&[duplicate("f", Some(SymbolKind::Function)), duplicate("x", None)])
                .to_string(),
            "2 symbols are defined more than once:\n  function f in a.cubin and b.ptx\n  symbol x in a.cubin and b.ptx\n\
             Keep one definition and declare it elsewhere, or make those private that only their own file uses."
        );
        let missing = MissingSymbol {
            name: "scale".to_owned(),
            needed_by: vec!["k, l of a.ptx".to_owned(), "b.cubin".to_owned()],
        };
        assert_eq!(
            DeviceLinkError::unresolved(&[missing]).to_string(),
            "unresolved symbol:\n  scale (needed by k, l of a.ptx; by b.cubin)\nGive the file that defines it."
        );
    }
}
