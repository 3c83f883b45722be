//! The functions behind host code's calls for the GPU, written in the LLVM dialect (`support*.mlir`): `mgpu*` and launches
//! on top of the CUDA or HIP runtime. What is used of them becomes part of the host code.

use std::collections::{BTreeMap, BTreeSet};

use melior::{
    Context,
    ir::{
        BlockLike, Module, RegionLike,
        operation::{Operation, OperationLike, OperationRef},
    },
};

use super::{
    error::OffloadError,
    program::Runtime,
    triple::{HostArchitecture, HostTriple},
};
use crate::{
    bridge::{
        edit::{edit, into_operations, view},
        mlir::{capture_diagnostics, operations_below, parse_module, symbol_path},
    },
    compiler::symbol_name,
    device::lower::name_of,
};

/// The text of the support functions for a runtime and a host.
fn text(runtime: Runtime, triple: &HostTriple) -> String {
    let vendor = match runtime {
        Runtime::Cuda => include_str!("support_cuda.mlir"),
        Runtime::Hip => include_str!("support_hip.mlir"),
    };
    let (kind, grid, block) = match triple.architecture() {
        HostArchitecture::X86_64 => ("i32", "%gz32", "%bz32"),
        HostArchitecture::AArch64 => ("i64", "%gz", "%bz"),
    };
    format!("{}{vendor}", include_str!("support.mlir"))
        .replace("$rt", runtime.prefix())
        .replace("$gz", grid)
        .replace("$bz", block)
        .replace("$z", kind)
}

/// Gives the host code the definitions that it calls and that the support functions have.
pub(super) fn link<'c>(
    context: &'c Context,
    host: &mut Module<'c>,
    runtime: Runtime,
    triple: &HostTriple,
) -> Result<(), OffloadError> {
    let source = text(runtime, triple);
    let (support, diagnostics) = capture_diagnostics(context, || parse_module(context, "support", source.as_bytes()));
    let support = support.map_err(|error| {
        let reason = diagnostics
            .first()
            .map_or_else(|| error.to_string(), |first| first.message.clone());
        OffloadError::internal(format!("the support functions cannot be parsed: {reason}"))
    })?;
    let mut offered = owned_symbols(support)?;
    edit(host, |host, edits| {
        let declared = symbols(host);
        let mut present = BTreeSet::new();
        let mut needed = Vec::new();
        for (name, operation) in &declared {
            match offered.get(name) {
                // Declared by a call; a definition of the user's own stays.
                Some(_) if is_declaration(*operation) => needed.push(name.clone()),
                _ => {
                    present.insert(name.clone());
                }
            }
            needed.extend(references(*operation));
        }
        while let Some(name) = needed.pop() {
            if present.contains(&name) {
                continue;
            }
            let Some(definition) = offered.remove(&name) else {
                continue;
            };
            needed.extend(references(view(&definition)));
            match declared.get(&name) {
                Some(declaration) => edits.replace(*declaration, definition),
                None => edits.append(host, definition),
            }
            present.insert(name);
        }
    });
    Ok(())
}

/// The functions and variables of a module, by value and by name.
pub(super) fn owned_symbols<'c>(module: Module<'c>) -> Result<BTreeMap<String, Operation<'c>>, OffloadError> {
    let operations = into_operations(module)
        .map_err(|_| OffloadError::internal("functions written here use each other's values".to_owned()))?;
    let symbols = operations.into_iter().filter(|operation| is_symbol(view(operation)));
    Ok(symbols
        .map(|operation| (symbol_name(view(&operation)), operation))
        .collect())
}

fn is_symbol(operation: OperationRef<'_, '_>) -> bool {
    matches!(name_of(&operation).as_str(), "llvm.func" | "llvm.mlir.global")
}

/// The functions that host code calls and does not define, the runtime's own and LLVM's intrinsics apart.
pub(super) fn external_functions(host: &Module<'_>, runtime: Runtime) -> Vec<String> {
    symbols(host.as_operation())
        .into_iter()
        .filter(|(name, operation)| {
            name_of(operation) == "llvm.func"
                && is_declaration(*operation)
                && !name.starts_with("llvm.")
                && !name
                    .strip_prefix(runtime.prefix())
                    .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
        })
        .map(|(name, _)| name)
        .collect()
}

