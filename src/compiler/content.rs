//! What tells one module from another: one hash for compiler and session.

use melior::ir::{
    BlockLike,
    attribute::StringAttribute,
    operation::{OperationLike, OperationPrintingFlags, OperationRef},
};

use super::{
    input::InputKind,
    request::{Request, Source},
};
use crate::{
    bridge::mlir::{context_of, set_attribute, symbol_attribute_name},
    cache::{Key, KeyBuilder},
    options::DebugLevel,
};

/// Adds up what is compiled, without the names of modules, and without places in the source unless they get into the code.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    key: KeyBuilder,
    debug: DebugLevel,
}

impl Content {
    /// Starts a content that is compiled with this much debug info.
    pub(crate) fn new(debug: DebugLevel) -> Self {
        Self {
            key: KeyBuilder::new("content"),
            debug,
        }
    }

    /// What a request compiles.
    pub(super) fn of(request: &Request<'_>) -> Key {
        let start = Self::new(request.options.debug);
        let parts = request.parts.iter().fold(start, |content, part| match &part.source {
            Source::Llvm(bytes) => content.device_source(InputKind::Llvm, bytes),
            Source::Ptx(text) => content.device_source(InputKind::Ptx, text.as_bytes()),
            Source::Mlir(module) => {
                let module = module.lock();
                let module = module.module();
                content.module(module.as_operation(), module.body().first_operation())
            }
        });
        parts.finish()
    }

    /// Adds something else that tells contents apart.
    pub(crate) fn field(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        let key = self.key.field(name, value);
        Self { key, ..self }
    }

    /// Adds device LLVM IR or PTX.
    pub(crate) fn device_source(self, kind: InputKind, bytes: &[u8]) -> Self {
        self.field(kind.name(), bytes)
    }

    /// Adds what is in `root`, whatever the `gpu.module` in it is called, which is renamed for a moment.
    pub(crate) fn module<'c>(self, root: OperationRef<'c, '_>, module: Option<OperationRef<'c, '_>>) -> Self {
        let name = symbol_attribute_name();
        let kept = module.and_then(|module| Some((module, module.attribute(name).ok()?)));
        if let Some((module, _)) = kept {
            let context = context_of(module.context());
            set_attribute(module, name, StringAttribute::new(context, "kernels").into());
        }
        let flags = || OperationPrintingFlags::new().print_generic_operation_form();
        let print = |flags| root.to_string_with_flags(flags).unwrap_or_default();
        let mut text = print(flags());
        // An assertion that fails names its place, with or without debug info.
        if self.debug != DebugLevel::None || text.contains("\"cf.assert\"") {
            text = print(flags().enable_debug_info(true, false));
        }
        if let Some((module, kept)) = kept {
            set_attribute(module, name, kept);
        }
        self.field(InputKind::Mlir.name(), text)
    }

    /// What identifies it.
    pub(crate) fn finish(&self) -> Key {
        self.key.finish()
    }
}
