//! Modules that are the same but for their names: they are compiled once.

use std::collections::HashMap;

use melior::ir::{
    BlockLike,
    attribute::StringAttribute,
    operation::{OperationLike, OperationPrintingFlags},
};

use super::request::{Product, Request, SharedModule, Source};
use crate::{
    bridge::mlir::{context_of, set_attribute, symbol_attribute_name},
    options::DebugLevel,
    target::Target,
};

/// For each request the first one that gives the same images: itself, where there is none before it, or where its content
/// was not identified.
pub(super) fn first_of_each(requests: &[Request<'_>], contents: &[Option<Content>]) -> Vec<usize> {
    // For each target and what is made: the requests with these options, by what they compile.
    type Key = (Target, Vec<Product>, Content);
    let mut seen: HashMap<Key, Vec<usize>> = HashMap::new();
    requests
        .iter()
        .zip(contents)
        .enumerate()
        .map(|(index, (request, content))| {
            let Some(content) = content else { return index };
            let key = (request.target, request.products.clone(), *content);
            let candidates = seen.entry(key).or_default();
            let first = candidates.iter().copied().find(|candidate| {
                requests
                    .get(*candidate)
                    .is_some_and(|other| other.options == request.options)
            });
            first.unwrap_or_else(|| {
                candidates.push(index);
                index
            })
        })
        .collect()
}

/// A hash of what is compiled, without the name of the module, and without places in the source unless debug info
/// carries them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Content(blake3::Hash);

impl Content {
    pub(super) fn of(request: &Request<'_>) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in &request.parts {
            hasher.update(part.source.kind().name().as_bytes());
            hasher.update(content_of(&part.source, request.options.debug).as_bytes());
        }
        Self(hasher.finalize())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

fn content_of(source: &Source<SharedModule<'_>>, debug: DebugLevel) -> blake3::Hash {
    match source {
        Source::Llvm(bytes) => blake3::hash(bytes),
        Source::Ptx(text) => blake3::hash(text.as_bytes()),
        Source::Mlir(module) => {
            let module = module.lock();
            let module = module.module();
            let context = context_of(module.context());
            let name = symbol_attribute_name();
            let operation = module.body().first_operation();
            let kept = operation.and_then(|operation| operation.attribute(name).ok());
            if let Some(operation) = operation {
                set_attribute(operation, name, StringAttribute::new(context, "kernels").into());
            }
            let print = |flags| module.as_operation().to_string_with_flags(flags).unwrap_or_default();
            let mut text = print(OperationPrintingFlags::new());
            // An assertion that fails names its place, with or without debug info.
            if debug != DebugLevel::None || text.contains("cf.assert") {
                text = print(OperationPrintingFlags::new().enable_debug_info(true, false));
            }
            if let (Some(operation), Some(kept)) = (operation, kept) {
                set_attribute(operation, name, kept);
            }
            blake3::hash(text.as_bytes())
        }
    }
}
