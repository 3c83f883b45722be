//! What goes wrong in a session.

use std::fmt;

use crate::{
    device::UnresolvedSymbol,
    error::{Error, ErrorKind, Failure},
    options::OptionError,
    runtime::{DriverError, ModuleError},
};

/// Why a session cannot be made, or does not do what it was asked for. The session and its modules are as they were.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    /// It could not be compiled.
    #[error(transparent)]
    Compile(#[from] Failure),
    /// It needs variables or functions that it does not define.
    #[error("{}", undefined(.module, .symbols, .failure))]
    Undefined {
        /// The module.
        module: String,
        /// The symbols.
        symbols: Vec<UndefinedSymbol>,
        /// What the compiler said.
        failure: Failure,
    },
    /// A name of a session stands for one image.
    #[error(
        "{name} holds {} gpu.modules ({}), and a name of a session stands for one: add each under a name of its own, or have \
         them joined (Options::device_link)",
        .modules.len(), .modules.join(", ")
    )]
    SeveralModules {
        /// The name.
        name: String,
        /// The symbols of the modules.
        modules: Vec<String>,
    },
    /// The driver did not take it, or has no such kernel or variable.
    #[error(transparent)]
    Load(#[from] ModuleError),
    /// There is no module of that name.
    #[error("the session has no module {name:?}{}", .near.as_ref().map_or_else(String::new, |near| format!(": did you mean {near}?")))]
    NoSuchModule {
        /// The name.
        name: String,
        /// A name that is similar.
        near: Option<String>,
    },
    /// The session only compiles.
    #[error(
        "{module} is not loaded: the session has no device; make it with a context (JitSession::new, \
         JitSessionBuilder::context), or give it one now (JitSession::rebuild)"
    )]
    NoDevice {
        /// The module.
        module: String,
    },
    /// There is neither a device nor a target.
    #[error("a session without a device needs to be told what to compile for (JitSessionBuilder::target)")]
    NoTarget,
    /// It cannot be told what the device is.
    #[error(transparent)]
    Device(#[from] DriverError),
    /// The device is of a later kind than all that are known.
    #[error(
        "no target is known for a device of compute capability {device}: name one whose PTX the driver compiles for it \
         (JitSessionBuilder::target), such as {newest}"
    )]
    UnknownDevice {
        /// The device's compute capability.
        device: String,
        /// The newest target that the driver may take PTX of.
        newest: String,
    },
    /// The target does not have the format.
    #[error(transparent)]
    Emit(#[from] OptionError),
    /// What is to be made is nothing that a driver loads.
    #[error("a session cannot make {emit}, which no driver loads: ask for binary, ptx, cubin, hsaco, fatbin or bundle")]
    NotLoadable {
        /// The format.
        emit: String,
    },
    /// The session ended before the compilation began.
    #[error("{module} was not compiled: its session was dropped before its turn came")]
    Ended {
        /// The module.
        module: String,
    },
    /// No thread could be started.
    #[error("no thread to compile {module} on: {source}; JitSession::add compiles on the caller's thread")]
    NoThread {
        /// The module.
        module: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A module does not load into the new context.
    #[error("the session was not rebuilt, and is as it was: {module} does not load: {source}")]
    NotRebuilt {
        /// The module.
        module: String,
        /// Why.
        source: Box<ModuleError>,
    },
}

impl From<Error> for SessionError {
    fn from(error: Error) -> Self {
        Failure::from(error).into()
    }
}

impl SessionError {
    /// Whether the context is lost, so that a new one and [`JitSession::rebuild`](super::JitSession::rebuild) are needed.
    #[must_use]
    pub fn is_context_lost(&self) -> bool {
        let error = match self {
            Self::Load(error) => error,
            Self::NotRebuilt { source, .. } => source,
            Self::Device(error) => return error.is_context_lost(),
            _ => return false,
        };
        matches!(error, ModuleError::Driver(error) if error.is_context_lost())
    }
}

/// A symbol that a module uses and neither it nor a library defines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedSymbol {
    /// Its name.
    pub name: String,
    /// A module of the session that defines a symbol of that name, for itself alone.
    pub defined_by: Option<String>,
}

/// The symbols that a failure says are undefined, if that is what it says.
pub(super) fn undefined_symbols(failure: &Failure) -> Vec<&UnresolvedSymbol> {
    failure
        .errors
        .iter()
        .filter(|error| error.kind == ErrorKind::Symbols)
        .flat_map(|error| &error.symbols)
        .collect()
}

fn undefined(module: &str, symbols: &[UndefinedSymbol], failure: &Failure) -> impl fmt::Display {
    use fmt::Write;
    let mut text = failure.to_string();
    for UndefinedSymbol { name, defined_by } in symbols {
        let Some(other) = defined_by else { continue };
        let _ = write!(
            text,
            "\nThe module {other:?} of this session defines {name}, for itself alone: drivers cannot link new code to a module \
             that is loaded. If it is a variable, give {module}'s kernel its address as an argument \
             (session.module({other:?})?.global({name:?})?.address()); or put both into one gpu.module, or have them joined \
             (Options::device_link)"
        );
    }
    text
}
