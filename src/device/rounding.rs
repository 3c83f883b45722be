//! Rounding modes of conversions: those that cannot be computed are refused while it is known where they are.

use melior::ir::{
    Module, ValueLike,
    attribute::IntegerAttribute,
    operation::{OperationLike, OperationRef},
};

use super::{
    DeviceError,
    lower::{name_of, refused},
};
use crate::{
    bridge::mlir::{operations, remove_attribute, shown},
    target::Target,
};

/// The attribute, of `arith` and of `llvm` operations alike.
const MODE: &str = "roundingmode";

/// `arith::RoundingMode` (mlir/include/mlir/Dialect/Arith/IR/ArithBase.td), as it is written.
const MODES: [&str; 5] = [
    "to_nearest_even",
    "downward",
    "upward",
    "toward_zero",
    "to_nearest_away",
];

/// Element types of which `bridge/cpp/rounding.cpp` knows the bits.
const KNOWN: [&str; 4] = ["f16", "bf16", "f32", "f64"];

/// `llvm::RoundingMode` (llvm/include/llvm/ADT/FloatingPointMode.h): to nearest even, and whatever the mode is.
const NEAREST: [i64; 2] = [1, 7];
const NEAREST_AWAY: i64 = 4;

/// Removes modes that are the usual one, and refuses those that nothing here computes.
pub(super) fn check_rounding_modes(module: &Module<'_>, target: &Target) -> Result<(), DeviceError> {
    for operation in operations(module) {
        let Some(mode) = mode_of(operation) else { continue };
        let name = name_of(&operation);
        let unknown = match name.as_str() {
            _ if name.starts_with("llvm.intr.experimental.constrained.") => {
                // The rest is up to the types, and checked with LLVM's own.
                let integers = name.ends_with("itofp");
                (integers && !NEAREST.contains(&mode) && (matches!(target, Target::Amd(_)) || mode == NEAREST_AWAY))
                    .then(|| format!("mode {mode} of llvm.RoundingMode"))
            }
            "arith.truncf" | "arith.scaling_truncf" if mode == 0 => {
                remove_attribute(operation, MODE);
                None
            }
            "arith.truncf" if KNOWN.contains(&result_element(operation).as_str()) => None,
            _ => {
                let mode = usize::try_from(mode).ok().and_then(|mode| MODES.get(mode));
                mode.map(|mode| (*mode).to_owned())
            }
        };
        if let Some(mode) = unknown {
            let kind = result_element(operation);
            let message = format!(
                "{name} to {kind} cannot round {mode} for {target}: round to nearest even, or convert the bits as integers"
            );
            return Err(refused(message, operation));
        }
    }
    Ok(())
}

fn mode_of(operation: OperationRef<'_, '_>) -> Option<i64> {
    IntegerAttribute::try_from(operation.attribute(MODE).ok()?)
        .ok()
        .map(|mode| mode.value())
}

/// The type of a result's elements, as text.
fn result_element(operation: OperationRef<'_, '_>) -> String {
    let text = operation
        .result(0)
        .map_or_else(|_| String::new(), |result| shown(&result.r#type()));
    let element = text.trim_end_matches('>').rsplit(['x', '<']).next().unwrap_or_default();
    element.to_owned()
}
