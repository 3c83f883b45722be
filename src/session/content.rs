//! What tells one module from another: hashes of its text, and of what is compiled.

use melior::ir::{
    Module,
    operation::{OperationLike, OperationRef},
};

use crate::{
    bridge::mlir::{operations, string_value, symbol_attribute_name},
    cache::Key,
    compiler::{Compiler, Content, Emit},
    device::lower::name_of,
    target::Target,
};

/// A hash of a source as it was given: where it is known, nothing has to be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SourceHash(blake3::Hash);

impl SourceHash {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes))
    }
}

/// The content that is compiled for one target by one compiler, before anything is added to it.
pub(super) fn begin(compiler: &Compiler, target: &Target, emit: Emit) -> Content {
    let options = compiler.options();
    let content = Content::new(options.debug)
        .field("target", target.to_string())
        .field("emit", emit.name());
    options.identity().fold(content, |content, (name, value)| {
        content.field("option", name).field("value", value)
    })
}

/// What `gpu.module`s of the caller's own are.
pub(super) fn of_modules(begun: &Content, modules: &[OperationRef<'_, '_>]) -> Key {
    let all = modules
        .iter()
        .fold(begun.clone(), |content, module| content.module(*module, Some(*module)));
    all.finish()
}

/// The variables and functions that a module defines and others may want to refer to.
pub(super) fn definitions(module: &Module<'_>) -> Vec<String> {
    let is_definition = |operation: &OperationRef<'_, '_>| {
        let has_body = || {
            operation
                .region(0)
                .is_ok_and(|region| melior::ir::RegionLike::first_block(&region).is_some())
        };
        match name_of(operation).as_str() {
            "memref.global" => operation.has_attribute("initial_value"),
            "llvm.mlir.global" => operation.has_attribute("value") || has_body(),
            "func.func" | "llvm.func" | "gpu.func" => has_body(),
            _ => false,
        }
    };
    operations(module)
        .into_iter()
        .filter(is_definition)
        .filter_map(|operation| {
            let name = operation.attribute(symbol_attribute_name()).ok()?;
            string_value(name)
        })
        .collect()
}
