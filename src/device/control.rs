//! What tells code generation and the device libraries how to behave: module flags, function attributes, NVIDIA's
//! reflect values and AMD's control constants.

use inkwell::{
    AddressSpace, GlobalVisibility,
    attributes::AttributeLoc,
    module::{FlagBehavior, Linkage},
    values::UnnamedAddress,
};

use crate::{
    bridge::{LlvmError, llvm::DeviceModule},
    options::{Resolved, ResolvedVendor},
    target::Target,
};

/// AMDGPU's constant address space (LLVM's AMDGPUUsage, "Address Spaces").
const AMDGPU_CONSTANT: u16 = 4;

/// Functions of libdevice that have a faster, less precise sibling: nvcc's `-use_fast_math` uses it for the same list
/// (CUDA C++ Programming Guide, "Intrinsic Functions").
const FAST_SIBLINGS: &[(&str, &str)] = &[
    ("__nv_cosf", "__nv_fast_cosf"),
    ("__nv_exp10f", "__nv_fast_exp10f"),
    ("__nv_expf", "__nv_fast_expf"),
    ("__nv_log10f", "__nv_fast_log10f"),
    ("__nv_log2f", "__nv_fast_log2f"),
    ("__nv_logf", "__nv_fast_logf"),
    ("__nv_powf", "__nv_fast_powf"),
    ("__nv_sincosf", "__nv_fast_sincosf"),
    ("__nv_sinf", "__nv_fast_sinf"),
    ("__nv_tanf", "__nv_fast_tanf"),
];

/// Before libraries are linked.
pub(super) fn prepare(module: &DeviceModule<'_>, resolved: &Resolved) {
    let llvm = module.inkwell();
    let context = llvm.get_context();
    match &resolved.vendor {
        ResolvedVendor::Nvidia { .. } => {
            if resolved.fast {
                for (precise, fast) in FAST_SIBLINGS {
                    if let Some(function) = llvm.get_function(precise)
                        && function.count_basic_blocks() == 0
                        && llvm.get_function(fast).is_none()
                    {
                        function.as_global_value().set_name(fast);
                    }
                }
            }
        }
        ResolvedVendor::Amd {
            code_object_version, ..
        } => {
            if llvm.get_flag("amdhsa_code_object_version").is_none() {
                let value = context
                    .i32_type()
                    .const_int(code_object_version.module_flag().into(), false);
                llvm.add_basic_value_flag("amdhsa_code_object_version", FlagBehavior::Error, value);
            }
        }
    }
}

const FEATURES: &str = "target-features";

/// After libraries are linked: what has to hold for their functions too.
pub(super) fn finish(module: &DeviceModule<'_>, resolved: &Resolved) -> Result<(), LlvmError> {
    let llvm = module.inkwell();
    if resolved.flush_denormals {
        module.set_attribute("denormal-fp-math-f32", "preserve-sign,preserve-sign", false)?;
    }
    if let (ResolvedVendor::Amd { .. }, Some(old)) = (&resolved.vendor, llvm.get_function("llvm.amdgcn.s.memrealtime"))
    {
        // AMD's libraries up to ROCm 6 read the clock by an instruction that chips from gfx11 on do not have; LLVM would drop
        // the functions that say so, and take what they return for undefined.
        let clock = llvm
            .get_function("llvm.readsteadycounter")
            .unwrap_or_else(|| llvm.add_function("llvm.readsteadycounter", old.get_type(), None));
        let [old, clock] = [old, clock].map(|function| function.as_global_value().as_pointer_value());
        old.replace_all_uses_with(clock);
        for function in llvm.get_functions() {
            let Some(features) = function.get_string_attribute(AttributeLoc::Function, FEATURES) else {
                continue;
            };
            let features = features.get_string_value().to_string_lossy();
            let kept: Vec<&str> = features
                .split(',')
                .filter(|feature| *feature != "+s-memrealtime")
                .collect();
            let kept = llvm.get_context().create_string_attribute(FEATURES, &kept.join(","));
            function.add_attribute(AttributeLoc::Function, kept);
        }
    }
    if let ResolvedVendor::Nvidia { .. } = resolved.vendor {
        // LLVM takes __CUDA_FTZ from a module flag and has none for __CUDA_PREC_SQRT, which it reads as 0: then
        // libdevice's sqrtf would be approximate (llvm/llvm-project#131749).
        // Whoever made the module may have chosen already.
        let flush_denormals = resolved.flush_denormals || module.reflects_ftz();
        module.fold_reflect("__CUDA_FTZ", flush_denormals.into())?;
        module.fold_reflect("__CUDA_PREC_SQRT", resolved.precise_square_root.into())?;
        module.fold_reflect("__CUDA_PREC_DIV", resolved.precise_division.into())?;
        if llvm.get_flag("nvvm-reflect-ftz").is_none() {
            let value = llvm
                .get_context()
                .i32_type()
                .const_int(resolved.flush_denormals.into(), false);
            llvm.add_basic_value_flag("nvvm-reflect-ftz", FlagBehavior::Override, value);
        }
    }
    if let Some(registers) = resolved.max_registers {
        let (attribute, registers) = match resolved.target {
            Target::Nvidia(_) => ("nvvm.maxnreg", registers),
            // LLVM gives as many accumulation registers on top, out of the same file.
            Target::Amd(chip) if chip.has_unified_registers() => ("amdgpu-num-vgpr", (registers / 2).max(1)),
            Target::Amd(_) => ("amdgpu-num-vgpr", registers),
        };
        module.set_attribute(attribute, &registers.to_string(), true)?;
    }
    Ok(())
}

/// Defines the constants that AMD's libraries consult, unless the module has them.
///
/// Names and meanings: `oclc.h` of AMD's device libraries. The files of constants that ROCm ships are not used: they
/// lag behind the chips, and differ between releases in which constants exist.
pub(super) fn define_constants(module: &DeviceModule<'_>, resolved: &Resolved) {
    let (
        Target::Amd(chip),
        ResolvedVendor::Amd {
            wave_size,
            code_object_version,
            ..
        },
    ) = (&resolved.target, &resolved.vendor)
    else {
        return;
    };
    let llvm = module.inkwell();
    let context = llvm.get_context();
    let byte = context.i8_type();
    let word = context.i32_type();
    for (name, value, is_word) in [
        ("__oclc_ISA_version", chip.oclc_isa_version(), true),
        ("__oclc_ABI_version", code_object_version.oclc_abi_version(), true),
        ("__oclc_wavefrontsize64", u32::from(*wave_size == 64), false),
        ("__oclc_finite_only_opt", u32::from(resolved.fast), false),
        ("__oclc_unsafe_math_opt", u32::from(resolved.fast), false),
        ("__oclc_daz_opt", u32::from(resolved.flush_denormals), false),
        (
            "__oclc_correctly_rounded_sqrt32",
            u32::from(resolved.precise_square_root),
            false,
        ),
    ] {
        let existing = llvm.get_global(name);
        if existing.is_some_and(|global| !global.is_declaration()) {
            continue;
        }
        let kind = if is_word { word } else { byte };
        let initializer = kind.const_int(value.into(), false);
        let global = existing.unwrap_or_else(|| llvm.add_global(kind, Some(AddressSpace::from(AMDGPU_CONSTANT)), name));
        global.set_initializer(&initializer);
        global.set_constant(true);
        global.set_linkage(Linkage::LinkOnceODR);
        global.set_visibility(GlobalVisibility::Hidden);
        global.set_unnamed_address(UnnamedAddress::Local);
        global.set_alignment(if is_word { 4 } else { 1 });
    }
}
