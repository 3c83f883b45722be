//! What lowering refuses.

use super::lower::{LONGEST_VECTOR, MOST_ELEMENTS, MOST_INITIAL_BYTES, RESERVED_NAMES};
use crate::bridge::{LlvmError, mlir::MlirDiagnostic};

/// Why a module could not be lowered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum LowerError {
    /// MLIR's passes refused it.
    #[error("{}", first_message(.0))]
    Refused(Vec<MlirDiagnostic>),
    /// Operations that no conversion for this target knows.
    #[error("cannot lower {} for {target}: the first has the types {types}{}", .names.join(", "), lowered_hint(.names))]
    Unsupported {
        /// The operations' names, each once.
        names: Vec<String>,
        /// Types of the operands and results of the first of them in the module.
        types: String,
        /// The target.
        target: String,
        /// Where the first of them is, in MLIR's syntax.
        location: String,
    },
    /// An operation of another vendor's dialect.
    #[error("{name} cannot be compiled for {target}: {advice}")]
    Foreign {
        /// The operation.
        name: String,
        /// The target.
        target: String,
        /// What to do.
        advice: &'static str,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A function that states what no launch can have.
    #[error("the kernel {kernel} cannot be launched on {target}: {reason}")]
    Contract {
        /// The function.
        kernel: String,
        /// What it states.
        reason: String,
        /// The target.
        target: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A conversion with a rounding mode that nothing computes.
    #[error(
        "{name} to {kind} cannot round {mode} for {target}: round to nearest even, or convert the bits as integers"
    )]
    Rounding {
        /// The operation.
        name: String,
        /// The mode.
        mode: String,
        /// The type of the result's elements.
        kind: String,
        /// The target.
        target: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A scope of the other vendor.
    #[error("{name} has the scope {scope:?}, which is none of {vendor}'s: {known}, or no scope for the whole system")]
    Scope {
        /// The operation.
        name: String,
        /// Its scope.
        scope: String,
        /// Whose scopes there are.
        vendor: &'static str,
        /// These.
        known: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A vector that would keep LLVM busy for minutes.
    #[error(
        "{kind} is too large: vectors have at most {LONGEST_VECTOR} elements in their last dimension and \
         {MOST_ELEMENTS} in all; work on parts of it in a loop"
    )]
    LargeVector {
        /// Its type.
        kind: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A buffer of a type that LLVM does not have. MLIR's passes crash on it.
    #[error(
        "a kernel has a buffer of type {kind}, whose elements have no type in LLVM: store them as f32, or as integers"
    )]
    ForeignBuffer {
        /// Its type.
        kind: String,
        /// Where the kernel is, in MLIR's syntax.
        location: String,
    },
    /// A value of a type that LLVM does not have.
    #[error("a value of type {kind}, which LLVM does not have, cannot be lowered: use another type")]
    ForeignType {
        /// The type.
        kind: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// An operation in the module itself, where none is run. MLIR's translation crashes on it.
    #[error("{name} stands outside of a function: move it into one")]
    OutsideOfFunction {
        /// The operation.
        name: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A launch in device code.
    #[error("a kernel cannot launch another: launches are for host code; move it there, or call a function")]
    Launch {
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A module inside of a `gpu.module`.
    #[error("the {kind} {name} stands inside of a gpu.module: put it beside that")]
    NestedModule {
        /// `gpu.module` or `builtin.module`.
        kind: String,
        /// Its symbol.
        name: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A function whose name one of ours may have.
    #[error(
        "the function {name} cannot be lowered: names that begin with {RESERVED_NAMES} are gpulower's; give it another"
    )]
    ReservedName {
        /// Its symbol.
        name: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A dimension that a memref does not have. MLIR's passes crash on it.
    #[error("memref.dim asks for dimension {dimension}, which the memref does not have; they count from 0")]
    MissingDimension {
        /// The dimension.
        dimension: i64,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// An initial value that would keep LLVM busy for minutes, and fill memory.
    #[error(
        "{name} has an initial value of {bytes} bytes: at most {MOST_INITIAL_BYTES} can be compiled; fill it when the \
         program runs"
    )]
    LargeGlobal {
        /// The symbol.
        name: String,
        /// Its size.
        bytes: u64,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// A fatal error of LLVM in the midst of MLIR's passes. The MLIR context should not be used further.
    #[error(transparent)]
    Fatal(LlvmError),
    /// The pipeline itself is wrong, which is a bug of gpulower.
    #[error("internal error: the lowering pipeline cannot be built: {0}")]
    Pipeline(String),
}

impl LowerError {
    /// Where the problem is, in MLIR's syntax.
    pub fn location(&self) -> Option<&str> {
        match self {
            Self::Refused(diagnostics) => diagnostics.first().map(|diagnostic| diagnostic.location.as_str()),
            Self::Unsupported { location, .. }
            | Self::Foreign { location, .. }
            | Self::Contract { location, .. }
            | Self::Rounding { location, .. }
            | Self::Scope { location, .. }
            | Self::LargeVector { location, .. }
            | Self::ForeignBuffer { location, .. }
            | Self::MissingDimension { location, .. }
            | Self::OutsideOfFunction { location, .. }
            | Self::NestedModule { location, .. }
            | Self::ReservedName { location, .. }
            | Self::Launch { location }
            | Self::ForeignType { location, .. }
            | Self::LargeGlobal { location, .. } => Some(location),
            Self::Fatal(_) | Self::Pipeline(_) => None,
        }
    }
}

/// What MLIR's conversions say of an operation that they cannot take, in words for whoever wrote it.
pub(super) fn explained(mut diagnostic: MlirDiagnostic) -> MlirDiagnostic {
    const BEGIN: &str = "failed to legalize operation '";
    let Some((name, _)) = diagnostic
        .message
        .strip_prefix(BEGIN)
        .and_then(|rest| rest.split_once('\''))
    else {
        return diagnostic;
    };
    // The note shows the operation in its generic form, which ends in its types.
    let types = diagnostic
        .notes
        .iter()
        .find(|(_, note)| note.starts_with("see current operation"))
        .and_then(|(_, note)| note.trim_end().lines().next_back()?.rsplit_once(" : "))
        .map(|(_, types)| format!(" with the types {types}"))
        .unwrap_or_default();
    diagnostic.message = format!(
        "cannot lower {name}{types}: MLIR has no conversion to LLVM for it with these types and attributes; write it with others"
    );
    diagnostic
}

fn first_message(diagnostics: &[MlirDiagnostic]) -> String {
    match diagnostics {
        [] => "MLIR's lowering passes failed without a diagnostic".to_owned(),
        [only] => only.message.clone(),
        [first, rest @ ..] => format!("{} (and {} more diagnostics)", first.message, rest.len()),
    }
}

fn lowered_hint(names: &[String]) -> &'static str {
    let dialect_is = |dialects: &[&str]| {
        names
            .iter()
            .any(|name| dialects.contains(&name.split('.').next().unwrap_or_default()))
    };
    if dialect_is(&["tensor", "bufferization", "linalg", "shape"]) {
        "; bufferize tensors and turn linalg into loops before"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_refused_with_advice() {
        let error = LowerError::Unsupported {
            names: vec!["tensor.extract".to_owned()],
            types: "(tensor<4xf32>, index) -> (f32)".to_owned(),
            target: "sm_90".to_owned(),
            location: "here".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "cannot lower tensor.extract for sm_90: the first has the types (tensor<4xf32>, index) -> (f32); bufferize tensors and turn linalg into loops before"
        );
    }
}
