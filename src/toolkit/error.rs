//! What can be wrong with a toolkit.

use std::path::PathBuf;

use super::part::{PartKind, Tried};

/// A part that is missing, or a tool that does not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ToolkitError {
    /// No place has the part.
    #[error("{kind} was not found; it is needed for {}.\n{}To get it: {}", kind.enables(), places(tried), kind.advice())]
    NotFound {
        /// The part that is missing.
        kind: PartKind,
        /// Every place that was looked at.
        tried: Vec<Tried>,
    },

    /// The toolkit that the caller named lacks the part. No other place was looked at.
    #[error(
        "the toolkit that was given, {}, has no {kind}; it is needed for {}.\n{}\
         Give the root of a complete toolkit, or none to have the usual places searched. To get the part: {}",
        given.display(), kind.enables(), places(tried), kind.advice()
    )]
    NotInGivenToolkit {
        /// The part that is missing.
        kind: PartKind,
        /// The toolkit that the caller named.
        given: PathBuf,
        /// Every place that was looked at, all of them below `given`.
        tried: Vec<Tried>,
    },

    /// The part is there and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// A program does not say its version.
    #[error("{0}")]
    Tool(String),
}

/// One line for each place.
fn places(tried: &[Tried]) -> String {
    if tried.is_empty() {
        return "No place to look was given.\n".to_owned();
    }
    let mut text = "Tried:\n".to_owned();
    for tried in tried {
        text.push_str("  ");
        text.push_str(&tried.to_string());
        text.push('\n');
    }
    text
}
