//! Linking for NVIDIA GPUs, with nvJitLink between checks of what it does not say.
//!
//! Observed with nvJitLink 13.0.88, all of it reported as success: of a symbol that two inputs define it keeps one (and
//! prints the error to the process's standard error output); it leaves out the kernels of cubins that are linked already;
//! it takes architecture-specific code for a plain target.

use std::collections::BTreeSet;

use super::super::link_error::{DeviceLinkError, DuplicateSymbol, MissingSymbol};
use super::input::Unit;
use super::resolve::{self, Object};
use super::{LinkOptions, LinkedImage};
use crate::bridge::nvjitlink::{Input, InputKind, NvJitLink};
use crate::bridge::vendor_error::VendorError;
use crate::image::cubin;
use crate::image::elf::Elf;
use crate::image::ptx_log;
use crate::image::ptx_symbols;
use crate::image::symbols::{LinkSymbols, is_provided_by_driver};
use crate::serialize::nvidia::PtxToCubin;
use crate::serialize::nvidia_options::nvjitlink_options;
use crate::target::NvidiaTarget;
use crate::{FileKind, ReadError, error::ErrorKind};

pub(super) fn link(
    units: &[Unit<'_>],
    target: NvidiaTarget,
    options: &LinkOptions,
    tools: &PtxToCubin,
) -> Result<LinkedImage, DeviceLinkError> {
    options.check()?;
    let chip = target.chip();
    let library = || tools.nvjitlink().map_err(no_linker);
    let lto_ptx = if units.iter().any(is_lto) {
        compile_lto(library()?, units, chip)?
    } else {
        units.iter().map(|_| None).collect()
    };
    let objects = objects(units, &lto_ptx)?;
    let taken = resolve::participants(&objects);
    resolve::refuse_duplicates(&taken)?;
    let has_lto = taken.iter().any(|object| is_lto(object.unit));
    let missing = resolve::missing(&taken, is_provided_by_driver);
    // LTO-IR does not say which functions it defines: with it only the linker can tell.
    if !missing.is_empty() && !has_lto {
        return Err(DeviceLinkError::unresolved(&missing));
    }
    let (library, version) = library()?;
    let tool = format!("nvJitLink {version}");
    let inputs: Vec<Input<'_>> = taken.iter().map(|object| input(object.unit)).collect();
    let linked = library
        .link(&inputs, &words(chip, options, has_lto))
        .map_err(|error| failure(error, &taken, missing, &tool))?;
    let reported = ptx_log::parse(&linked.error_log);
    if !reported.errors.is_empty() {
        return Err(refusal(&linked.error_log, &taken, Vec::new(), &tool));
    }
    let mut info = cubin::read(&linked.cubin)
        .map_err(|error| DeviceLinkError::unreadable(&format!("cubin that {tool}"), &error))?;
    let kept: BTreeSet<&str> = info.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    resolve::refuse_lost_kernels(&taken, &kept, &tool)?;
    for kernel in &info.kernels {
        if let (Some(registers), Some(limit)) = (kernel.registers, options.ptx.max_registers)
            && registers > limit
        {
            return Err(DeviceLinkError::link(format!(
                "kernel {} uses {registers} registers, and {limit} were asked for at most: launch bounds in PTX count for more \
                 than the limit, a kernel that calls functions has 24 at least, and machine code is compiled already",
                kernel.name
            )));
        }
    }
    let log = ptx_log::parse(&linked.info_log);
    info.add_log(&log);
    Ok(LinkedImage {
        bytes: linked.cubin,
        kernels: info.kernels,
        inputs: taken.iter().map(|object| object.unit.name.clone()).collect(),
        log: ptx_log::without_times(&linked.info_log),
        warnings: [log.warnings, reported.warnings].concat(),
        tool,
    })
}

fn no_linker(reason: &str) -> DeviceLinkError {
    let problem = format!(
        "linking for NVIDIA GPUs needs nvJitLink, which cannot be used: {reason}; install the Python wheel nvidia-nvjitlink or a \
         CUDA toolkit from 12.0 on, or name its directory"
    );
    DeviceLinkError::new(ErrorKind::Toolkit, problem)
}

const fn is_lto(unit: &Unit<'_>) -> bool {
    matches!(unit.kind, FileKind::LtoIr | FileKind::FatBinary)
}

fn input<'u>(unit: &'u Unit<'_>) -> Input<'u> {
    Input {
        kind: match unit.kind {
            FileKind::Ptx => InputKind::Ptx,
            FileKind::FatBinary => InputKind::Fatbin,
            FileKind::LtoIr => InputKind::LtoIr,
            _ => InputKind::Cubin,
        },
        bytes: &unit.bytes,
        name: &unit.name,
    }
}

/// The options in nvJitLink's words.
fn words(chip: &str, options: &LinkOptions, has_lto: bool) -> Vec<String> {
    let mut words = nvjitlink_options(chip, &options.ptx);
    if has_lto {
        words.push("-lto".to_owned());
        let lto = &options.lto;
        let settings = [
            ("-ftz", lto.flush_denormals),
            ("-prec-div", lto.precise_division),
            ("-prec-sqrt", lto.precise_square_root),
            ("-fma", lto.contract),
        ];
        for (name, setting) in settings {
            words.extend(setting.map(|on| format!("{name}={}", u8::from(on))));
        }
    }
    words
}

/// The PTX of each unit of LTO-IR, which is scrambled: what is left of it then tells its kernels and what it needs.
fn compile_lto(
    (library, version): &(NvJitLink, String),
    units: &[Unit<'_>],
    chip: &str,
) -> Result<Vec<Option<String>>, DeviceLinkError> {
    let compile = |unit: &Unit<'_>| {
        let options = [format!("-arch={chip}")];
        library
            .lto_to_ptx(&[input(unit)], &options)
            .map_err(|error| DeviceLinkError::Tool {
                tool: format!("nvJitLink {version}"),
                inputs: vec![unit.name.clone()],
                log: log_of(error),
            })
    };
    units
        .iter()
        .map(|unit| is_lto(unit).then(|| compile(unit)).transpose())
        .collect()
}

fn objects<'u, 'a>(
    units: &'u [Unit<'a>],
    lto_ptx: &'u [Option<String>],
) -> Result<Vec<Object<'u, 'a>>, DeviceLinkError> {
    let symbols = |unit: &'u Unit<'a>, lto: &'u Option<String>| -> Result<LinkSymbols<'u>, ReadError> {
        match (unit.kind, lto) {
            (_, Some(ptx)) => ptx_symbols::symbols(ptx.as_bytes()),
            (FileKind::Ptx, None) => ptx_symbols::symbols(&unit.bytes),
            _ => LinkSymbols::of_cubin(&Elf::parse(&unit.bytes)?),
        }
    };
    units
        .iter()
        .zip(lto_ptx)
        .map(|(unit, lto)| {
            let symbols = symbols(unit, lto).map_err(|problem| DeviceLinkError::input(&unit.name, problem))?;
            Ok(Object { unit, symbols })
        })
        .collect()
}

