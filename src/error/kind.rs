//! What kinds of failures there are, and which of them a cause is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Cause;
use crate::{
    bridge::LlvmError,
    compiler::{InputError, worker::WorkerError},
    device::{DeviceError, JoinError, lower::LowerError},
    interrupt::InterruptError,
    serialize::{device_link::DeviceLinkError, nvidia::SerializeError},
};

/// What kind of failure an [`Error`](super::Error) is: what a program tells apart.
///
/// It is the same in this process and from a worker. `docs/errors.md` lists the codes, with what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// E0101: the input cannot be read, or holds nothing to compile.
    Input,
    /// E0201: the target does not exist, or cannot do what is asked.
    Target,
    /// E0202: an option cannot be read, or not be honoured.
    Option,
    /// E0301: something in the MLIR cannot be lowered.
    Lowering,
    /// E0401: symbols that no library defines, or several modules: [`Error::symbols`](super::Error::symbols).
    Symbols,
    /// E0402: code could not be linked.
    Link,
    /// E0501: LLVM has no code for something.
    CodeGeneration,
    /// E0502: the vendor's compiler refused the code.
    Assembly,
    /// E0601: a part of CUDA or ROCm is missing, or too old.
    Toolkit,
    /// E0701: an image cannot be read, or not be put into a container.
    Image,
    /// E0801: a program cannot be exported.
    Export,
    /// E0901: what was compiled differs from what the cache has.
    Cache,
    /// E1001: a listener ended it.
    Listener,
    /// E1101: it was cancelled.
    Cancelled,
    /// E1102: it was not done within its time limit.
    TimeLimit,
    /// E1103: there was not enough memory.
    Memory,
    /// E1201: a compiler crashed, in this process or in a worker. Other compilations are not affected.
    Crash,
    /// E1202: the worker program cannot be used.
    Worker,
    /// E9901: a bug in gpulower.
    Internal,
}

impl ErrorKind {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 19] = [
        Self::Input,
        Self::Target,
        Self::Option,
        Self::Lowering,
        Self::Symbols,
        Self::Link,
        Self::CodeGeneration,
        Self::Assembly,
        Self::Toolkit,
        Self::Image,
        Self::Export,
        Self::Cache,
        Self::Listener,
        Self::Cancelled,
        Self::TimeLimit,
        Self::Memory,
        Self::Crash,
        Self::Worker,
        Self::Internal,
    ];

    /// The code, which stays the same in all releases: `E0401`.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Input => "E0101",
            Self::Target => "E0201",
            Self::Option => "E0202",
            Self::Lowering => "E0301",
            Self::Symbols => "E0401",
            Self::Link => "E0402",
            Self::CodeGeneration => "E0501",
            Self::Assembly => "E0502",
            Self::Toolkit => "E0601",
            Self::Image => "E0701",
            Self::Export => "E0801",
            Self::Cache => "E0901",
            Self::Listener => "E1001",
            Self::Cancelled => "E1101",
            Self::TimeLimit => "E1102",
            Self::Memory => "E1103",
            Self::Crash => "E1201",
            Self::Worker => "E1202",
            Self::Internal => "E9901",
        }
    }

    /// The kind of what LLVM said.
    pub(crate) fn of_llvm(error: &LlvmError) -> Self {
        match error {
            LlvmError::Crashed(_) => Self::Crash,
            _ => Self::CodeGeneration,
        }
    }

    /// The kind of a cause.
    pub(super) fn of(cause: &Cause) -> Self {
        match cause {
            Cause::Input(error) => of_input(error),
            Cause::Target(_) | Cause::Emit(_) => Self::Target,
            Cause::Option(_) => Self::Option,
            Cause::Lower(error) => of_lowering(error),
            Cause::Llvm(error) => ErrorKind::of_llvm(error),
            Cause::Device(error) => of_device(error),
            Cause::Toolkit(_) => Self::Toolkit,
            Cause::Serialize(error) => of_ptx_compiler(error),
            Cause::Cubin(_) | Cause::Hsaco(_) | Cause::Pack(_) => Self::Image,
            Cause::Join(JoinError::Duplicates(_) | JoinError::Mismatches(_)) => Self::Symbols,
            Cause::Join(_) => Self::Link,
            Cause::DeviceLink(DeviceLinkError::Refused { kind, .. }) => *kind,
            Cause::DeviceLink(DeviceLinkError::Tool { .. }) => Self::Link,
            Cause::Offload(error) => error.kind,
            Cause::Cache(_) => Self::Cache,
            Cause::Listener { .. } => Self::Listener,
            Cause::Interrupted(error) => of_interrupt(*error),
            Cause::Worker(error) => match error {
                WorkerError::Crashed { .. } => Self::Crash,
                WorkerError::Memory { .. } => Self::Memory,
                _ => Self::Worker,
            },
            Cause::Stack(_) => Self::Memory,
            Cause::Internal(_) => Self::Internal,
        }
    }
}

