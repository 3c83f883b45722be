//! What can be wrong with a target, as a value that says what to do about it.

/// A target, or something asked of a target, that cannot be honoured: a chip, a list of chips, a PTX policy, a plan of
/// images, flags in nvcc's spelling, a device.
///
/// Always the user's to mend: the message names what was written and what would be accepted instead. Names quoted from
/// input are escaped and shortened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct TargetError {
    /// What kind of problem it is.
    pub problem: TargetProblem,
    /// For an unknown chip, names from the tables that resemble it, most similar first; may be empty.
    pub nearest: Vec<String>,
    message: String,
}

/// The kinds of [`TargetError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TargetProblem {
    /// It is not written as it has to be.
    Malformed,
    /// A chip that is in no table.
    UnknownChip,
    /// A chip, a version or a feature that does not exist here, or that the chip or the tool at hand does not have.
    Unsupported,
    /// Things that exclude each other.
    Conflict,
}

impl TargetError {
    fn new(problem: TargetProblem, message: impl Into<String>) -> Self {
        Self {
            problem,
            nearest: Vec::new(),
            message: message.into(),
        }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::new(TargetProblem::Malformed, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(TargetProblem::Unsupported, message)
    }

    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(TargetProblem::Conflict, message)
    }

    pub(super) fn unknown_chip(name: &str, nearest: Vec<String>) -> Self {
        let message = format!("unknown chip '{}'{}", shown(name), did_you_mean(&nearest));
        Self {
            nearest,
            ..Self::new(TargetProblem::UnknownChip, message)
        }
    }
}

/// Characters of input that a message repeats at most.
const SHOWN: usize = 64;

/// `text` in a form that is safe in a message of one line.
pub(super) fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        out.push_str("...");
    }
    out
}

/// `a`, `a or b`, `a, b or c`.
pub(super) fn either<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    match items.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

fn did_you_mean(nearest: &[String]) -> String {
    if nearest.is_empty() {
        ": NVIDIA chips are written sm_90 (or compute_90 for PTX alone), AMD chips gfx942; \
         `gpulower targets` lists all"
            .to_owned()
    } else {
        format!(": did you mean {}?", either(nearest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_input_is_short_and_printable() {
        assert_eq!(shown("sm_90"), "sm_90");
        assert_eq!(shown("a\n\u{1b}b"), "a\\n\\u{1b}b");
        let long = shown(&"x".repeat(1000));
        assert_eq!(long.len(), SHOWN + 3);
        assert!(long.ends_with("..."));
    }

    #[test]
    fn lists_read_like_sentences() {
        assert_eq!(either::<u32>(&[]), "");
        assert_eq!(either(&[64]), "64");
        assert_eq!(either(&["a", "b"]), "a or b");
        assert_eq!(either(&["a", "b", "c"]), "a, b or c");
    }
}
