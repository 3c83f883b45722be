//! An error of a worker as plain data.
//!
//! The causes that callers tell apart come back as what they were, all others as their words. Either way the error reads as
//! it would in this process.

use serde::{Deserialize, Serialize};

use crate::{
    bridge::{LlvmError, mlir::MlirDiagnostic},
    compiler::InputError,
    device::{DeviceError, UnresolvedSymbol, lower::LowerError},
    error::{Cause, Error},
    interrupt::InterruptError,
    serialize::nvidia::{Decision, SerializeError},
    stage::Stage,
    target::Target,
};

/// An [`Error`] on its way.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireError {
    stage: Stage,
    module: Option<String>,
    target: Option<Target>,
    kernels: Vec<String>,
    location: Option<String>,
    cause: WireCause,
}

#[derive(Debug, Serialize, Deserialize)]
enum WireCause {
    Input(Vec<MlirDiagnostic>),
    Lower(Vec<MlirDiagnostic>),
    Llvm(LlvmError),
    Device(LlvmError),
    Unresolved(Vec<UnresolvedSymbol>),
    NoPtxCompiler { chip: String, decisions: Vec<Decision> },
    Interrupted(InterruptError),
    Internal(String),
    Other(String),
}

impl From<Error> for WireError {
    fn from(error: Error) -> Self {
        let cause = match *error.cause {
            Cause::Input(InputError::Mlir(diagnostics)) => WireCause::Input(diagnostics),
            Cause::Lower(LowerError::Refused(diagnostics)) => WireCause::Lower(diagnostics),
            Cause::Llvm(error) => WireCause::Llvm(error),
            Cause::Device(DeviceError::Llvm(error)) => WireCause::Device(error),
            Cause::Device(DeviceError::Unresolved(symbols)) => WireCause::Unresolved(symbols),
            Cause::Serialize(SerializeError::NoCompiler { chip, decisions }) => {
                WireCause::NoPtxCompiler { chip, decisions }
            }
            Cause::Interrupted(reason) => WireCause::Interrupted(reason),
            Cause::Internal(text) => WireCause::Internal(text),
            other => WireCause::Other(other.to_string()),
        };
        Self {
            stage: error.stage,
            module: error.module,
            target: error.target,
            kernels: error.kernels,
            location: error.location,
            cause,
        }
    }
}

impl From<WireError> for Error {
    fn from(error: WireError) -> Self {
        let cause = match error.cause {
            WireCause::Input(diagnostics) => InputError::Mlir(diagnostics).into(),
            WireCause::Lower(diagnostics) => LowerError::Refused(diagnostics).into(),
            WireCause::Llvm(error) => error.into(),
            WireCause::Device(error) => DeviceError::Llvm(error).into(),
            WireCause::Unresolved(symbols) => DeviceError::Unresolved(symbols).into(),
            WireCause::NoPtxCompiler { chip, decisions } => SerializeError::NoCompiler { chip, decisions }.into(),
            WireCause::Interrupted(reason) => reason.into(),
            WireCause::Internal(text) => Cause::Internal(text),
            WireCause::Other(text) => Cause::Relayed(text),
        };
        Self {
            stage: error.stage,
            module: error.module,
            target: error.target,
            kernels: error.kernels,
            location: error.location,
            cause: Box::new(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compiler::EmitError, compiler::worker::protocol};

    fn relayed(error: Error) -> Error {
        let wire = WireError::from(error);
        let frame = protocol::encode(&wire).expect("encoded");
        protocol::decode::<WireError>(&frame[4..]).expect("decoded").into()
    }

    fn diagnostic(line: u32) -> MlirDiagnostic {
        MlirDiagnostic {
            is_error: true,
            location: format!("\"k.mlir\":{line}:5"),
            message: format!("no {line}"),
            notes: vec![("\"k.mlir\":1:1".to_owned(), "a note".to_owned())],
        }
    }

    #[test]
    fn errors_read_the_same_on_the_other_side() {
        let symbols = vec![UnresolvedSymbol {
            name: "f".to_owned(),
            kernels: vec!["k".to_owned()],
            location: Some("\"k.mlir\":2:3".to_owned()),
            advice: "define it".to_owned(),
        }];
        let causes: Vec<Cause> = vec![
            InputError::Mlir(vec![diagnostic(1)]).into(),
            LowerError::Refused(vec![diagnostic(3), diagnostic(4)]).into(),
            LlvmError::Fatal("Cannot select: x".to_owned()).into(),
            DeviceError::Llvm(LlvmError::Refused("no".to_owned())).into(),
            DeviceError::Unresolved(symbols).into(),
            DeviceError::Empty.into(),
            EmitError::Unknown { name: "x".to_owned() }.into(),
            InterruptError::Cancelled.into(),
            Cause::Internal("x".to_owned()),
        ];
        for cause in causes {
            let make = |cause| {
                Error::new(Stage::Link, cause)
                    .in_module("m")
                    .for_target(&"gfx90a:xnack-".parse().expect("a target"))
            };
            let error = make(cause);
            let (text, place, kernels) = (error.to_string(), error.place(), error.kernels.clone());
            let again = relayed(error);
            assert_eq!(again.to_string(), text);
            assert_eq!(again.place(), place);
            assert_eq!(again.kernels, kernels);
            assert_eq!((again.stage, again.module.as_deref()), (Stage::Link, Some("m")));
        }
    }

    #[test]
    fn what_callers_tell_apart_stays_what_it_was() {
        let error = relayed(Error::new(Stage::CodeGen, LlvmError::Fatal("x".to_owned())));
        assert!(matches!(*error.cause, Cause::Llvm(LlvmError::Fatal(_))));
        let error = relayed(Error::new(Stage::Link, DeviceError::Unresolved(Vec::new())));
        assert!(matches!(*error.cause, Cause::Device(DeviceError::Unresolved(_))));
        let no_compiler = SerializeError::NoCompiler {
            chip: "sm_90".to_owned(),
            decisions: Vec::new(),
        };
        let error = relayed(Error::new(Stage::PtxToCubin, no_compiler));
        assert!(matches!(
            *error.cause,
            Cause::Serialize(SerializeError::NoCompiler { .. })
        ));
    }
}
