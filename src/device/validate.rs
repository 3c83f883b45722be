//! Checks that have to come before LLVM, which would end the process over what they find.

use super::{DeviceError, lower::LONGEST_VECTOR};
use crate::{
    bridge::{
        large_values::{LargeValue, ValueLimits, large_value},
        llvm::DeviceModule,
    },
    target::{Target, Vendor},
};

const ADVICE: &str = "compile it for a chip of that vendor, or lower it from the gpu dialect for this one";

/// Refuses intrinsics of the other vendor, for which "Cannot select" is a fatal error, and those of newer chips that LLVM selects
/// all the same, and crashes on when it writes them: the two halves of a barrier, and named barriers.
pub(super) fn no_foreign_intrinsics(module: &DeviceModule<'_>, target: &Target) -> Result<(), DeviceError> {
    match target {
        Target::Nvidia(_) => no_intrinsics(module, target, &["llvm.amdgcn.", "llvm.r600."], ADVICE),
        Target::Amd(chip) => {
            no_intrinsics(module, target, &["llvm.nvvm."], ADVICE)?;
            if chip.isa_version().major >= 12 {
                return Ok(());
            }
            let barriers = [
                "llvm.amdgcn.s.barrier.",
                "llvm.amdgcn.s.get.barrier.",
                "llvm.amdgcn.s.get.named.barrier.",
            ];
            let advice = "it is of gfx12 and newer; use llvm.amdgcn.s.barrier, or gpu.barrier in MLIR";
            no_intrinsics(module, target, &barriers, advice)
        }
    }
}

fn no_intrinsics(
    module: &DeviceModule<'_>,
    target: &Target,
    prefixes: &[&str],
    advice: &'static str,
) -> Result<(), DeviceError> {
    for function in module.inkwell().get_functions() {
        let name = function.get_name().to_string_lossy();
        if prefixes.iter().any(|prefix| name.starts_with(prefix)) {
            return Err(DeviceError::WrongTarget {
                what: format!("the intrinsic {name}"),
                target: target.to_string(),
                advice,
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

/// Refuses symbols that LLVM cannot write into PTX, which is a fatal error without a name. What is internal gets another name.
pub(super) fn names_of_ptx(module: &DeviceModule<'_>) -> Result<(), DeviceError> {
    use inkwell::module::Linkage;
    let is_visible = |linkage| !matches!(linkage, Linkage::Internal | Linkage::Private);
    let module = module.inkwell();
    let functions = module
        .get_functions()
        .filter(|function| is_visible(function.get_linkage()));
    let variables = module
        .get_globals()
        .filter(|variable| is_visible(variable.get_linkage()));
    let mut names = functions
        .map(|function| function.get_name().to_string_lossy().into_owned())
        .chain(variables.map(|variable| variable.get_name().to_string_lossy().into_owned()));
    // Those of `MCAsmInfo::isAcceptableChar` in LLVM; intrinsics are not written.
    let is_writable =
        |name: &str| name.starts_with("llvm.") || name.chars().all(|c| c.is_ascii_alphanumeric() || "_$.@".contains(c));
    match names.find(|name| !is_writable(name)) {
        Some(name) => Err(DeviceError::SymbolName { name }),
        None => Ok(()),
    }
}

/// The largest values that functions may work with. All of it measured with LLVM 22's AMDGPU back end, processor time:
///
/// - vectors as in [`lower::LONGEST_VECTOR`](super::lower::LONGEST_VECTOR); a store of 65536 elements crashes it;
/// - arrays and structures are taken apart into their members: a load and a store of 4096 bytes as one array takes some
///   seconds, of 16384 more than a minute, and 65536 crash it;
/// - a multiplication of 2048 bits takes 2.4 s, one of 4096 bits 27 s.
const VALUE_LIMITS: ValueLimits = ValueLimits {
    elements: LONGEST_VECTOR as u64,
    members: 4096,
    bits: 2048,
};

/// Refuses values that LLVM crashes on, or takes minutes over, wherever they come from: LLVM IR, libraries, or MLIR.
pub(super) fn no_large_values(module: &DeviceModule<'_>) -> Result<(), DeviceError> {
    let Some((function, value)) = large_value(module, &VALUE_LIMITS) else {
        return Ok(());
    };
    let (what, most) = match value {
        LargeValue::Vector(count) => (format!("a vector of {count} elements"), VALUE_LIMITS.elements),
        LargeValue::Aggregate(count) => (
            format!("an array or a structure of {count} members"),
            VALUE_LIMITS.members,
        ),
        LargeValue::Integer(bits) => (format!("an integer of {bits} bits"), VALUE_LIMITS.bits),
        LargeValue::Foreign => return Err(DeviceError::ForeignValue { function }),
    };
    Err(DeviceError::LargeValue { function, what, most })
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
