//! Why a program does not run, or did not run to its end.

use std::error::Error;

use crate::{
    bridge::{LlvmError, edit::CopyError, mgpu::CallError, mlir::MlirDiagnostic},
    compiler::StackError,
    error::Failure,
    runtime::{DeviceError, DriverError, DriverLoadError, ModuleError},
};

/// Why a program does not run, or did not run to its end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The input cannot be read, its host code cannot be lowered, or its kernels cannot be compiled.
    #[error(transparent)]
    Compile(#[from] Failure),
    /// LLVM IR or PTX.
    #[error("only MLIR can be run: a module with the host code, and with the kernels that it launches")]
    NotMlir,
    /// MLIR could not translate the host code to LLVM IR.
    #[error("{}", first_message(.0))]
    Translate(Vec<MlirDiagnostic>),
    /// LLVM refused the host code, a shared library cannot be loaded, or the program cannot be linked.
    #[error(transparent)]
    Llvm(#[from] LlvmError),
    /// There is no such function.
    #[error("the program defines no function {entry}{}; name the one to call with --entry", defined(.functions))]
    NoEntry {
        /// The function that was to be called.
        entry: String,
        /// Those that there are.
        functions: Vec<String>,
    },
    /// The function cannot be called without knowing more.
    #[error(
        "{entry} has the type {kind}: the function that is called has to take nothing, and to return nothing, i32, i64, f32 \
         or f64"
    )]
    EntryType {
        /// The function.
        entry: String,
        /// Its type, as LLVM prints it.
        kind: String,
    },
    /// Something is used that nobody defines.
    #[error("nothing defines {}: neither the program, nor a shared library, nor the C library{}", .symbols.join(", "), advice(.symbols))]
    Unresolved {
        /// The symbols, in alphabetical order.
        symbols: Vec<String>,
    },
    /// The program needs a GPU, and its driver cannot be used.
    #[error(transparent)]
    DriverLoad(#[from] DriverLoadError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The driver failed, apart from the program's own calls.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The kernels cannot be loaded.
    #[error(transparent)]
    Module(#[from] ModuleError),
    /// A call of the program's for the GPU failed, and the program was stopped there.
    #[error("{call}: {source}")]
    Stopped {
        /// The function that the program called; `the end of the program` for what is found when it has returned.
        call: &'static str,
        /// Why: a [`DriverError`], [`ModuleError`], [`LaunchError`](crate::runtime::LaunchError) or
        /// A misuse of an address, a size or a handle, among others.
        source: Box<dyn Error + Send + Sync>,
    },
}

impl From<CopyError> for RunError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Open(diagnostic) => Self::Translate(vec![diagnostic]),
            CopyError::Failed(error) => Self::Llvm(error),
        }
    }
}

impl From<StackError> for RunError {
    fn from(error: StackError) -> Self {
        Failure::from(error).into()
    }
}

fn first_message(diagnostics: &[MlirDiagnostic]) -> String {
    diagnostics.first().map_or_else(
        || "MLIR could not translate the host code to LLVM IR".to_owned(),
        |first| {
            format!(
                "{}: {}",
                crate::error::Location::from_mlir(&first.location),
                first.message
            )
        },
    )
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
    /// The kinds that have a variant of their own, for what is found before the program runs.
    fn from(error: CallError) -> Self {
        let error = match error.downcast::<DriverLoadError>() {
            Ok(error) => return Self::DriverLoad(*error),
            Err(other) => other,
        };
        let error = match error.downcast::<DeviceError>() {
            Ok(error) => return Self::Device(*error),
            Err(other) => other,
        };
        let error = match error.downcast::<DriverError>() {
            Ok(error) => return Self::Driver(*error),
            Err(other) => other,
        };
        match error.downcast::<ModuleError>() {
            Ok(error) => Self::Module(*error),
            Err(source) => Self::Stopped {
                call: "loading the kernels",
                source,
            },
        }
    }
}
