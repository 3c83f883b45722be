//! What device code as bitcode defines.

use inkwell::{GlobalVisibility, module::Linkage, values::GlobalValue};

use super::report::ImageSymbols;
use crate::bridge::llvm::DeviceContext;

/// Calling conventions of kernels: `PTX_Kernel` and `AMDGPU_KERNEL` of `llvm/IR/CallingConv.h`.
const KERNEL_CONVENTIONS: [u32; 2] = [71, 91];

/// The kernels, variables and functions of a module; none if it cannot be read.
pub(super) fn symbols(bytes: &[u8]) -> Option<ImageSymbols> {
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