fn log_of(error: VendorError) -> String {
    match error {
        VendorError::Failed { log, .. } if !log.trim().is_empty() => ptx_log::without_times(&log),
        error => error.to_string(),
    }
}

fn failure(
    error: VendorError,
    objects: &[&Object<'_, '_>],
    missing: Vec<MissingSymbol>,
    tool: &str,
) -> DeviceLinkError {
    refusal(&log_of(error), objects, missing, tool)
}

/// Turns the linker's text into the error that it means. Its names of inputs are wrong at times; ours are not.
fn refusal(log: &str, objects: &[&Object<'_, '_>], missing: Vec<MissingSymbol>, tool: &str) -> DeviceLinkError {
    let quoted = |line: &str, before: &str| -> Option<String> {
        let (_, rest) = line.split_once(before)?;
        rest.split('\'').next().map(str::to_owned)
    };
    let names = |texts: &[&str]| -> BTreeSet<String> {
        log.lines()
            .filter_map(|line| texts.iter().find_map(|text| quoted(line, text)))
            .collect()
    };
    let twice = names(&["Multiple definition of '", "Linking globals named '"]);
    if !twice.is_empty() {
        let twice: Vec<DuplicateSymbol> = twice.into_iter().map(|name| duplicate(name, objects)).collect();
        return DeviceLinkError::duplicates(&twice);
    }
    let undefined = names(&[
        "Undefined reference to '",
        "Unresolved extern function '",
        "Unresolved extern variable '",
    ]);
    if !undefined.is_empty() {
        // The compiler stops at the first; what else is missing is known here.
        let named = undefined
            .into_iter()
            .filter(|name| !missing.iter().any(|symbol| symbol.name == *name))
            .map(|name| resolve::needs(objects, &name))
            .collect::<Vec<_>>();
        let listed = missing
            .into_iter()
            .filter(|symbol| log.contains(&format!("'{}'", symbol.name)));
        let mut symbols: Vec<MissingSymbol> = named.into_iter().chain(listed).collect();
        symbols.sort_by(|one, other| one.name.cmp(&other.name));
        return DeviceLinkError::unresolved(&symbols);
    }
    DeviceLinkError::Tool {
        tool: tool.to_owned(),
        inputs: objects.iter().map(|object| object.unit.name.clone()).collect(),
        log: log.trim().to_owned(),
    }
}

/// The inputs that define `name`: those that say so, and the LTO-IR, of which nobody knows.
fn duplicate(name: String, objects: &[&Object<'_, '_>]) -> DuplicateSymbol {
    let kind = objects
        .iter()
        .find_map(|object| object.symbols.defined.get(name.as_str()))
        .map(|definition| definition.kind);
    let inputs = objects
        .iter()
        .filter(|object| is_lto(object.unit) || object.symbols.defined.contains_key(name.as_str()))
        .map(|object| object.unit.name.clone())
        .collect();
    DuplicateSymbol { name, kind, inputs }
}

#[cfg(test)]
#[path = "../../../tests/serialize/device_link_nvidia.rs"]
mod tests;
