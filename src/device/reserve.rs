//! Registers for functions of other objects that AMD kernels call.
//!
//! LLVM gives a kernel which calls a function that it cannot see the most registers that any function of the module uses.
//! A function that is never called and names the registers of the others thus makes the kernels fit; lld itself would join
//! them without looking.

use std::fmt::Write;

use super::DeviceError;
use crate::{
    bridge::{
        LlvmError,
        llvm::{DeviceContext, DeviceModule},
    },
    image::symbols::FunctionRegisters,
};

/// Adds a function to `module` that uses as many registers as `others`.
pub(super) fn reserve<'c>(
    context: &'c DeviceContext,
    module: &DeviceModule<'c>,
    others: FunctionRegisters,
) -> Result<(), DeviceError> {
    if others == FunctionRegisters::default() || !calls_others(module)? {
        return Ok(());
    }
    let mut clobbers = Vec::new();
    for (kind, count) in [('v', others.vector), ('a', others.accumulation), ('s', others.scalar)] {
        if let Some(last) = count.checked_sub(1) {
            clobbers.push(format!("~{{{kind}{last}}}"));
        }
    }
    let mut text = String::new();
    // The attributes permit every register: the limits of the kernels do not apply to it. It is kept, but never runs.
    let _ = write!(
        text,
        "@llvm.compiler.used = appending global [1 x ptr] [ptr @{NAME}], section \"llvm.metadata\"\n\
         define internal void @{NAME}() #0 {{\n  call void asm sideeffect \"\", \"{}\"()\n  ret void\n}}\n\
         attributes #0 = {{ noinline \"amdgpu-flat-work-group-size\"=\"1,64\" \"amdgpu-waves-per-eu\"=\"1,1\" }}\n",
        clobbers.join(",")
    );
    module.join(context.parse(text.as_bytes(), NAME)?)?;
    Ok(())
}

/// The function's name.
const NAME: &str = "__gpulower_registers_of_other_objects";

/// Whether the module calls functions that it does not define, intrinsics apart.
fn calls_others(module: &DeviceModule<'_>) -> Result<bool, LlvmError> {
    Ok(!module.undefined_symbols()?.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::{DeviceJob, DeviceOutput, LoadedLibrary, StageClock, VendorLibrary, generate_code};
    use crate::bridge::llvm::DeviceContext;
    use crate::image::hsaco::Hsaco;
    use crate::image::symbols::{FunctionRegisters, LinkInterface};
    use crate::options::Options;
    use crate::toolkit::ToolkitError;

    /// Vector (with accumulation, where they are one file), accumulation and scalar registers of the kernel.
    fn registers(chip: &str, defined: &str, others: FunctionRegisters) -> (u32, u32, u32) {
        let text = "declare i32 @other(i32)\ndefine i32 @own(i32 %x) noinline { ret i32 %x }\n\
            define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n  %x = load i32, ptr addrspace(1) %p\n\
              %y = call i32 @CALLEE(i32 %x)\n  store i32 %y, ptr addrspace(1) %p\n  ret void\n}\n";
        let text = text.replace("CALLEE", defined);
        let context = DeviceContext::new();
        let module = context.parse(text.as_bytes(), "m").expect("parses");
        let target = chip.parse().expect("a target");
        let resolved = Options::default().resolve(&target, None).expect("resolves");
        let missing = |_: VendorLibrary| -> Result<LoadedLibrary, ToolkitError> { panic!("no library is needed") };
        let job = DeviceJob {
            name: "m",
            resolved: &resolved,
            libraries: &[],
            vendor_library: &missing,
            locate: &|_| None,
            listeners: &[],
            for_each: &crate::device::in_turn,
            kept_parts: None,
            decide: &|_| {},
            own: None,
            has_places: false,
        };
        let interface = LinkInterface {
            defined: ["other".to_owned()].into(),
            registers: others,
            ..LinkInterface::default()
        };
        let mut clock = StageClock::default();
        let object = generate_code(&context, module, &job, &interface, DeviceOutput::Object, &mut clock);
        let object = object.expect("compiles");
        let hsaco = Hsaco::read(&object).expect("an object");
        let kernel = hsaco.resources().next().expect("a kernel");
        (
            kernel.vgprs.unwrap_or(0),
            kernel.agprs.unwrap_or(0),
            kernel.sgprs.unwrap_or(0),
        )
    }

    #[test]
    fn kernels_get_the_registers_of_the_functions_they_call() {
        let others = FunctionRegisters {
            vector: 100,
            accumulation: 36,
            scalar: 80,
        };
        assert_eq!(registers("gfx942", "other", others), (136, 36, 86));
        let (vector, ..) = registers("gfx942", "other", FunctionRegisters::default());
        assert!(vector < 64, "{vector}");
        // Nothing is reserved for a kernel that stays within its module.
        let (vector, ..) = registers("gfx942", "own", others);
        assert!(vector < 64, "{vector}");
        let others = FunctionRegisters {
            vector: 200,
            accumulation: 0,
            scalar: 80,
        };
        let (vector, ..) = registers("gfx1100", "other", others);
        assert_eq!(vector, 200);
    }
}
