//! The words of `opts` for AMD's chips. Upstream's `gpu-module-to-binary` takes any, and does nothing with them there; those
//! that projects write mean what clang and llc mean by them.

use melior::ir::{
    Attribute,
    operation::{OperationLike, OperationRef},
};

use crate::{
    bridge::mlir::{context_of, operations_below, set_attribute},
    options::Options,
    target::Target,
};

/// What a kernel says about itself in MLIR.
const WAVES: &str = "rocdl.waves_per_eu";

/// What the words mean for modules that are compiled for these targets, all AMD's.
pub(super) fn apply(
    words: &[String],
    targets: &[Target],
    options: &mut Options,
    modules: &[OperationRef<'_, '_>],
) -> Result<(), String> {
    for word in words {
        let word_itself = word.trim_start_matches('-');
        let (name, value) = word_itself.split_once('=').unwrap_or((word_itself, ""));
        match (name, value.parse::<u32>().ok().filter(|number| *number > 0)) {
            // The places that the module has are kept in any case.
            ("g", _) => {}
            ("amdgpu-num-vgpr", Some(registers)) => {
                options.max_registers = Some(vector_registers(registers, targets)?);
            }
            ("amdgpu-waves-per-eu", Some(waves)) => modules.iter().for_each(|module| set_waves(*module, waves)),
            _ => {
                return Err(format!(
                    "option 'opts' has the word '{word}', which means nothing for AMD: expected -g, --amdgpu-num-vgpr=N or \
                     --amdgpu-waves-per-eu=N"
                ));
            }
        }
    }
    Ok(())
}

/// `max-registers` for so many vector registers: it counts accumulation registers where they come out of the same file.
fn vector_registers(registers: u32, targets: &[Target]) -> Result<u32, String> {
    let unified = |target: &Target| matches!(target, Target::Amd(chip) if chip.has_unified_registers());
    match targets.iter().filter(|target| unified(target)).count() {
        0 => Ok(registers),
        count if count == targets.len() => Ok(registers.saturating_mul(2)),
        _ => Err(
            "option 'opts' has --amdgpu-num-vgpr for chips whose registers are counted in two ways: give \
                  max-registers to gpulower-attach-targets, for each chip"
                .to_owned(),
        ),
    }
}

/// As clang's `amdgpu_waves_per_eu`, on kernels that do not say it themselves.
fn set_waves(module: OperationRef<'_, '_>, waves: u32) {
    let context = context_of(module.context());
    let Some(attribute) = Attribute::parse(context, &format!("{waves} : i32")) else {
        return;
    };
    for function in operations_below(module) {
        let is_kernel = ["gpu.kernel", "rocdl.kernel", "kernel"]
            .iter()
            .any(|name| function.has_attribute(name));
        if is_kernel && !function.has_attribute(WAVES) {
            set_attribute(function, WAVES, attribute);
        }
    }
}
