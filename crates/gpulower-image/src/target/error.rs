//! What can be wrong with a target, as a value that says what to do about it.

use super::{CodeObjectVersion, CudaRelease, PtxIsa};
use thiserror::Error;

/// A target, or something asked of a target, that cannot be honoured.
///
/// Always the user's to mend: each message names what was written and what would be
/// accepted instead. Names quoted from input are escaped and shortened.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// A target name without any characters.
    #[error("empty target name: write a chip such as sm_90 or gfx942")]
    Empty,

    /// Nothing at all in a list of targets.
    #[error("empty list of targets: name at least one chip, such as sm_90 or gfx942")]
    EmptyList,

    /// Two commas in a row, or one at an end.
    #[error("target {position} of the list '{list}' is empty: remove the extra comma")]
    EmptyListEntry {
        /// Position in the list, counted from 1.
        position: usize,
        /// The whole list as written.
        list: String,
    },

    /// A chip name that is in no table.
    #[error("unknown chip '{name}'{}", did_you_mean(nearest))]
    UnknownChip {
        /// The name as written.
        name: String,
        /// Names from the tables that resemble it, most similar first; may be empty.
        nearest: Vec<String>,
    },

    /// A chip that LLVM knows or once knew, and that is left out on purpose.
    #[error("chip '{name}' is not supported: {reason}")]
    ExcludedChip {
        /// The name as written.
        name: String,
        /// Why, and what to use instead.
        reason: &'static str,
    },

    /// Something after the chip that is not part of any target.
    #[error("'{text}' is not a target: {reason}")]
    MalformedTarget {
        /// The target as written.
        text: String,
        /// What is wrong, and how it is written.
        reason: &'static str,
    },

    /// A PTX ISA version that cannot be read.
    #[error("'{text}' is not a PTX ISA version: write it as 8.3, 83 or ptx83")]
    MalformedPtxIsa {
        /// The version as written.
        text: String,
    },

    /// A PTX ISA version that never existed, or that LLVM leaves out.
    #[error(
        "LLVM 22 does not know PTX {asked}: the nearest versions it writes are {}",
        either(nearest)
    )]
    UnknownPtxIsa {
        /// The version asked for.
        asked: PtxIsa,
        /// The known versions before and after it.
        nearest: Vec<PtxIsa>,
    },

    /// A PTX ISA version later than all that LLVM writes.
    #[error("LLVM 22 does not know PTX {asked}: the newest it writes is {newest}; ask for {newest} or older")]
    PtxNewerThanLlvm {
        /// The version asked for.
        asked: PtxIsa,
        /// The newest version LLVM writes.
        newest: PtxIsa,
    },

    /// A PTX ISA version without the chip.
    #[error(
        "PTX {asked} does not support {chip}: it needs {minimum} or newer; ask for {minimum} or leave the version out"
    )]
    PtxTooOld {
        /// The version asked for.
        asked: PtxIsa,
        /// The chip's name.
        chip: String,
        /// The first version that has the chip.
        minimum: PtxIsa,
    },

    /// An explicit PTX ISA version which the tool at hand cannot read.
    #[error(
        "PTX {asked} is newer than the tool at hand, which reads up to PTX {tool}: ask for {tool} or older, or use a newer CUDA toolkit"
    )]
    PtxNewerThanTool {
        /// The version asked for.
        asked: PtxIsa,
        /// The newest version the tool reads.
        tool: PtxIsa,
    },

    /// A chip whose first PTX ISA version the tool at hand cannot read.
    #[error(
        "{chip} needs PTX {minimum}, and the tool at hand reads up to PTX {tool}: use CUDA {} or newer, or emit PTX only",
        CudaRelease::first_with(*minimum).map_or_else(|| "of a later release".to_owned(), |r| r.to_string())
    )]
    ChipNewerThanTool {
        /// The chip's name.
        chip: String,
        /// The first version that has the chip.
        minimum: PtxIsa,
        /// The newest version the tool reads.
        tool: PtxIsa,
    },

    /// The target's name says one PTX ISA version, an option another.
    #[error("target {target} names PTX {named}, but PTX {asked} was asked for: leave one of the two out")]
    ConflictingPtx {
        /// The target as written.
        target: String,
        /// The version in the target's name.
        named: PtxIsa,
        /// The version asked for beside it.
        asked: PtxIsa,
    },

    /// A chip that a CUDA release no longer compiles for.
    #[error(
        "CUDA {release} no longer compiles for {chip}: its last release is {last}; {}",
        dropped_advice(*first, *last, renamed)
    )]
    DroppedByCuda {
        /// The chip's name.
        chip: String,
        /// The release at hand.
        release: CudaRelease,
        /// The first release that compiles for the chip.
        first: CudaRelease,
        /// The last release that compiles for the chip.
        last: CudaRelease,
        /// The chip's name in the release at hand, where it has another.
        renamed: Option<String>,
    },

    /// A chip that a CUDA release does not know yet.
    #[error("CUDA {release} does not know {chip} yet: use CUDA {first} or newer, or emit PTX only")]
    NotYetInCuda {
        /// The chip's name.
        chip: String,
        /// The release at hand.
        release: CudaRelease,
        /// The first release that compiles for the chip.
        first: CudaRelease,
    },

    /// A CUDA release that cannot be read.
    #[error("'{text}' is not a CUDA release: write it as 12.9")]
    MalformedCudaRelease {
        /// The release as written.
        text: String,
    },

    /// Text after a colon that is not `name+` or `name-`.
    #[error("'{feature}' in '{target}' is not a target ID feature: write its name followed by + or -, such as xnack-")]
    MalformedFeature {
        /// The target as written.
        target: String,
        /// The part that is wrong.
        feature: String,
    },

    /// A target ID feature that the chip does not have.
    #[error("{chip} has no target ID feature '{feature}': {}", has_features(supported))]
    UnsupportedFeature {
        /// The chip's name.
        chip: String,
        /// The feature as written, without its sign.
        feature: String,
        /// The features that the chip has.
        supported: Vec<&'static str>,
    },

    /// One target ID feature twice with the same sign.
    #[error("'{target}' names {feature} twice: leave one out")]
    DuplicateFeature {
        /// The target as written.
        target: String,
        /// The feature's name.
        feature: &'static str,
    },

    /// One target ID feature both on and off.
    #[error(
        "'{target}' asks for both {feature}+ and {feature}-: choose one, or leave it out for code that runs in either setting"
    )]
    ContradictoryFeature {
        /// The target as written.
        target: String,
        /// The feature's name.
        feature: &'static str,
    },

    /// Two targets of one chip that no loader could choose between.
    #[error(
        "targets {first} and {second} cannot be in one binary: both match a device with {feature} set; name {feature} in all targets of the chip, or in none"
    )]
    AmbiguousTargets {
        /// The target that leaves the feature open.
        first: String,
        /// The target that sets it.
        second: String,
        /// The feature's name.
        feature: &'static str,
    },

    /// A wave size that the chip cannot run.
    #[error("{chip} cannot run waves of {asked} lanes: it has {}", either(supported))]
    UnsupportedWaveSize {
        /// The chip's name.
        chip: String,
        /// Lanes asked for.
        asked: u32,
        /// Lanes that the chip can run, its default first.
        supported: Vec<u32>,
    },

    /// A code object version that cannot be read.
    #[error("'{text}' is not a code object version: it is 4, 5 or 6")]
    MalformedCodeObjectVersion {
        /// The version as written.
        text: String,
    },

    /// A code object version that cannot express the chip.
    #[error(
        "{chip} is a generic target, which exists in code object version {minimum} and newer, not in version {asked}: ask for {minimum} or leave the version out, or name a chip of the family"
    )]
    CodeObjectTooOld {
        /// The chip's name.
        chip: String,
        /// The version asked for.
        asked: CodeObjectVersion,
        /// The first version that has the chip.
        minimum: CodeObjectVersion,
    },
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
fn either<T: ToString>(items: &[T]) -> String {
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

fn has_features(supported: &[&str]) -> String {
    if supported.is_empty() {
        "it has none, write the chip alone".to_owned()
    } else {
        format!("it has {}", supported.join(" and "))
    }
}

fn dropped_advice(first: CudaRelease, last: CudaRelease, renamed: &Option<String>) -> String {
    let old = format!("use CUDA {first} to {last}, or emit PTX only");
    match renamed {
        Some(name) => format!("it is called {name} now; name that, or {old}"),
        None => old,
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
