//! LLVM IR, read by LLVM for the check.

use std::thread;

use gpulower_image::offload::check::{HostConstants, ImageSymbols, LlvmIrReader};
use inkwell::{GlobalVisibility, module::Linkage, values::GlobalValue};

use crate::bridge::{LlvmError, constants, llvm::DeviceContext};

/// LLVM's readers recurse with the nesting of their input.
const STACK_BYTES: usize = 64 << 20;

/// Reads with the LLVM that is linked in, on a thread with a stack of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithLlvm;

impl LlvmIrReader for WithLlvm {
    fn constants(
        &self,
        bytes: &[u8],
        wanted: &(dyn Fn(&str) -> bool + Sync),
        limit: u64,
    ) -> Result<HostConstants, String> {
        thread::scope(|scope| {
            let thread = thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn_scoped(scope, || host_constants(bytes, wanted, limit))
                .map_err(|error| format!("no thread can be started to read it: {error}"))?;
            let read = thread
                .join()
                .map_err(|_| "internal error: the reader panicked".to_owned())?;
            read.map_err(|error| error.to_string().lines().next().unwrap_or_default().to_owned())
        })
    }

    fn symbols(&self, bitcode: &[u8]) -> Option<ImageSymbols> {
        symbols(bitcode)
    }
}

fn host_constants(
    bytes: &[u8],
    wanted: &(dyn Fn(&str) -> bool + Sync),
    limit: u64,
) -> Result<HostConstants, LlvmError> {
    let context = DeviceContext::new();
    let module = context.parse(bytes, "LLVM IR")?;
    let constants = constants::of_sections(&module, wanted, limit)?;
    let names = module
        .inkwell()
        .get_globals()
        .map(|global| global.get_name().to_string_lossy().into_owned());
    let starts = names
        .filter_map(|name| Some(name.strip_prefix("__start_")?.to_owned()))
        .collect();
    Ok(HostConstants { constants, starts })
}

/// Calling conventions of kernels: `PTX_Kernel` and `AMDGPU_KERNEL` of `llvm/IR/CallingConv.h`.
const KERNEL_CONVENTIONS: [u32; 2] = [71, 91];

/// The kernels, variables and functions of a module; none if it cannot be read.
fn symbols(bytes: &[u8]) -> Option<ImageSymbols> {
    let context = DeviceContext::new();
    let module = context.parse(bytes, "image").ok()?;
    let module = module.inkwell();
    let mut symbols = ImageSymbols::default();
    for function in module.get_functions() {
        let global = function.as_global_value();
        if function.get_first_basic_block().is_none() || !is_seen(global) {
            continue;
        }
        let name = function.get_name().to_string_lossy().into_owned();
        if KERNEL_CONVENTIONS.contains(&function.get_call_conventions()) {
            symbols.kernels.insert(name.clone());
        }
        if function.get_linkage() == Linkage::External {
            symbols.unique.insert(name);
        }
    }
    for global in module.get_globals() {
        if global.is_declaration() || !is_seen(global) {
            continue;
        }
        let name = global.get_name().to_string_lossy().into_owned();
        if global.get_linkage() == Linkage::External {
            symbols.unique.insert(name.clone());
        }
        symbols.variables.insert(name);
    }
    Some(symbols)
}

/// Whether others see a definition once it is linked.
fn is_seen(global: GlobalValue<'_>) -> bool {
    !matches!(global.get_linkage(), Linkage::Internal | Linkage::Private)
        && global.get_visibility() != GlobalVisibility::Hidden
}
