//! What a compilation returns when it fails.

use std::fmt;

use crate::{
    ReadError,
    bridge::LlvmError,
    cache::CacheError,
    compiler::{EmitError, InputError, StackError, worker::WorkerError},
    container::WriteError,
    device::{DeviceError, JoinError, lower::LowerError},
    interrupt::InterruptError,
    offload::{ExportError, OffloadError},
    options::OptionError,
    serialize::{amd::AmdLinkError, device_link::DeviceLinkError, nvidia::SerializeError},
    stage::Stage,
    target::{Target, TargetError},
    toolkit::ToolkitError,
};

/// One failure: in which stage, for which module, target and kernels, where in the source, and why.
///
/// `Display` gives all of it in one message.
#[derive(Debug)]
#[non_exhaustive]
pub struct Error {
    /// The stage that failed.
    pub stage: Stage,
    /// The symbol of the `gpu.module`, or the name of the input.
    pub module: Option<String>,
    /// The target that was compiled for.
    pub target: Option<Target>,
    /// The kernels concerned, where that is known.
    pub kernels: Vec<String>,
    /// The location in MLIR's syntax, such as `"kernel.mlir":3:5`, where there is one.
    pub location: Option<String>,
    /// Why.
    pub cause: Box<Cause>,
}

/// Why a stage failed: one kind for each concept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// The input cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The target does not exist, or cannot do what is asked.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An option cannot be read or honoured.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The output format does not exist for the target.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// MLIR could not be lowered.
    #[error(transparent)]
    Lower(#[from] LowerError),
    /// LLVM refused the module.
    #[error(transparent)]
    Llvm(#[from] LlvmError),
    /// Linking, optimising or generating code failed.
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
    /// An AMD object could not be linked.
    #[error(transparent)]
    AmdLink(#[from] AmdLinkError),
    /// Modules could not be joined.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// The compiled code could not be linked with other objects.
    #[error(transparent)]
    DeviceLink(#[from] DeviceLinkError),
    /// An hsaco cannot be read.
    #[error("the hsaco cannot be read: {0}")]
    Hsaco(#[source] ReadError),
    /// Images could not be put into a container.
    #[error(transparent)]
    Pack(#[from] WriteError),
    /// A program's host code could not be made ready for export.
    #[error(transparent)]
    Offload(#[from] OffloadError),
    /// A program could not be exported.
    #[error(transparent)]
    Export(#[from] ExportError),
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
    /// It was cancelled, or took longer than its time limit.
    #[error(transparent)]
    Interrupted(#[from] InterruptError),
    /// The worker process that was to do it ended, or could not be used.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// What a worker process reported, in the words of the cause that it would be in this process.
    #[error("{0}")]
    Relayed(String),
    /// There is no stack to work on.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// A thread of the compiler ended unexpectedly.
    #[error("internal error: {0} (this is a bug in gpulower)")]
    Internal(String),
}

impl Error {
    /// An error of a stage, with nothing else known yet.
    pub(crate) fn new(stage: Stage, cause: impl Into<Cause>) -> Self {
        let cause = cause.into();
        let location = match &cause {
            Cause::Lower(error) => error.location().map(str::to_owned),
            Cause::Device(error) => error.location().map(str::to_owned),
            Cause::Join(error) => error.location().map(str::to_owned),
            Cause::Input(error) => error.location().map(str::to_owned),
            Cause::Offload(error) => error.location().map(str::to_owned),
            _ => None,
        };
        let kernels = match &cause {
            Cause::Device(error) => error.kernels(),
            _ => Vec::new(),
        };
        Self {
            stage,
            module: None,
            target: None,
            kernels,
            location,
            cause: Box::new(cause),
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

    /// Whether a fatal error or a crash came in the midst of MLIR's work, whose context is in an unknown state since.
    pub(crate) fn is_fatal_in_mlir(&self) -> bool {
        match &*self.cause {
            Cause::Lower(LowerError::Fatal(_)) | Cause::Input(InputError::Fatal { .. }) => true,
            Cause::Llvm(error) => self.stage == Stage::Translate && error.is_fatal(),
            _ => false,
        }
    }

    /// The location as editors follow it, `kernel.mlir:3:5`, where it is a position in a file; else in MLIR's syntax.
    pub fn place(&self) -> Option<String> {
        self.location.as_deref().map(plain_location)
    }

    /// The message without stage, module and location.
    pub fn message(&self) -> String {
        self.cause.to_string()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(location) = &self.location {
            write!(formatter, "{}: ", plain_location(location))?;
        }
        write!(formatter, "{}", self.stage)?;
        if let Some(module) = &self.module {
            write!(formatter, ", module {module}")?;
        }
        if let Some(target) = &self.target {
            write!(formatter, ", target {target}")?;
        }
        write!(formatter, ": {}", self.cause)?;
        if let Cause::Lower(LowerError::Refused(diagnostics)) = self.cause.as_ref() {
            for diagnostic in diagnostics.iter().skip(1) {
                write!(
                    formatter,
                    "\n  {}: {}",
                    plain_location(&diagnostic.location),
                    diagnostic.message
                )?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(self.cause.as_ref())
    }
}

/// `"file.mlir":3:5` as `file.mlir:3:5`, which editors follow.
pub(crate) fn plain_location(location: &str) -> String {
    location
        .strip_prefix('"')
        .and_then(|rest| rest.split_once('"'))
        .filter(|(_, rest)| rest.starts_with(':') && rest[1..].chars().all(|c| c.is_ascii_digit() || c == ':'))
        .map_or_else(|| location.to_owned(), |(file, rest)| format!("{file}{rest}"))
}

/// Everything that failed in one compilation, in the order of the input. Never empty.
#[derive(Debug)]
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

impl From<StackError> for Failure {
    fn from(error: StackError) -> Self {
        Error::new(Stage::Plan, error).into()
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

impl std::error::Error for Failure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.errors.first().map(|error| error as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_names_place_stage_module_and_target() {
        let mut error = Error::new(Stage::Link, Cause::Internal("x".to_owned()))
            .in_module("m")
            .for_target(&"sm_90".parse().expect("a target"));
        error.location = Some("\"a.mlir\":3:5".to_owned());
        assert_eq!(
            error.to_string(),
            "a.mlir:3:5: link, module m, target sm_90: internal error: x (this is a bug in gpulower)"
        );
    }

    #[test]
    fn only_plain_locations_are_made_plain() {
        assert_eq!(plain_location("\"a b.mlir\":3:5"), "a b.mlir:3:5");
        assert_eq!(plain_location("unknown"), "unknown");
        assert_eq!(
            plain_location("callsite(\"a\":1:2 at \"b\":3:4)"),
            "callsite(\"a\":1:2 at \"b\":3:4)"
        );
    }
}
