//! What the device stage refuses.

use std::fmt::Write;

use crate::{
    bridge::{LlvmError, mlir::MlirDiagnostic},
    error::{ErrorKind, Location},
    interrupt::InterruptError,
    target::Target,
    toolkit::ToolkitError,
};

/// What goes wrong between MLIR and machine code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum DeviceError {
    /// MLIR's passes or checks refused the module.
    #[error("{}", first_message(.0))]
    Mlir(Vec<MlirDiagnostic>),
    /// A fatal error of LLVM in the midst of MLIR's passes. The MLIR context should not be used further.
    #[error(transparent)]
    FatalInMlir(LlvmError),
    /// The lowering pipeline itself is wrong, which is a bug of gpulower.
    #[error("internal error: the lowering pipeline cannot be built: {0}")]
    Pipeline(String),
    /// LLVM refused, or met a fatal error.
    #[error(transparent)]
    Llvm(#[from] LlvmError),
    /// Something in the module.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// A vendor's device library is needed and was not found.
    #[error("{}{source}", needed(.symbols))]
    LibraryMissing {
        /// The symbols that need it.
        symbols: Vec<UnresolvedSymbol>,
        /// Every place looked at, and what to do.
        source: ToolkitError,
    },
    /// Symbols that no library defines.
    #[error("{}", unresolved(.0))]
    Unresolved(Vec<UnresolvedSymbol>),
    /// An address in a workgroup's memory that an instruction cannot use.
    #[error(
        "{instruction} in {function} uses the address {offset} bytes behind the start of {variable}, and the hardware wants a \
         multiple of {wanted}: move it there, or leave space in front of it"
    )]
    Misaligned {
        /// The instruction.
        instruction: String,
        /// The function.
        function: String,
        /// The variable.
        variable: String,
        /// Bytes behind its start.
        offset: u64,
        /// What they have to be a multiple of.
        wanted: u64,
        /// Where debug info says it is.
        location: Option<Location>,
    },
    /// It was cancelled, or took too long.
    #[error(transparent)]
    Interrupted(#[from] InterruptError),
    /// A listener ended the compilation.
    #[error("a listener refused the {checkpoint} stage: {reason}")]
    Listener {
        /// Where.
        checkpoint: &'static str,
        /// Why.
        reason: String,
    },
}

/// Something in the module that cannot be compiled.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub kind: ErrorKind,
    /// What is wrong, and what to do.
    pub message: String,
    /// Where it is.
    pub location: Option<Location>,
    /// The symbol that it is about as a whole.
    pub symbol: Option<String>,
    /// Whether that is a kernel.
    pub is_kernel: bool,
}

impl Refusal {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            location: None,
            symbol: None,
            is_kernel: false,
        }
    }

    /// Of what cannot be lowered.
    pub fn lowering(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Lowering, message)
    }

    /// What the target does not have, and what to do.
    pub fn wrong_target(what: &str, target: &Target, advice: &str) -> Self {
        let message = format!("{what} in a module for {target}: {advice}");
        Self::new(ErrorKind::Target, message)
    }

    /// A kernel that states something of its launches which none can fulfil.
    pub fn contract(kernel: &str, target: &Target, reason: &str) -> Self {
        let message = format!("the kernel {kernel} cannot be launched on {target}: {reason}");
        Self::lowering(message)
    }

    /// The module defines neither a function nor a variable.
    pub fn empty() -> Self {
        let message = "the module is empty: it defines no kernel, no function and no variable";
        Self::new(ErrorKind::Input, message)
    }

    /// Whatever the module defines is left out, since nothing outside of it can use it; with the reasons.
    pub fn nothing_visible(hidden: &[String]) -> Self {
        let message = format!(
            "nothing would be left of the module: it has no kernel, and nothing else may use what it defines ({}); make visible \
             what is to be kept (external linkage), or a kernel (gpu.func kernel, nvvm.kernel, rocdl.kernel, the calling \
             convention ptx_kernel or amdgpu_kernel)",
            listed(hidden)
        );
        Self::new(ErrorKind::Input, message)
    }

    pub fn at(self, location: Location) -> Self {
        Self {
            location: Some(location),
            ..self
        }
    }

    pub fn about(self, symbol: &str) -> Self {
        Self {
            symbol: Some(symbol.to_owned()),
            ..self
        }
    }

    pub fn about_kernel(self, kernel: &str) -> Self {
        Self {
            is_kernel: true,
            ..self.about(kernel)
        }
    }
}

