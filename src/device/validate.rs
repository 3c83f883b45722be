//! Checks that have to come before LLVM, which would end the process over what they find.

use inkwell::values::AnyValue;

use super::{DeviceError, Refusal, lower::LONGEST_VECTOR};
use crate::{
    bridge::{
        large_values::{LargeValue, ValueLimits, large_value},
        llvm::DeviceModule,
    },
    error::ErrorKind,
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
            // LLVM 22 has no code for it, and crashes.
            no_intrinsics(
                module,
                target,
                &["llvm.frameaddress."],
                "chips of AMD have no frame addresses; take the address of a variable",
            )?;
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
            return Err(Refusal::wrong_target(&format!("the intrinsic {name}"), target, advice).into());
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
        Some(kernel) => {
            let what = format!("the kernel {} of the other vendor", kernel.get_name().to_string_lossy());
            Err(Refusal::wrong_target(&what, target, ADVICE).into())
        }
        None => Ok(()),
    }
}

/// Whether somebody has to run functions of the module before its kernels, or after them.
pub(super) fn has_constructors(module: &DeviceModule<'_>) -> bool {
    let module = module.inkwell();
    let lists = ["llvm.global_ctors", "llvm.global_dtors"].map(|name| module.get_global(name));
    let lists = lists.into_iter().flatten().filter_map(|list| list.get_initializer());
    lists
        .into_iter()
        .any(|list| list.is_array_value() && list.print_to_string().to_string().contains('@'))
}

/// Refuses constructors for NVIDIA, after LLVM's passes, which carry out those that they can: no part of CUDA runs any. On AMD,
/// they are kernels that the loader runs (LLVM's AMDGPUUsage, "Kernel Metadata", `.kind`).
pub(super) fn no_constructors(module: &DeviceModule<'_>, target: &Target) -> Result<(), DeviceError> {
    if target.vendor() == Vendor::Nvidia && has_constructors(module) {
        let what = "a constructor or destructor (llvm.global_ctors, llvm.global_dtors)";
        let advice = "CUDA runs none, and LLVM's passes carry out what stores constants, from -O1 on; give variables constant values, \
                      or set them in a kernel";
        return Err(Refusal::wrong_target(what, target, advice).into());
    }
    Ok(())
}

/// Refuses symbols that the output has no way to write, which is a fatal error of LLVM's without a name, or an error of NVIDIA's
/// compiler or of lld about something else. What is internal gets another name.
pub(super) fn symbol_names(module: &DeviceModule<'_>, vendor: Vendor) -> Result<(), DeviceError> {
    for symbol in module.symbols() {
        let text = std::str::from_utf8(&symbol.name);
        if symbol.name.is_empty() || symbol.name.starts_with(b"llvm.") {
            continue;
        }
        let (is_writable, reason) = match vendor {
            // Of these LLVM makes letters.
            Vendor::Nvidia if symbol.is_internal => {
                let letter = |&byte: &u8| if b".@".contains(&byte) { b'_' } else { byte };
                let plain: Vec<u8> = symbol.name.iter().map(letter).collect();
                (
                    is_identifier_of_ptx(&plain) || plain != symbol.name && plain == b"_",
                    "",
                )
            }
            Vendor::Nvidia => (is_identifier_of_ptx(&symbol.name), OF_PTX),
            Vendor::Amd => (text.is_ok_and(|text| !text.contains(['@', '\0'])), OF_ELF),
        };
        if is_writable {
            continue;
        }
        if !symbol.is_internal {
            let name = String::from_utf8_lossy(&symbol.name).into_owned();
            let message = format!("the symbol {name:?} {reason}");
            return Err(Refusal::lowering(message).about(&name).into());
        }
        let name = String::from_utf8_lossy(&symbol.name);
        let plain = name.replace(|c: char| !u8::try_from(c).is_ok_and(is_letter), "_");
        // With a letter in front, and never `_` alone.
        symbol.rename(&format!("_{plain}_"));
    }
    Ok(())
}

const OF_PTX: &str = "is none that PTX has: use letters, digits, _ and $, with no digit in front, and not _ or $ alone";
const OF_ELF: &str =
    "cannot be one of a code object: it has an @, a NUL, or bytes that are not UTF-8; use other characters";

const fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// PTX ISA, "Identifiers".
fn is_identifier_of_ptx(name: &[u8]) -> bool {
    match name {
        [b'_' | b'$'] | [] => false,
        [first, ..] => !first.is_ascii_digit() && name.iter().all(|&byte| is_letter(byte)),
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
        LargeValue::Foreign => {
            let message = format!(
                "the function {function} works with a value of type x86_fp80, ppc_fp128 or target(...), which no GPU computes \
                 with, and LLVM crashes on: use another type"
            );
            return Err(Refusal::new(ErrorKind::CodeGeneration, message).into());
        }
    };
    let message = format!(
        "the function {function} works with {what} at once, and LLVM, which takes minutes for such a value or crashes, is given \
         at most {most}: work on parts of it in a loop, or leave it in memory"
    );
    Err(Refusal::new(ErrorKind::CodeGeneration, message).into())
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
