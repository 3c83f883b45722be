//! What tells one module from another: hashes of its text, and of what is compiled.

use melior::ir::{
    Module,
    attribute::StringAttribute,
    operation::{OperationLike, OperationPrintingFlags, OperationRef},
};

use crate::{
    bridge::mlir::{context_of, operations, set_attribute, string_value, symbol_attribute_name},
    compiler::{Compiler, Emit},
    device::lower::name_of,
    options::DebugLevel,
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

/// A hash of what is compiled, for what, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ContentHash(blake3::Hash);

impl ContentHash {
    #[cfg(test)]
    pub(super) fn plain(text: &str) -> Self {
        Self(blake3::hash(text.as_bytes()))
    }
}

/// Hashes contents that are compiled for one target with the options of one compiler.
pub(super) struct ContentHasher {
    begun: blake3::Hasher,
    debug: DebugLevel,
}

impl ContentHasher {
    pub(super) fn new(compiler: &Compiler, target: &Target, emit: Emit) -> Self {
        let options = compiler.options();
        let mut begun = blake3::Hasher::new();
        begun.update(format!("{target}\0{emit}\0{:?}\0", options.to_pairs()).as_bytes());
        Self {
            begun,
            debug: options.debug,
        }
    }

    /// The content of device LLVM IR or PTX.
    pub(super) fn device_source(&self, bytes: &[u8]) -> ContentHash {
        ContentHash(self.begun.clone().update(bytes).finalize())
    }

    /// The content of `gpu.module`s: their generic form without their names, and without places in the source unless
    /// these get into the code. The module is the caller's own: its operations are renamed for a moment.
    pub(super) fn modules(&self, modules: &[OperationRef<'_, '_>]) -> ContentHash {
        let mut hasher = self.begun.clone();
        for module in modules {
            let context = context_of(module.context());
            let name = symbol_attribute_name();
            let kept = module.attribute(name).ok();
            set_attribute(*module, name, StringAttribute::new(context, "kernels").into());
            let flags = || OperationPrintingFlags::new().print_generic_operation_form();
            let print = |flags| module.to_string_with_flags(flags).unwrap_or_default();
            let mut text = print(flags());
            // An assertion that fails names its place, with or without debug info.
            if self.debug != DebugLevel::None || text.contains("\"cf.assert\"") {
                text = print(flags().enable_debug_info(true, false));
            }
            if let Some(kept) = kept {
                set_attribute(*module, name, kept);
            }
            hasher.update(&text.len().to_le_bytes()).update(text.as_bytes());
        }
        ContentHash(hasher.finalize())
    }
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
