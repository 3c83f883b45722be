//! What can be wrong with a toolkit.

use std::path::PathBuf;
use std::time::Duration;

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

    /// The program could not be started.
    #[error("cannot run {} to ask for its version: {source}", tool.display())]
    ToolNotStarted {
        /// The program.
        tool: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },

    /// The program did not end in time and was stopped.
    #[error("{} did not say its version within {} s and was stopped", tool.display(), limit.as_secs_f32())]
    ToolTimedOut {
        /// The program.
        tool: PathBuf,
        /// How long it was waited for.
        limit: Duration,
    },

    /// The program ended with an error instead of saying its version.
    #[error("{} did not say its version when asked with --version ({status}); it said: {}", tool.display(), said(output))]
    ToolFailed {
        /// The program.
        tool: PathBuf,
        /// Its exit status, in words.
        status: String,
        /// What it printed, at most 64 KiB.
        output: String,
    },

    /// The program ended with an error, or said something else.
    #[error("{} did not say a version of CUDA when asked with --version ({status}); it said: {}", tool.display(), said(output))]
    ToolVersionUnknown {
        /// The program.
        tool: PathBuf,
        /// Its exit status, in words.
        status: String,
        /// What it printed, at most 64 KiB.
        output: String,
    },
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

fn said(output: &str) -> &str {
    let output = output.trim();
    if output.is_empty() { "nothing" } else { output }
}
