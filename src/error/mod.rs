//! What a compilation returns when it fails.

mod kind;
mod location;

use std::{fmt, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{
    ReadError,
    bridge::{LlvmError, edit::CopyError},
    cache::CacheError,
    compiler::{InputError, worker::WorkerError},
    container::WriteError,
    device::{DeviceError, UnresolvedSymbol},
    interrupt::InterruptError,
    offload::OffloadError,
    options::OptionError,
    report::InputId,
    serialize::{device_link::DeviceLinkError, nvidia::SerializeError},
    stage::Stage,
    target::{Target, TargetError},
    toolkit::ToolkitError,
};

pub(crate) use self::location::Position;
pub use self::{kind::ErrorKind, location::Location};

/// One failure: in which stage, for which module, target and kernels, where in the source, and why.
///
/// `Display` gives all of it in one message, with the words of every cause: there is no chain of sources that would say
/// them again. The same error comes from a worker process.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Error {
    /// The stage that failed.
    pub stage: Stage,
    /// The input that it is about, where there are inputs.
    pub input: Option<InputId>,
    /// The symbol of the `gpu.module`, or the name of the input.
    pub module: Option<String>,
    /// The target that was compiled for.
    pub target: Option<Target>,
    /// The kernels concerned, where that is known.
    pub kernels: Vec<String>,
    /// Where in the source, where that is known.
    pub location: Option<Location>,
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// The symbols that nothing defines, if that is what is wrong.
    pub symbols: Vec<UnresolvedSymbol>,
    /// What is wrong, without stage, module, target and place.
    pub message: String,
    /// What else the compiler said, each with its place.
    pub notes: Vec<Note>,
    /// The value that the words came from, for those in this crate and process who can do something about it.
    #[serde(skip)]
    cause: Option<Arc<Cause>>,
}

/// A further remark about a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Where in the source.
    pub location: Location,
    /// What is said.
    pub message: String,
}

