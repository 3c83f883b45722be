//! Checks that have to come before LLVM, which would end the process over what they find.

use super::DeviceError;
use crate::{
    bridge::llvm::DeviceModule,
    target::{Target, Vendor},
};

const ADVICE: &str = "compile it for a chip of that vendor, or lower it from the gpu dialect for this one";

/// Refuses intrinsics of the other vendor: "Cannot select" is a fatal error.
pub(super) fn no_foreign_intrinsics(module: &DeviceModule<'_>, target: &Target) -> Result<(), DeviceError> {
    let foreign: &[&str] = match target.vendor() {
        Vendor::Nvidia => &["llvm.amdgcn.", "llvm.r600."],
        Vendor::Amd => &["llvm.nvvm."],
    };
    for function in module.inkwell().get_functions() {
        let name = function.get_name().to_string_lossy();
        if foreign.iter().any(|prefix| name.starts_with(prefix)) {
            return Err(DeviceError::WrongTarget {
                what: format!("the intrinsic {name}"),
                target: target.to_string(),
                advice: ADVICE,
                location: None,
            });
        }
    }
    Ok(())
}

/// Refuses kernels of the other vendor, whose calling convention LLVM meets with a fatal error.
pub(super) fn no_foreign_kernels(module: &DeviceModule<'_>, target: &Target) -> Result<(), DeviceError> {
    // `llvm/include/llvm/IR/CallingConv.h`.
    const PTX_KERNEL: u32 = 71;
    const AMDGPU_KERNEL: u32 = 91;
    let foreign = match target.vendor() {
        Vendor::Nvidia => AMDGPU_KERNEL,
        Vendor::Amd => PTX_KERNEL,
    };
    let kernel = module
        .inkwell()
        .get_functions()
        .find(|function| function.get_call_conventions() == foreign);
    match kernel {
        Some(kernel) => Err(DeviceError::WrongTarget {
            what: format!("the kernel {} of the other vendor", kernel.get_name().to_string_lossy()),
            target: target.to_string(),
            advice: ADVICE,
            location: None,
        }),
        None => Ok(()),
    }
}

/// Refuses an operation of the other vendor's dialects in a module that has been lowered.
pub(super) fn foreign_dialect(operation_name: &str, target: &Target) -> Option<&'static str> {
    let foreign: &[&str] = match target.vendor() {
        Vendor::Nvidia => &["rocdl", "amdgpu"],
        Vendor::Amd => &["nvvm", "nvgpu"],
    };
    let dialect = operation_name.split('.').next().unwrap_or(operation_name);
    foreign.contains(&dialect).then_some(ADVICE)
}
