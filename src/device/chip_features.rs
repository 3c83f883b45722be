//! Which chip the functions of a module for AMD say that they are for. LLVM's AMDGPU back end believes what a function says
//! (`target-cpu`, `target-features`) before it believes what it is asked for: it writes code of gfx1100 into an object for
//! gfx942, waves of the other size, and leaves out functions with a feature that their chip lacks, all without a word.
//! clang and rustc write both attributes on every function, so the chip that is asked for has to win, as it does where clang
//! links a library of bitcode.

use std::collections::HashSet;

use inkwell::{
    attributes::AttributeLoc,
    values::{BasicValue, FunctionValue},
};

use super::{DeviceError, Refusal};
use crate::{
    bridge::{llvm::DeviceModule, target_machine::TargetMachine},
    options::{Resolved, ResolvedVendor},
    target::{Target, Vendor},
};

const CPU: &str = "target-cpu";
const FEATURES: &str = "target-features";

/// Features that say how a function is to run and not what its chip has: they stay with the function.
const MODES: &[&str] = &["cumode", "precise-memory", "sramecc", "tgsplit", "xnack"];

/// Those of them that the name of a target may say, as in `gfx90a:xnack+`.
const OF_CHIP_IDS: &[&str] = &["sramecc", "xnack"];

/// The functions of a module, before libraries are linked to it. Nothing for NVIDIA.
pub(super) fn functions(module: &DeviceModule<'_>, resolved: &Resolved) -> HashSet<Vec<u8>> {
    if resolved.target.vendor() != Vendor::Amd {
        return HashSet::new();
    }
    with_features(module).map(name_of).collect()
}

/// Makes every function one for the chip of `machine`. A feature of one that names no chip is a demand, and stays, for
/// [`check`]; of one that names a chip it tells what that chip has. `own` are those that come from no library.
pub(super) fn settle(
    module: &DeviceModule<'_>,
    machine: &TargetMachine,
    resolved: &Resolved,
    own: &HashSet<Vec<u8>>,
) -> Result<(), DeviceError> {
    let ResolvedVendor::Amd {
        wave_size, features, ..
    } = &resolved.vendor
    else {
        return Ok(());
    };
    let Target::Amd(chip) = &resolved.target else {
        return Ok(());
    };
    let mut known = None;
    for function in with_features(module) {
        let names_a_chip = attribute(function, CPU).is_some();
        function.remove_string_attribute(AttributeLoc::Function, CPU);
        function.remove_string_attribute(AttributeLoc::Function, "tune-cpu");
        // AMD's libraries are for every chip, and know at run time which one it is: what they never call may want anything.
        let is_one_of_many = !names_a_chip && is_discardable(function) && !own.contains(&name_of(function));
        let said = attribute(function, FEATURES).unwrap_or_default();
        // The attribute takes the place of what the machine was made with.
        let mut kept: Vec<&str> = features.split(',').filter(|feature| !feature.is_empty()).collect();
        for feature in said.split(',').filter(|feature| !feature.is_empty()) {
            let name = feature.trim_start_matches(['+', '-']);
            if name.starts_with("wavefrontsize") {
                let other = feature.starts_with('+') && name != format!("wavefrontsize{wave_size}");
                if other && !is_one_of_many && !is_left_out(function) {
                    return Err(refused(function, feature, resolved, OF_WAVES));
                }
                continue;
            }
            // A setting of the chip as a whole that this one does not have, LLVM takes back, and prints so.
            let of_no_use = OF_CHIP_IDS.contains(&name) && !chip.supported_features().contains(&name);
            if of_no_use || (names_a_chip && OF_CHIP_IDS.contains(&name)) {
                continue;
            }
            // LLVM prints something about one that it does not know, and goes on.
            let known = known.get_or_insert_with(|| machine.chip_features());
            match known.get(name) {
                // A setting, or a mode.
                Some(None) => kept.push(feature),
                Some(_) if MODES.contains(&name) => kept.push(feature),
                // Code generation takes what the chip has for granted, and crashes without some of it.
                Some(_) if !names_a_chip && feature.starts_with('+') => kept.push(feature),
                None if !names_a_chip && !is_one_of_many => return Err(refused(function, feature, resolved, OF_NAMES)),
                _ => {}
            }
        }
        let kept = module
            .inkwell()
            .get_context()
            .create_string_attribute(FEATURES, &kept.join(","));
        function.add_attribute(AttributeLoc::Function, kept);
    }
    Ok(())
}

/// Refuses functions with a feature that the chip of `machine` lacks, after LLVM's passes: AMD's libraries have functions for
/// many chips, and ask which one it is.
pub(super) fn check(
    module: &DeviceModule<'_>,
    machine: &TargetMachine,
    resolved: &Resolved,
    own: &HashSet<Vec<u8>>,
) -> Result<(), DeviceError> {
    if resolved.target.vendor() != Vendor::Amd {
        return Ok(());
    }
    let mut known = None;
    let unoptimized = resolved.optimization.number() == 0 || resolved.input_optimized;
    for function in with_features(module) {
        let is_of_library = unoptimized && is_discardable(function) && !own.contains(&name_of(function));
        let may_be_dead = is_left_out(function) || is_of_library;
        if may_be_dead {
            continue;
        }
        for feature in attribute(function, FEATURES).unwrap_or_default().split(',') {
            let Some(name) = feature.strip_prefix('+').filter(|name| !MODES.contains(name)) else {
                continue;
            };
            let known = known.get_or_insert_with(|| machine.chip_features());
            if known.get(name) == Some(&Some(false)) {
                return Err(refused(function, feature, resolved, OF_CHIPS));
            }
        }
    }
    Ok(())
}

const OF_WAVES: &str =
    "it was made for waves of that size; compile with that --wave-size, for a chip that has it, or make it for another";
const OF_NAMES: &str = "LLVM 22 knows no such feature; check the spelling, or the version of LLVM it was written for";
const OF_CHIPS: &str = "the chip lacks it, and LLVM would leave the function out; compile for a chip that has it, or take it from target-features";

fn refused(function: FunctionValue<'_>, feature: &str, resolved: &Resolved, advice: &'static str) -> DeviceError {
    let function = function.get_name().to_string_lossy();
    let what = format!("the function {function} with the feature {feature}");
    Refusal::wrong_target(&what, &resolved.target, advice).into()
}

fn with_features<'c>(module: &DeviceModule<'c>) -> impl Iterator<Item = FunctionValue<'c>> {
    let has = |function: &FunctionValue<'_>| attribute(*function, CPU).or_else(|| attribute(*function, FEATURES));
    module
        .inkwell()
        .get_functions()
        .filter(move |function| function.count_basic_blocks() > 0 && has(function).is_some())
}

fn name_of(function: FunctionValue<'_>) -> Vec<u8> {
    function.get_name().to_bytes().to_vec()
}

fn attribute(function: FunctionValue<'_>, key: &str) -> Option<String> {
    let attribute = function.get_string_attribute(AttributeLoc::Function, key)?;
    Some(attribute.get_string_value().to_string_lossy().into_owned())
}

fn is_discardable(function: FunctionValue<'_>) -> bool {
    use inkwell::module::Linkage::{AvailableExternally, Internal, LinkOnceAny, LinkOnceODR, Private};
    matches!(
        function.get_linkage(),
        AvailableExternally | Internal | LinkOnceAny | LinkOnceODR | Private
    )
}

fn is_left_out(function: FunctionValue<'_>) -> bool {
    let address = function.as_global_value().as_pointer_value();
    is_discardable(function) && address.get_first_use().is_none()
}