impl From<Refusal> for DeviceError {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl DeviceError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(refusal) => refusal.kind,
            Self::Mlir(_) | Self::Misaligned { .. } => ErrorKind::Lowering,
            Self::Llvm(error) | Self::FatalInMlir(error) => ErrorKind::of_llvm(error),
            Self::Pipeline(_) => ErrorKind::Internal,
            Self::LibraryMissing { .. } => ErrorKind::Toolkit,
            Self::Unresolved(_) => ErrorKind::Symbols,
            Self::Interrupted(error) => error.kind(),
            Self::Listener { .. } => ErrorKind::Listener,
        }
    }

    /// Where it is, where that is known.
    pub fn location(&self) -> Option<&Location> {
        match self {
            Self::Mlir(diagnostics) => diagnostics.first().map(|diagnostic| &diagnostic.location),
            Self::Refused(refusal) => refusal.location.as_ref(),
            Self::Misaligned { location, .. } => location.as_ref(),
            Self::Unresolved(symbols) | Self::LibraryMissing { symbols, .. } => {
                symbols.iter().find_map(|symbol| symbol.location.as_ref())
            }
            _ => None,
        }
    }

    /// The symbol that it is about as a whole.
    pub fn symbol(&self) -> Option<&str> {
        match self {
            Self::Refused(refusal) => refusal.symbol.as_deref(),
            Self::Llvm(LlvmError::Fatal(text)) => text.rsplit_once("In function: ").map(|(_, name)| name),
            _ => None,
        }
    }

    /// The kernels that are concerned.
    pub fn kernels(&self) -> Vec<String> {
        let mut kernels: Vec<String> = match self {
            Self::Unresolved(symbols) | Self::LibraryMissing { symbols, .. } => {
                symbols.iter().flat_map(|symbol| symbol.kernels.clone()).collect()
            }
            Self::Refused(refusal) if refusal.is_kernel => refusal.symbol.clone().into_iter().collect(),
            _ => Vec::new(),
        };
        kernels.sort();
        kernels.dedup();
        kernels
    }
}

/// Operations of these names, which no conversion for the target knows; and the types of the first.
pub(super) fn unsupported(names: &[String], types: &str, target: &Target) -> Refusal {
    Refusal::lowering(format!(
        "cannot lower {} for {target}: the first has the types {types}{}",
        names.join(", "),
        lowered_hint(names)
    ))
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

/// The first of many, and how many more.
fn listed(names: &[String]) -> String {
    const MOST: usize = 5;
    match names.get(..MOST) {
        Some(first) if names.len() > MOST => format!("{}, and {} more", first.join(", "), names.len() - MOST),
        _ => names.join(", "),
    }
}

/// A symbol that no library defines.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UnresolvedSymbol {
    /// Its name.
    pub name: String,
    /// The kernels that reach it.
    pub kernels: Vec<String>,
    /// Where it is used.
    pub location: Option<Location>,
    /// What would define it.
    pub advice: String,
}

fn needed(symbols: &[UnresolvedSymbol]) -> String {
    let verb = if symbols.len() == 1 { "needs" } else { "need" };
    let names: Vec<String> = symbols
        .iter()
        .map(|symbol| match symbol.kernels.as_slice() {
            [] => symbol.name.clone(),
            kernels => format!("{} (kernel {})", symbol.name, kernels.join(", ")),
        })
        .collect();
    format!("{} {verb} a library that was not found: ", names.join(", "))
}

fn unresolved(symbols: &[UnresolvedSymbol]) -> String {
    let mut text = match symbols.len() {
        1 => "unresolved symbol:".to_owned(),
        count => format!("{count} unresolved symbols:"),
    };
    for symbol in symbols {
        let _ = write!(text, "\n  {}", symbol.name);
        match symbol.kernels.as_slice() {
            [] => {}
            [kernel] => {
                let _ = write!(text, " (needed by kernel {kernel})");
            }
            kernels => {
                let _ = write!(text, " (needed by kernels {})", kernels.join(", "));
            }
        }
        if let Some(location) = &symbol.location {
            let _ = write!(text, " at {}", location.as_mlir());
        }
        let _ = write!(text, ": {}", symbol.advice);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_are_refused_with_advice() {
        let error = unsupported(
            &["tensor.extract".to_owned()],
            "(tensor<4xf32>, index) -> (f32)",
            &"sm_90".parse().expect("a target"),
        );
        assert_eq!(
            error.message,
            "cannot lower tensor.extract for sm_90: the first has the types (tensor<4xf32>, index) -> (f32); bufferize tensors and turn linalg into loops before"
        );
    }
}
