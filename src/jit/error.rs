//! Why a program does not run, or did not run to its end.

use crate::{
    bridge::{LlvmError, edit::CopyError, mgpu::CallError, mlir::MlirDiagnostic},
    error::{Error, Failure},
    runtime::{DriverError, DriverLoadError},
};

/// Why a program does not run, or did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The input cannot be read, its host code cannot be lowered, or its kernels cannot be compiled.
    #[error(transparent)]
    Compile(#[from] Failure),
    /// The program is none that can be run, or it cannot be made ready.
    #[error("{0}")]
    Refused(String),
    /// The program needs a GPU, and its driver cannot be used.
    #[error(transparent)]
    DriverLoad(#[from] DriverLoadError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DriverError),
    /// A call of the program's for the GPU failed, and the program was stopped there.
    #[error("{call}: {source}")]
    Stopped {
        /// The function that the program called; `the end of the program` for what is found when it has returned.
        call: &'static str,
        /// Why: a [`DriverError`](crate::runtime::DriverError), [`ModuleError`](crate::runtime::ModuleError),
        /// [`LaunchError`](crate::runtime::LaunchError), or a misuse of an address, a size or a handle, among others.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<LlvmError> for RunError {
    fn from(error: LlvmError) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<CopyError> for RunError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Open(diagnostic) => Self::not_translated(&[diagnostic]),
            CopyError::Failed(error) => error.into(),
        }
    }
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        Failure::from(error).into()
    }
}

impl RunError {
    /// MLIR could not translate the host code to LLVM IR.
    pub(super) fn not_translated(diagnostics: &[MlirDiagnostic]) -> Self {
        Self::Refused(diagnostics.first().map_or_else(
            || "MLIR could not translate the host code to LLVM IR".to_owned(),
            |first| format!("{}: {}", first.location, first.message),
        ))
    }

    /// There is no such function; these there are.
    pub(super) fn no_entry(entry: &str, functions: &[String]) -> Self {
        let defined = defined(functions);
        Self::Refused(format!(
            "the program defines no function {entry}{defined}; name the one to call with --entry"
        ))
    }

    /// Something is used that nobody defines.
    pub(super) fn unresolved(symbols: &[String]) -> Self {
        let (list, advice) = (symbols.join(", "), advice(symbols));
        Self::Refused(format!(
            "nothing defines {list}: neither the program, nor a shared library, nor the C library{advice}"
        ))
    }
}

fn defined(functions: &[String]) -> String {
    match functions {
        [] => " (it defines none at all)".to_owned(),
        [only] => format!(" (it defines {only})"),
        several => format!(" (it defines {})", several.join(", ")),
    }
}

fn advice(symbols: &[String]) -> &'static str {
    if symbols.iter().any(|symbol| symbol.starts_with("mgpu")) {
        "; the mgpu functions for sparse matrices are not part of gpulower: name a library that has them with --shared-libs"
    } else {
        "; name the library that does with --shared-libs"
    }
}

impl From<CallError> for RunError {
    /// For what is found before the program runs.
    fn from(error: CallError) -> Self {
        match error.downcast::<DriverLoadError>() {
            Ok(error) => Self::DriverLoad(*error),
            Err(error) => Self::Refused(error.to_string()),
        }
    }
}
