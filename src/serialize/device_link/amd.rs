//! Linking of AMDGPU objects, with lld.

use std::collections::BTreeSet;

use super::amd_registers;
use super::error::{DeviceLinkError, InputProblem};
use super::input::Unit;
use super::resolve::{self, Object};
use super::{LinkOptions, LinkedImage};
use crate::image::elf::Elf;
use crate::image::hsaco::Hsaco;
use crate::image::hsaco_flags::{Feature, TargetFlags};
use crate::image::symbols::LinkSymbols;
use crate::serialize::amd::{self, NamedObject};
use crate::target::AmdTarget;

pub(super) fn link(
    units: &[Unit<'_>],
    target: AmdTarget,
    options: &LinkOptions,
) -> Result<LinkedImage, DeviceLinkError> {
    options.check_for_amd()?;
    let mut objects = Vec::with_capacity(units.len());
    let mut flags = Vec::with_capacity(units.len());
    let mut sections: BTreeSet<&str> = BTreeSet::new();
    for unit in units {
        let refuse = |problem: InputProblem| DeviceLinkError::input(&unit.name, problem);
        let elf = Elf::parse(&unit.bytes).map_err(|error| refuse(error.into()))?;
        let symbols = LinkSymbols::of_amd_object(&elf).map_err(|error| refuse(error.into()))?;
        sections.extend(elf.sections().iter().map(|section| section.name));
        flags.push(TargetFlags::from_e_flags(elf.header().flags));
        objects.push(Object { unit, symbols });
    }
    let taken = resolve::participants(&objects);
    check_targets(units, &flags, &taken, target)?;
    resolve::refuse_duplicates(&taken)?;
    let missing = resolve::missing(&taken, |name| {
        amd::is_made_by_linker(name, |section| sections.contains(section))
    });
    if !missing.is_empty() {
        return Err(DeviceLinkError::Unresolved(missing));
    }
    let inputs: Vec<NamedObject<'_>> = taken
        .iter()
        .map(|object| NamedObject {
            name: &object.unit.name,
            bytes: &object.unit.bytes,
        })
        .collect();
    let linked = amd::link_objects(&inputs)?;
    let read = Hsaco::read(&linked.bytes).map_err(DeviceLinkError::UnreadableHsaco)?;
    let kernels: Vec<_> = read.resources().cloned().collect();
    let kept: BTreeSet<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    let tool = format!("lld {major}.{minor}.{patch}");
    resolve::refuse_lost_kernels(&taken, &kept, &tool)?;
    amd_registers::check(&taken, &kernels, target)?;
    Ok(LinkedImage {
        kernels,
        inputs: taken.iter().map(|object| object.unit.name.clone()).collect(),
        log: String::new(),
        warnings: linked.warnings,
        tool,
        bytes: linked.bytes,
    })
}

/// Refuses objects for another chip or for other settings than the target's, and objects that contradict each other.
fn check_targets(
    units: &[Unit<'_>],
    flags: &[TargetFlags],
    taken: &[&Object<'_, '_>],
    target: AmdTarget,
) -> Result<(), DeviceLinkError> {
    let taken: Vec<(&Unit<'_>, &TargetFlags)> = units
        .iter()
        .zip(flags)
        .filter(|(unit, _)| taken.iter().any(|object| std::ptr::eq(object.unit, *unit)))
        .collect();
    let settings = |flags: &TargetFlags| [flags.sramecc, flags.xnack];
    for (index, (unit, its)) in taken.iter().enumerate() {
        for (other, others) in taken.iter().skip(index + 1) {
            let contradict =
                |pair: (Feature, Feature)| matches!(pair, (Feature::On, Feature::Off) | (Feature::Off, Feature::On));
            if its.machine != others.machine || settings(its).into_iter().zip(settings(others)).any(contradict) {
                return Err(DeviceLinkError::Incompatible {
                    first: unit.name.clone(),
                    first_target: its.to_string(),
                    second: other.name.clone(),
                    second_target: others.to_string(),
                });
            }
        }
    }
    for (unit, flags) in taken {
        let fits = |feature: Feature, asked: Option<bool>| match feature {
            Feature::On => asked == Some(true),
            Feature::Off => asked == Some(false),
            Feature::Any | Feature::Unsupported => true,
        };
        if flags.processor != Some(target.chip())
            || !fits(flags.sramecc, target.sramecc())
            || !fits(flags.xnack, target.xnack())
        {
            return Err(DeviceLinkError::input(
                &unit.name,
                InputProblem::WrongTarget {
                    found: flags.to_string(),
                    target: target.to_string(),
                    advice: format!("link for {flags}, or compile it for {target}"),
                },
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "amd_tests.rs"]
mod tests;
