//! Linking of AMDGPU objects, with lld.

use std::collections::BTreeSet;

use super::DeviceLinkError;
use super::amd_registers;
use super::input::{Unit, wrong_target};
use super::resolve::{self, Object};
use super::{LinkOptions, LinkedImage};
use crate::ReadError;
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
        let refuse = |error: ReadError| DeviceLinkError::input(&unit.name, error);
        let elf = Elf::parse(&unit.bytes).map_err(refuse)?;
        let symbols = LinkSymbols::of_amd_object(&elf).map_err(refuse)?;
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
        return Err(DeviceLinkError::unresolved(&missing));
    }
    let inputs: Vec<NamedObject<'_>> = taken
        .iter()
        .map(|object| NamedObject {
            name: &object.unit.name,
            bytes: &object.unit.bytes,
        })
        .collect();
    let linked = amd::link_objects(&inputs)?;
    let read =
        Hsaco::read(&linked.bytes).map_err(|error| DeviceLinkError::unreadable("code object that lld", &error))?;
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
                return Err(DeviceLinkError::link(format!(
                    "{} is for {its} and {} is for {others}: no device runs both; compile them for the same target ID",
                    unit.name, other.name
                )));
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
            let advice = format!("link for {flags}, or compile it for {target}");
            let problem = wrong_target(&flags.to_string(), &target, &advice);
            return Err(DeviceLinkError::input(&unit.name, problem));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "../../../tests/serialize/device_link_amd.rs"]
mod tests;
