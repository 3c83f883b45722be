//! Why a program cannot be exported, or its host code not be made ready to run.

use crate::{
    bridge::{LlvmError, edit::CopyError, mlir::MlirDiagnostic},
    container::WriteError,
    device::DeviceError,
    error::{ErrorKind, Location},
    target::TargetError,
};

/// Why a program cannot be exported, or its host code not be made ready to run: what is wrong, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct OffloadError {
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// Where it is.
    location: Option<Location>,
    /// Whether two things have one name, so that names of gpulower's own help.
    pub(crate) is_clash: bool,
    message: String,
}

impl OffloadError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            kind: ErrorKind::Export,
            location: None,
            is_clash: false,
            message: message.into(),
        }
    }

    /// Something of ours is wrong.
    pub(crate) fn internal(what: impl std::fmt::Display) -> Self {
        Self::new(format!("internal error: {what} (this is a bug in gpulower)")).of_kind(ErrorKind::Internal)
    }

    /// What compiling for a device says of the same program.
    pub(super) fn of_compilation(kind: ErrorKind, message: String, location: Option<Location>) -> Self {
        Self {
            kind,
            location,
            is_clash: false,
            message,
        }
    }

    /// Operations of the host code that no conversion knows, each once, and what the first of them takes and returns.
    pub(super) fn unsupported(names: &[String], types: &str) -> Self {
        let (all, advice) = (names.join(", "), advice(names));
        let message = format!("cannot lower {all} in host code: the first has the types {types}{advice}");
        Self::new(message).of_kind(ErrorKind::Lowering)
    }

    /// MLIR's passes refused the host code.
    pub(super) fn refused(diagnostics: &[MlirDiagnostic]) -> Self {
        let error = match diagnostics.first() {
            Some(first) => Self::new(first.message.clone()).at(first.location.clone()),
            None => Self::new("MLIR's passes refused the host code without a diagnostic"),
        };
        error.of_kind(ErrorKind::Lowering)
    }

    fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Gives it a place.
    pub(super) fn at(mut self, location: Location) -> Self {
        self.location = Some(location);
        self
    }

    pub(super) fn clash(mut self) -> Self {
        self.is_clash = true;
        self
    }

    /// Where the problem is.
    pub const fn location(&self) -> Option<&Location> {
        self.location.as_ref()
    }
}

impl From<LlvmError> for OffloadError {
    fn from(error: LlvmError) -> Self {
        Self::new(error.to_string()).of_kind(ErrorKind::of_llvm(&error))
    }
}

impl From<CopyError> for OffloadError {
    fn from(error: CopyError) -> Self {
        match error {
            CopyError::Open(diagnostic) => Self::refused(&[diagnostic]),
            CopyError::Failed(error) => error.into(),
        }
    }
}

impl From<DeviceError> for OffloadError {
    fn from(error: DeviceError) -> Self {
        match error {
            DeviceError::Mlir(diagnostics) => Self::refused(&diagnostics),
            DeviceError::Refused(refusal) => Self::of_compilation(refusal.kind, refusal.message, refusal.location),
            error => Self::internal(error),
        }
    }
}

impl From<TargetError> for OffloadError {
    fn from(error: TargetError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<WriteError> for OffloadError {
    fn from(error: WriteError) -> Self {
        Self::new(error.to_string())
    }
}

/// What there is instead of what was looked for.
pub(super) fn known(names: &[String]) -> String {
    match names {
        [] => "; there is none at all".to_owned(),
        [only] => format!("; there is {only}"),
        names => format!("; there are {}", names.join(", ")),
    }
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
        let known = |names: &[&str]| known(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(known(&["a", "b"]), "; there are a, b");
        assert_eq!(known(&["a"]), "; there is a");
        assert_eq!(known(&[]), "; there is none at all");
    }

    #[test]
    fn advice_depends_on_the_dialect() {
        let message = |name: &str| OffloadError::unsupported(&[name.to_owned()], "() -> ()").to_string();
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
