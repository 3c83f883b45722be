//! The symbols of a lowered module, and where its source says they are.

use melior::ir::{
    AttributeLike, Module, RegionLike,
    operation::{OperationLike, OperationRef},
};

use super::lower::name_of;
use crate::{
    bridge::mlir::{self, operations, place_of, symbol_attribute_name},
    error::Location,
};

/// The symbols that a lowered module defines for itself alone: functions and variables with `private` visibility. In LLVM
/// IR they look like any others.
pub fn private_definitions(module: &Module<'_>) -> Vec<String> {
    operations(module)
        .into_iter()
        .filter(|operation| {
            let has_body = |operation: &OperationRef<'_, '_>| {
                operation.region(0).is_ok_and(|region| region.first_block().is_some())
            };
            let is_definition = match name_of(operation).as_str() {
                "llvm.func" => has_body(operation),
                "llvm.mlir.global" => has_body(operation) || operation.has_attribute("value"),
                _ => false,
            };
            is_definition
                && operation
                    .attribute("sym_visibility")
                    .is_ok_and(|visibility| visibility.to_string() == "\"private\"")
        })
        .filter_map(|operation| symbol_of(&operation))
        .collect()
}

/// Where a lowered module defines or declares `symbol`.
pub fn location_of_symbol(module: &Module<'_>, symbol: &str) -> Option<Location> {
    operations(module)
        .into_iter()
        .filter(|operation| matches!(name_of(operation).as_str(), "llvm.func" | "llvm.mlir.global"))
        .find(|operation| symbol_of(operation).as_deref() == Some(symbol))
        .map(|operation| place_of(operation.location()))
}

pub(super) fn symbol_of(operation: &OperationRef<'_, '_>) -> Option<String> {
    mlir::string_value(operation.attribute(symbol_attribute_name()).ok()?)
}

/// Where an operation calls or names `symbol`.
pub fn location_of_use(module: &Module<'_>, symbol: &str) -> Option<Location> {
    let reference = format!("@{symbol}");
    let quoted = format!("@\"{symbol}\"");
    operations(module)
        .into_iter()
        .filter(|operation| matches!(name_of(operation).as_str(), "llvm.call" | "llvm.mlir.addressof"))
        .find(|operation| {
            operation.attributes().any(|(_, attribute)| {
                attribute.is_flat_symbol_ref() && {
                    let text = mlir::shown(&attribute);
                    text == reference || text == quoted
                }
            })
        })
        .map(|operation| place_of(operation.location()))
}