/// Whether a module defines a function.
pub(super) fn defines(host: &Module<'_>, function: &str) -> bool {
    symbols(host.as_operation())
        .get(function)
        .is_some_and(|operation| name_of(operation) == "llvm.func" && !is_declaration(*operation))
}

/// The functions and variables of a module, by name.
pub(super) fn symbols<'c, 'a>(module: OperationRef<'c, 'a>) -> BTreeMap<String, OperationRef<'c, 'a>> {
    let mut symbols = BTreeMap::new();
    let block = module.region(0).ok().and_then(|region| region.first_block());
    let mut next = block.and_then(|block| block.first_operation());
    while let Some(operation) = next {
        if is_symbol(operation) {
            symbols.insert(symbol_name(operation), operation);
        }
        next = operation.next_in_block();
    }
    symbols
}

fn is_declaration(operation: OperationRef<'_, '_>) -> bool {
    name_of(&operation) == "llvm.func" && operation.region(0).is_ok_and(|region| region.first_block().is_none())
}

/// The symbols that an operation, and all inside of it, refers to.
fn references(operation: OperationRef<'_, '_>) -> Vec<String> {
    operations_below(operation)
        .into_iter()
        .filter_map(|inner| {
            let attribute = match name_of(&inner).as_str() {
                "llvm.call" => "callee",
                "llvm.mlir.addressof" => "global_name",
                _ => return None,
            };
            symbol_path(inner.attribute(attribute).ok()?)?.into_iter().next()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler;

    fn triple(text: &str) -> HostTriple {
        text.parse().expect("a host")
    }

    #[test]
    fn only_what_is_used_is_linked() {
        let context = compiler::context();
        let mut host = compiler::parse(
            &context,
            "host.mlir",
            b"llvm.func @mgpuMemFree(!llvm.ptr, !llvm.ptr)
              llvm.func @f(%p: !llvm.ptr) {
                llvm.call @mgpuMemFree(%p, %p) : (!llvm.ptr, !llvm.ptr) -> ()
                llvm.return
              }",
        )
        .expect("parses");
        link(&context, &mut host, Runtime::Hip, &triple("x86_64-unknown-linux-gnu")).expect("links");
        assert!(host.as_operation().verify());
        let names: Vec<String> = symbols(host.as_operation()).into_keys().collect();
        assert_eq!(
            names,
            [
                "__gpulower_check",
                "__gpulower_failed",
                "__gpulower_name_free",
                "__gpulower_name_stream_synchronize",
                "dprintf",
                "exit",
                "f",
                "hipFree",
                "hipGetErrorName",
                "hipGetErrorString",
                "hipStreamSynchronize",
                "mgpuMemFree",
                "mgpuStreamSynchronize"
            ]
        );
        assert_eq!(external_functions(&host, Runtime::Hip), ["dprintf", "exit"]);
    }

    #[test]
    fn a_function_of_the_users_stays() {
        let context = compiler::context();
        let source = b"llvm.func @mgpuMemFree(%a: !llvm.ptr, %b: !llvm.ptr) { llvm.return }";
        let mut host = compiler::parse(&context, "host.mlir", source).expect("parses");
        link(&context, &mut host, Runtime::Cuda, &triple("x86_64-unknown-linux-gnu")).expect("links");
        assert_eq!(symbols(host.as_operation()).len(), 1);
    }

    #[test]
    fn every_runtime_and_host_parses() {
        let context = compiler::context();
        for runtime in [Runtime::Cuda, Runtime::Hip] {
            for (host, dimension) in [
                ("x86_64-unknown-linux-gnu", "i64, i32, i64, i32"),
                ("aarch64-unknown-linux-gnu", "i64, i64, i64, i64"),
            ] {
                let text = text(runtime, &triple(host));
                assert!(!text.contains('$'), "a placeholder is left");
                assert!(text.contains(&format!("LaunchKernel(!llvm.ptr, {dimension}, !llvm.ptr")));
                let module = compiler::parse(&context, "support", text.as_bytes()).expect("parses");
                assert!(module.as_operation().verify(), "{runtime:?} on {host}");
            }
        }
    }
}