/// Why a stage failed, as the stages say it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    /// The input cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The target does not exist, or cannot do what is asked.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An option cannot be read or honoured.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// LLVM refused the module.
    #[error(transparent)]
    Llvm(#[from] LlvmError),
    /// Lowering, joining, linking, optimising or generating code failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A part of a toolkit is missing.
    #[error(transparent)]
    Toolkit(#[from] ToolkitError),
    /// PTX could not be turned into a cubin.
    #[error(transparent)]
    Serialize(#[from] SerializeError),
    /// A cubin cannot be read.
    #[error("the cubin cannot be read: {0}")]
    Cubin(#[source] ReadError),
    /// The compiled code could not be linked.
    #[error(transparent)]
    DeviceLink(#[from] DeviceLinkError),
    /// An hsaco cannot be read.
    #[error("the hsaco cannot be read: {0}")]
    Hsaco(#[source] ReadError),
    /// Images could not be put into a container.
    #[error(transparent)]
    Pack(#[from] WriteError),
    /// A program could not be exported, or its host code not be made ready to run.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// What was compiled differs from what the cache has.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A listener ended the compilation.
    #[error("a listener refused the {checkpoint} stage: {reason}")]
    Listener {
        /// Where.
        checkpoint: &'static str,
        /// Why.
        reason: String,
    },
    /// Who was asked about what is to come out refused it.
    #[error("{0}")]
    Gate(String),
    /// It was cancelled, or took longer than its time limit.
    #[error(transparent)]
    Interrupted(#[from] InterruptError),
    /// The worker process that was to do it ended, or could not be used.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// A thread of the compiler ended unexpectedly.
    #[error("internal error: {0} (this is a bug in gpulower)")]
    Internal(String),
}

impl From<CopyError> for Cause {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Open(diagnostic) => Self::Input(InputError::Mlir(vec![diagnostic])),
            CopyError::Failed(error) => Self::Llvm(error),
        }
    }
}

impl Error {
    /// An error of a stage, with nothing else known yet.
    pub(crate) fn new(stage: Stage, cause: impl Into<Cause>) -> Self {
        let cause = cause.into();
        Self {
            stage,
            input: None,
            module: None,
            target: None,
            kernels: kernels(&cause),
            location: location(&cause).cloned(),
            kind: ErrorKind::of(&cause),
            symbols: symbols(&cause).to_vec(),
            message: cause.to_string(),
            notes: notes(&cause),
            cause: Some(Arc::new(cause)),
        }
    }

    pub(crate) fn in_module(mut self, module: &str) -> Self {
        self.module.get_or_insert_with(|| module.to_owned());
        self
    }

    pub(crate) fn for_target(mut self, target: &Target) -> Self {
        self.target.get_or_insert(*target);
        self
    }

    /// Gives a place to an error that has none.
    pub(crate) fn at(mut self, location: impl FnOnce() -> Location) -> Self {
        self.location.get_or_insert_with(location);
        self
    }

    /// What the stage said, unless that was in another process.
    pub(crate) fn cause(&self) -> Option<&Cause> {
        self.cause.as_deref()
    }

    /// Whether a fatal error or a crash came in the midst of MLIR's work, whose context is in an unknown state since.
    pub(crate) fn is_fatal_in_mlir(&self) -> bool {
        match self.cause() {
            Some(Cause::Device(DeviceError::FatalInMlir(_)) | Cause::Input(InputError::Fatal { .. })) => true,
            Some(Cause::Llvm(error)) => self.stage == Stage::Translate && error.is_fatal(),
            _ => false,
        }
    }

    /// The place as editors follow it, `kernel.mlir:3:5`, where it is a position in a file; else in MLIR's syntax.
    #[must_use]
    pub fn place(&self) -> Option<String> {
        self.location.as_ref().map(ToString::to_string)
    }

    /// The whole message but for the place.
    #[must_use]
    pub fn without_place(&self) -> impl fmt::Display {
        struct WithoutPlace<'a>(&'a Error);
        impl fmt::Display for WithoutPlace<'_> {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write_without_place(formatter)
            }
        }
        WithoutPlace(self)
    }

    fn write_without_place(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.stage)?;
        if let Some(module) = &self.module {
            write!(formatter, ", module {module}")?;
        }
        if let Some(target) = &self.target {
            write!(formatter, ", target {target}")?;
        }
        write!(formatter, ": {}", self.message)?;
        for Note { location, message } in &self.notes {
            write!(formatter, "\n  {location}: {message}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(formatter, "{location}: ")?;
        }
        self.write_without_place(formatter)
    }
}

impl std::error::Error for Error {}

/// What functions with errors of their own say, as a compilation would say it.
macro_rules! at_stage {
    ($($cause:ty => $stage:ident),* $(,)?) => {$(
        impl From<$cause> for Error {
            fn from(cause: $cause) -> Self {
                Self::new(Stage::$stage, cause)
            }
        }
    )*};
}

at_stage! {
    TargetError => Plan,
    OptionError => Plan,
    DeviceLinkError => DeviceLink,
    WriteError => Container,
}

/// The kernels that a cause names.
fn kernels(cause: &Cause) -> Vec<String> {
    match cause {
        Cause::Device(error) => error.kernels(),
        _ => Vec::new(),
    }
}

/// Where a cause says that it is.
fn location(cause: &Cause) -> Option<&Location> {
    match cause {
        Cause::Device(error) => error.location(),
        Cause::Input(error) => error.location(),
        Cause::Offload(error) => error.location(),
        _ => None,
    }
}

fn symbols(cause: &Cause) -> &[UnresolvedSymbol] {
    match cause {
        Cause::Device(DeviceError::Unresolved(symbols) | DeviceError::LibraryMissing { symbols, .. }) => symbols,
        _ => &[],
    }
}

/// What is said beside the first diagnostic, which is the message.
fn notes(cause: &Cause) -> Vec<Note> {
    let (Cause::Device(DeviceError::Mlir(diagnostics)) | Cause::Input(InputError::Mlir(diagnostics))) = cause else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let mut add = |location: &Location, message: String| {
        notes.push(Note {
            location: location.clone(),
            message,
        });
    };
    for (index, diagnostic) in diagnostics.iter().enumerate() {
        if index > 0 {
            add(&diagnostic.location, diagnostic.message.clone());
        }
        // The operation is where the place is.
        let attached = diagnostic.notes.iter();
        for (location, note) in attached.filter(|(_, note)| !note.starts_with("see current operation")) {
            add(location, format!("note: {note}"));
        }
    }
    notes
}

/// Everything that failed in one compilation, in the order of the input. Never empty.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The errors.
    pub errors: Vec<Error>,
}

impl Failure {
    /// Whether LLVM met a fatal error in the midst of MLIR's work: [`Error::is_fatal_in_mlir`].
    pub(crate) fn is_fatal_in_mlir(&self) -> bool {
        self.errors.iter().any(Error::is_fatal_in_mlir)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { errors: vec![error] }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            write!(formatter, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Compiler, Emit};

    #[test]
    fn a_message_names_place_stage_module_and_target() {
        let mut error = Error::new(Stage::Link, Cause::Internal("x".to_owned()))
            .in_module("m")
            .for_target(&"sm_90".parse().expect("a target"));
        error.location = Some(Location::in_file("a.mlir", 3, 5));
        assert_eq!(
            error.to_string(),
            "a.mlir:3:5: link, module m, target sm_90: internal error: x (this is a bug in gpulower)"
        );
    }

    #[test]
    fn places_are_numbers_whatever_form_the_location_has() {
        let target = "sm_90".parse().expect("a target");
        for (location, file, line, column) in [
            ("\"a b.mlir\":3:5", "a b.mlir", 3, 5),
            ("\"a b.mlir\":3:5 to 4:9", "a b.mlir", 3, 5),
            ("\"name\"(\"d.mlir\":8:1)", "d.mlir", 8, 1),
            ("fused[\"b.mlir\":7:2, \"c.mlir\":1:1]", "b.mlir", 7, 2),
            // Where the operation stands, not where its function was inlined.
            ("callsite(\"e.mlir\":2:3 at \"f.mlir\":4:5)", "e.mlir", 2, 3),
            (
                "fused<\"x\">[unknown, callsite(unknown at \"g\\22\\5Ch.mlir\":6:7 to :9)]",
                "g\"\\h.mlir",
                6,
                7,
            ),
        ] {
            // Refused by us, and by MLIR in a diagnostic.
            for operation in ["%0 = rocdl.workitem.id.x : i32", "func.call @nothing() : () -> ()"] {
                let text =
                    format!("gpu.module @m {{ gpu.func @k() kernel {{ {operation} loc({location})\n gpu.return }} }}");
                let compiled =
                    Compiler::builder()
                        .build()
                        .compile_source("k.mlir", text.as_bytes(), &[target], Emit::Mlir);
                let failure = compiled.expect_err("refused");
                let place = failure.errors[0].location.as_ref().expect("a place");
                let found = (place.file(), place.line(), place.column());
                assert_eq!(found, (Some(file), Some(line), Some(column)), "{location}: {failure}");
            }
        }
    }
}