fn of_input(error: &InputError) -> ErrorKind {
    match error {
        InputError::Fatal { error, .. } => match ErrorKind::of_llvm(error) {
            ErrorKind::CodeGeneration => ErrorKind::Input,
            other => other,
        },
        InputError::Stack(_) => ErrorKind::Memory,
        InputError::NoTarget { .. } | InputError::UnknownTargetAttribute { .. } | InputError::PtxForAmd { .. } => {
            ErrorKind::Target
        }
        _ => ErrorKind::Input,
    }
}

fn of_lowering(error: &LowerError) -> ErrorKind {
    match error {
        LowerError::Fatal(error) => ErrorKind::of_llvm(error),
        LowerError::Pipeline(_) => ErrorKind::Internal,
        _ => ErrorKind::Lowering,
    }
}

fn of_device(error: &DeviceError) -> ErrorKind {
    match error {
        DeviceError::Llvm(error) => ErrorKind::of_llvm(error),
        DeviceError::Library { .. } => ErrorKind::Link,
        DeviceError::LibraryMissing { .. } => ErrorKind::Toolkit,
        DeviceError::Unresolved(_) => ErrorKind::Symbols,
        DeviceError::WrongTarget { .. } => ErrorKind::Target,
        DeviceError::LargeValue { .. } | DeviceError::ForeignValue { .. } => ErrorKind::CodeGeneration,
        DeviceError::Empty => ErrorKind::Input,
        DeviceError::NotApart => ErrorKind::Link,
        DeviceError::Misaligned { .. } | DeviceError::TooMuch { .. } | DeviceError::SymbolName { .. } => {
            ErrorKind::Lowering
        }
        DeviceError::Interrupted(error) => of_interrupt(*error),
        DeviceError::Listener { .. } => ErrorKind::Listener,
    }
}

fn of_ptx_compiler(error: &SerializeError) -> ErrorKind {
    match error {
        SerializeError::Refused { kind, .. } => *kind,
        SerializeError::Compile { .. } => ErrorKind::Assembly,
        SerializeError::Timeout { .. } => ErrorKind::TimeLimit,
        SerializeError::Cancelled { .. } => ErrorKind::Cancelled,
    }
}

const fn of_interrupt(error: InterruptError) -> ErrorKind {
    match error {
        InterruptError::Cancelled => ErrorKind::Cancelled,
        InterruptError::TimeLimit { .. } => ErrorKind::TimeLimit,
    }
}

/// The code.
impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_in_order_and_documented() {
        let codes: Vec<&str> = ErrorKind::ALL.iter().map(|kind| kind.code()).collect();
        assert!(codes.is_sorted_by(|a, b| a < b), "{codes:?}");
        let page = include_str!("../../docs/errors.md");
        for code in codes {
            assert!(
                page.contains(&format!("| {code} |")),
                "docs/errors.md does not list {code}"
            );
        }
    }
}
