//! Why a program cannot be made ready for export.

use crate::{
    bridge::{LlvmError, edit::CopyError, mlir::MlirDiagnostic},
    device::lower::LowerError,
};

/// Why a program cannot be made ready for export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OffloadError {
    /// A host that nothing can be made for.
    #[error(
        "cannot export for the host {triple:?}: {reason}; name a Linux on x86-64 or AArch64, such as \
         x86_64-unknown-linux-gnu"
    )]
    HostTriple {
        /// The triple.
        triple: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Host code without a launch.
    #[error(
        "the module has no host code that launches a kernel: expected gpu.launch or gpu.launch_func in a func.func \
         (kernels alone are compiled with `gpulower compile`)"
    )]
    NoLaunch,
    /// A launch of a module that does not exist.
    #[error("{kernel} is launched, and there is no gpu.module or gpu.binary of that name{}", known(.modules))]
    UnknownModule {
        /// The kernel as the launch names it.
        kernel: String,
        /// The modules that there are.
        modules: Vec<String>,
        /// Where the launch is, in MLIR's syntax.
        location: String,
    },
    /// A launch of a kernel that does not exist.
    #[error("{kernel} is launched, and its gpu.module has no kernel of that name{}", known(.kernels))]
    UnknownKernel {
        /// The kernel as the launch names it.
        kernel: String,
        /// The kernels that the module has.
        kernels: Vec<String>,
        /// Where the launch is, in MLIR's syntax.
        location: String,
    },
    /// A module inside of the host's module.
    #[error("a module inside of the host's module cannot be exported; move what it holds into the outer module")]
    NestedModule {
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// Two device modules with one name for different things, where the source's names are to be kept.
    #[error(
        "{name} is defined by the device modules {first} and {second}, which are linked into one program; rename one of \
         them, do not ask for the names to be kept, or, where they were compiled before, keep them as gpu.modules or export a \
         program that registers itself"
    )]
    DuplicateName {
        /// The kernel or variable.
        name: String,
        /// One module.
        first: String,
        /// The other.
        second: String,
    },
    /// A symbol that the host code defines, and that is needed for a kernel or variable.
    #[error("the host code defines {symbol}, which has to stand for {purpose}; rename it")]
    SymbolTaken {
        /// The symbol.
        symbol: String,
        /// For what it is needed.
        purpose: String,
        /// Where it is defined, in MLIR's syntax.
        location: String,
    },
    /// Operations of the host code that no conversion knows.
    #[error("cannot lower {} in host code: the first has the types {types}{}", .names.join(", "), advice(.names))]
    Unsupported {
        /// The operations' names, each once.
        names: Vec<String>,
        /// What the first of them takes and returns.
        types: String,
        /// Where the first of them is, in MLIR's syntax.
        location: String,
    },
    /// MLIR's passes refused the host code.
    #[error("{}", first_message(.0))]
    Refused(Vec<MlirDiagnostic>),
    /// A launch with clusters, which AMD's GPUs do not have.
    #[error("the kernel {kernel} is launched with clusters of blocks, which AMD's GPUs do not have")]
    Clusters {
        /// The kernel.
        kernel: String,
        /// Where the first such launch is, in MLIR's syntax.
        location: String,
    },
    /// A global variable of the device whose size is not known.
    #[error(
        "the size of the global variable {name} of the device module {module} is not known; make it private, or give it a type of fixed size"
    )]
    VariableSize {
        /// The variable.
        name: String,
        /// Its module.
        module: String,
        /// Where it is, in MLIR's syntax.
        location: String,
    },
    /// LLVM refused the host code.
    #[error(transparent)]
    Llvm(#[from] LlvmError),
    /// Something of ours is wrong, which is a bug of gpulower.
    #[error("internal error: {0} (this is a bug in gpulower)")]
    Internal(String),
}

impl OffloadError {
    /// Where the problem is, in MLIR's syntax.
    pub fn location(&self) -> Option<&str> {
        match self {
            Self::UnknownModule { location, .. }
            | Self::UnknownKernel { location, .. }
            | Self::NestedModule { location }
            | Self::SymbolTaken { location, .. }
            | Self::Unsupported { location, .. }
            | Self::Clusters { location, .. }
            | Self::VariableSize { location, .. } => Some(location),
            Self::Refused(diagnostics) => diagnostics.first().map(|diagnostic| diagnostic.location.as_str()),
            _ => None,
        }
    }
}

impl From<CopyError> for OffloadError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Open(diagnostic) => Self::Refused(vec![diagnostic]),
            CopyError::Failed(error) => Self::Llvm(error),
        }
    }
}

impl From<LowerError> for OffloadError {
    fn from(error: LowerError) -> Self {
        match error {
            LowerError::Refused(diagnostics) => Self::Refused(diagnostics),
            error => Self::Internal(error.to_string()),
        }
    }
}

fn known(names: &[String]) -> String {
    match names {
        [] => "; there is none at all".to_owned(),
        [only] => format!("; there is {only}"),
        names => format!("; there are {}", names.join(", ")),
    }
}

fn first_message(diagnostics: &[MlirDiagnostic]) -> String {
    diagnostics.first().map_or_else(
        || "MLIR's passes refused the host code without a diagnostic".to_owned(),
        |first| first.message.clone(),
    )
}

fn advice(names: &[String]) -> &'static str {
    let has = |dialects: &[&str]| {
        names
            .iter()
            .any(|name| dialects.contains(&name.split('.').next().unwrap_or_default()))
    };
    if has(&["tensor", "bufferization", "linalg", "shape"]) {
        "; bufferize tensors before (one-shot-bufferize): on buffers linalg becomes loops"
    } else if has(&["async"]) {
        "; async.execute, async.func, async.await, groups and what async-to-async-runtime makes of them are known"
    } else if has(&["gpu"]) {
        "; on the host the gpu dialect's launches, allocations, copies, waits and host registrations are known"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_there_is() {
        let error = |kernels: &[&str]| OffloadError::UnknownKernel {
            kernel: "@m::@k".to_owned(),
            kernels: kernels.iter().map(|&name| name.to_owned()).collect(),
            location: "here".to_owned(),
        };
        assert_eq!(
            error(&["a", "b"]).to_string(),
            "@m::@k is launched, and its gpu.module has no kernel of that name; there are a, b"
        );
        assert!(error(&["a"]).to_string().ends_with("; there is a"));
        assert!(error(&[]).to_string().ends_with("; there is none at all"));
        assert_eq!(error(&[]).location(), Some("here"));
    }

    #[test]
    fn advice_depends_on_the_dialect() {
        let message = |name: &str| {
            OffloadError::Unsupported {
                names: vec![name.to_owned()],
                types: "() -> ()".to_owned(),
                location: String::new(),
            }
            .to_string()
        };
        assert_eq!(
            message("linalg.matmul"),
            "cannot lower linalg.matmul in host code: the first has the types () -> (); bufferize tensors before \
             (one-shot-bufferize): on buffers linalg becomes loops"
        );
        assert!(message("gpu.thread_id").ends_with("waits and host registrations are known"));
        assert_eq!(
            message("foo.bar"),
            "cannot lower foo.bar in host code: the first has the types () -> ()"
        );
    }
}
