//! What tells one module from another: one hash for compiler and session.

use melior::ir::{
    BlockLike,
    attribute::StringAttribute,
    operation::{OperationLike, OperationRef},
};

use super::{
    components::Component,
    input::InputKind,
    request::{Request, Source},
};
use crate::{
    bridge::mlir::{context_of, generic_text, set_attribute, shown, symbol_attribute_name},
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
                let has_places = content.debug != DebugLevel::None;
                let components = if has_places { None } else { module.components() };
                let module = module.lock();
                let (root, kernels) = (module.module().as_operation(), module.module().body().first_operation());
                match components {
                    Some(components) => content.components(&[Some(root), kernels], &components),
                    None => content.module(root, kernels),
                }
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
        let mut text = generic_text(root, false, false);
        // An assertion that fails names its place, with or without debug info.
        if self.debug != DebugLevel::None || text.contains("\"cf.assert\"") {
            text = generic_text(root, false, true);
        }
        // The contents of resources are in the text of a whole file alone.
        if text.contains("dense_resource<") {
            text.push_str(&generic_text(outermost(root), false, false));
        }
        if let Some((module, kept)) = kept {
            set_attribute(module, name, kept);
        }
        self.field(InputKind::Mlir.name(), text)
    }

    /// Adds a module that consists of `components`: what it takes to compile them was printed to find them. `around` is what
    /// they are in.
    fn components(self, around: &[Option<OperationRef<'_, '_>>], components: &[Component]) -> Self {
        let mut content = self.field("components", components.len().to_string());
        for operation in around.iter().flatten() {
            for (name, attribute) in operation.attributes() {
                let name = name.as_string_ref();
                let name = name.as_str().unwrap_or_default();
                if name != symbol_attribute_name() {
                    content = content.field(name, shown(&attribute));
                }
            }
        }
        for component in components {
            for (place, name) in &component.functions {
                content = content.field(name, place.to_string());
            }
            content = content.field(
                if component.is_nameless { "nameless" } else { "named" },
                component.traits.content,
            );
        }
        content
    }

    /// What identifies it.
    pub(crate) fn finish(&self) -> Key {
        self.key.finish()
    }
}

/// The operation that everything is in.
fn outermost<'c, 'a>(operation: OperationRef<'c, 'a>) -> OperationRef<'c, 'a> {
    std::iter::successors(Some(operation), OperationLike::parent_operation)
        .last()
        .unwrap_or(operation)
}
