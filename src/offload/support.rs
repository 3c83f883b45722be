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
    host::HostOptions,
    openmp::{FLAG_STRICT, KernelCall, USUAL_SHARED_MEMORY},
    program::Runtime,
    release::ClangRelease,
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

/// What messages call the functions that stand on libomptarget's.
const OPENMP_FUNCTIONS: [(&str, &str); 5] = [
    ("Malloc", "omp_target_alloc"),
    ("MallocManaged", "llvm_omp_target_alloc_shared"),
    ("Free", "omp_target_free"),
    ("MemcpyAsync", "omp_target_memcpy"),
    ("MemsetAsync", "omp_target_memcpy"),
];

/// The text of the support functions for a runtime and a host.
fn text(runtime: Runtime, triple: &HostTriple, releases: &[ClangRelease]) -> String {
    let vendor = match runtime {
        Runtime::Cuda => include_str!("support_cuda.mlir").to_owned(),
        Runtime::Hip => include_str!("support_hip.mlir").to_owned(),
        Runtime::OpenMp => for_releases(include_str!("support_openmp.mlir"), KernelCall::of(releases)),
    };
    let common = include_str!("support.mlir");
    let common = match runtime {
        Runtime::Cuda | Runtime::Hip => common.to_owned(),
        // What the others declare is defined there.
        Runtime::OpenMp => {
            let declares = |line: &&str| line.starts_with("llvm.func @$rt");
            let rest = common.lines().filter(|line| !declares(line));
            let mut text = rest.fold(String::new(), |text, line| text + line + "\n");
            for (name, function) in OPENMP_FUNCTIONS {
                text = text.replace(&format!("\"$rt{name}\\00\""), &format!("\"{function}\\00\""));
            }
            text
        }
    };
    let (kind, grid, block) = match triple.architecture() {
        HostArchitecture::X86_64 => ("i32", "%gz32", "%bz32"),
        HostArchitecture::AArch64 => ("i64", "%gz", "%bz"),
    };
    let narrow = |from: &str, to: &str| match triple.architecture() {
        HostArchitecture::X86_64 => format!("{to} = llvm.bitcast {from} : i32 to i32"),
        HostArchitecture::AArch64 => format!("{to} = llvm.trunc {from} : i64 to i32"),
    };
    format!("{common}{vendor}")
        .replace("$narrow_gz", &narrow("%gz", "%gz_32"))
        .replace("$narrow_bz", &narrow("%bz", "%bz_32"))
        .replace("$rt", runtime.prefix())
        .replace("$gz", grid)
        .replace("$bz", block)
        .replace("$z", kind)
}

/// The support functions for OpenMP, as libomptarget of some releases launches kernels.
fn for_releases(text: &str, call: KernelCall) -> String {
    let (dimensions, shared) = match (call.multidimensional, call.large_shared_memory) {
        (many, true) => (many, u64::from(u32::MAX)),
        (many, false) => (many, USUAL_SHARED_MEMORY - 1),
    };
    text.replace("$version", &call.version().to_string())
        .replace(
            "$strict",
            &if call.leading_pointer { FLAG_STRICT } else { 0 }.to_string(),
        )
        .replace("$dimensions", if dimensions { "true" } else { "false" })
        // Releases without further dimensions have zeros there; the others take 0 for 1.
        .replace("$one", if dimensions { "1" } else { "0" })
        .replace("$most_shared", &shared.to_string())
}

/// Gives the host code the definitions that it calls and that the support functions have.
pub(super) fn link<'c>(context: &'c Context, host: &mut Module<'c>, options: &HostOptions) -> Result<(), OffloadError> {
    let source = text(options.runtime, &options.triple, &options.releases);
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
        refuse_pinning(options.runtime, &needed)?;
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
        Ok(())
    })
}

/// Refuses memory of the host that kernels are to see under its own address, of which libomptarget knows nothing.
fn refuse_pinning(runtime: Runtime, needed: &[String]) -> Result<(), OffloadError> {
    match needed.iter().find(|name| name.starts_with("mgpuMemHostRegister")) {
        Some(_) if runtime == Runtime::OpenMp => Err(OffloadError::new(
            "gpu.host_register cannot be exported for OpenMP: libomptarget has no function that lets kernels see memory of the \
             host under its own address; use gpu.alloc host_shared, or copy with gpu.memcpy",
        )),
        _ => Ok(()),
    }
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
                && !is_of_runtime(runtime, name)
        })
        .map(|(name, _)| name)
        .collect()
}

fn is_of_runtime(runtime: Runtime, name: &str) -> bool {
    match runtime {
        Runtime::OpenMp => ["omp_", "llvm_omp_", "__tgt_"]
            .iter()
            .any(|prefix| name.starts_with(prefix)),
        Runtime::Cuda | Runtime::Hip => name
            .strip_prefix(runtime.prefix())
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase())),
    }
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

    fn options(runtime: Runtime) -> HostOptions {
        HostOptions::new(runtime, triple("x86_64-unknown-linux-gnu"), "test.mlir")
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
        link(&context, &mut host, &options(Runtime::Hip)).expect("links");
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
        link(&context, &mut host, &options(Runtime::Cuda)).expect("links");
        assert_eq!(symbols(host.as_operation()).len(), 1);
    }

    #[test]
    fn every_runtime_and_host_parses() {
        let context = compiler::context();
        for runtime in Runtime::ALL {
            for (host, dimension) in [
                ("x86_64-unknown-linux-gnu", "i64, i32, i64, i32"),
                ("aarch64-unknown-linux-gnu", "i64, i64, i64, i64"),
            ] {
                let releases = [ClangRelease::NEWEST];
                let text = text(runtime, &triple(host), &releases);
                assert!(!text.contains('$'), "a placeholder is left");
                if runtime != Runtime::OpenMp {
                    assert!(text.contains(&format!("LaunchKernel(!llvm.ptr, {dimension}, !llvm.ptr")));
                }
                let module = compiler::parse(&context, "support", text.as_bytes()).expect("parses");
                assert!(module.as_operation().verify(), "{runtime:?} on {host}");
            }
        }
    }
}
