//! Which image of an artifact a device loads, and what a user meets when none fits.

pub use super::load_error::{LoadError, LoadFailure, PassedOver};

use super::device_query::Device;
use super::error::shown;
use super::nvidia_chips::{Suffix, is_tegra};
use super::{AmdTarget, ComputeCapability, CudaRelease, NvidiaArch, NvidiaTarget, PtxIsa};
use std::fmt;

/// An image as a loader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadableImage {
    /// NVIDIA machine code.
    Cubin {
        /// The architecture it is stored under.
        arch: NvidiaArch,
    },
    /// PTX.
    Ptx {
        /// Its `.target`.
        arch: NvidiaArch,
        /// Its `.version`, major and minor.
        isa: (u16, u16),
    },
    /// NVIDIA's LTO-IR.
    LtoIr {
        /// The architecture it is stored under.
        arch: NvidiaArch,
    },
    /// AMD machine code.
    CodeObject {
        /// Its target ID, such as `gfx90a:xnack+`, with or without the triple.
        target: String,
        /// Whether it is the input of a link rather than its result.
        relocatable: bool,
    },
}

/// `cubin sm_90a`, `PTX sm_80`, `LTO-IR sm_90`, `code object gfx942`.
impl fmt::Display for LoadableImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cubin { arch } => write!(f, "cubin {arch}"),
            Self::Ptx { arch, .. } => write!(f, "PTX {arch}"),
            Self::LtoIr { arch } => write!(f, "LTO-IR {arch}"),
            Self::CodeObject { target, .. } => write!(f, "code object {}", shown(target)),
        }
    }
}

/// What a device does with an artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice {
    /// It loads this image.
    Image {
        /// Position among the images.
        index: usize,
    },
    /// The driver compiles this PTX.
    CompilePtx {
        /// Position among the images.
        index: usize,
        /// Its PTX ISA, major and minor.
        isa: (u16, u16),
        /// The first CUDA release whose driver reads that PTX ISA; `None` if the table of releases has none.
        needs_driver: Option<CudaRelease>,
    },
}

/// The image that a device loads from a container: a fat binary, a bundle, an offload binary.
///
/// `driver` is the newest PTX ISA that an NVIDIA driver reads (that of its CUDA release); `None` if it is not known, and
/// then every PTX is taken for readable.
///
/// NVIDIA's rules. Of the cubins that run on the device ([`NvidiaArch::cubin_runs_on`]) the one with the highest number,
/// in whatever order they lie; without one, the driver compiles PTX, again of the highest number that compiles for the
/// device ([`NvidiaArch::ptx_runs_on`]). For one number `a` comes before plain, and of equal ones the first counts. Where
/// nothing fits (also for PTX whose target is too new) the error is 209. For PTX of an ISA too new it is 222: PTX of a lower
/// target is not tried then. A relocatable cubin counts as any other: the driver links it, and leaves out kernels that need
/// what it does not define. All of this was observed with driver 580.159 on an H200 (`docs/gpu-check.md`). Assumed: that `f`
/// comes between `a` and plain. The rules for other devices are those of the CUDA C++ Programming Guide.
///
/// AMD's rules, from `hip_fatbin.cpp` of AMD's clr and comgr's lookup: the first code object for the device's own processor
/// whose settings agree with the device's (a setting that it leaves open agrees); without one, the first for the generic
/// target of that processor. Not confirmed on an AMD device.
///
/// # Errors
///
/// The error that the loader reports, with the reason against each image.
pub fn select(device: Device, driver: Option<PtxIsa>, images: &[LoadableImage]) -> Result<Choice, LoadError> {
    match device {
        Device::Nvidia(capability) => select_nvidia(capability, driver, images),
        Device::Amd(target) => select_amd(target, images),
    }
}

/// The image of a fat binary that takes part in a device link for `target`: machine code of exactly the target, else
/// LTO-IR, else machine code that can be linked for it, else the newest PTX that compiles for it.
///
/// A link chooses otherwise than a loader ([`select`]): it has a use for LTO-IR, and takes relocatable machine code by
/// narrower rules than a device ([`cubin_links`]).
#[must_use]
pub fn select_for_link(target: &NvidiaTarget, images: &[LoadableImage]) -> Option<usize> {
    let class = |image: &LoadableImage| match image {
        LoadableImage::Cubin { arch } => {
            let specific = arch.suffix == Suffix::ArchitectureSpecific;
            let fits = cubin_links(arch.number.into(), specific, target).is_ok();
            fits.then_some((if arch.number == target.number() { 3 } else { 1 }, *arch))
        }
        LoadableImage::LtoIr { arch } => compiles(*arch, target).then_some((2, *arch)),
        LoadableImage::Ptx { arch, .. } => compiles(*arch, target).then_some((0, *arch)),
        LoadableImage::CodeObject { .. } => None,
    };
    let ranked = images.iter().enumerate().filter_map(|(index, image)| {
        let (class, arch) = class(image)?;
        Some(((class, arch.number, arch.suffix), index))
    });
    ranked.max_by_key(|(rank, _)| *rank).map(|(_, index)| index)
}

fn compiles(arch: NvidiaArch, target: &NvidiaTarget) -> bool {
    arch.to_string()
        .parse::<NvidiaTarget>()
        .is_ok_and(|its| its.ptx_compiles_for(target))
}

/// Whether relocatable machine code takes part in a link for `target`; if not, what to do.
///
/// Observed with nvJitLink 13.0.88: it takes code of the same major compute capability and an equal or smaller minor one.
/// It takes architecture-specific code for a plain target, too, whose image would then not run where its name says.
/// Code for Tegra chips is linked with code for exactly the same chip.
///
/// # Errors
///
/// What to do instead.
pub fn cubin_links(number: u32, arch_specific: bool, target: &NvidiaTarget) -> Result<(), String> {
    let ours = u32::from(target.number());
    if arch_specific && (number != ours || target.suffix() != Suffix::ArchitectureSpecific) {
        return Err(format!("link for sm_{number}a, or compile it without the suffix"));
    }
    let is_tegra = is_tegra(target.number()) || u16::try_from(number).is_ok_and(is_tegra);
    let apart = is_tegra && number != ours;
    if apart || number / 10 != ours / 10 || number > ours {
        return Err(format!("compile it for {}", target.chip()));
    }
    Ok(())
}

/// What a device does with a cubin, PTX or hsaco that is in no container.
///
/// As [`select`] of that one image, but for PTX whose target is later than the device: 218.
///
/// # Errors
///
/// The error that the loader reports, with the reason.
pub fn select_bare(device: Device, driver: Option<PtxIsa>, image: &LoadableImage) -> Result<Choice, LoadError> {
    select(device, driver, std::slice::from_ref(image)).map_err(|mut error| {
        if matches!(image, LoadableImage::Ptx { .. }) && error.failure == LoadFailure::NoBinary {
            error.failure = LoadFailure::InvalidPtx;
        }
        error
    })
}

fn select_nvidia(
    device: ComputeCapability,
    driver: Option<PtxIsa>,
    images: &[LoadableImage],
) -> Result<Choice, LoadError> {
    let mut cubin: Option<(usize, NvidiaArch)> = None;
    let mut ptx: Option<(usize, NvidiaArch, (u16, u16))> = None;
    for (index, image) in images.iter().enumerate() {
        if against_nvidia(image, device).is_some() {
            continue;
        }
        match image {
            LoadableImage::Cubin { arch } if cubin.is_none_or(|(_, best)| rank(*arch) > rank(best)) => {
                cubin = Some((index, *arch));
            }
            LoadableImage::Ptx { arch, isa } if ptx.is_none_or(|(_, best, _)| rank(*arch) > rank(best)) => {
                ptx = Some((index, *arch, *isa));
            }
            _ => {}
        }
    }
    if let Some((index, _)) = cubin {
        return Ok(Choice::Image { index });
    }
    let readable = |isa| driver.is_none_or(|driver| isa <= numbers(driver));
    match ptx {
        Some((index, _, isa)) if readable(isa) => Ok(Choice::CompilePtx {
            index,
            isa,
            needs_driver: release_of(isa),
        }),
        _ => Err(LoadError {
            failure: if ptx.is_some() {
                LoadFailure::UnsupportedPtxVersion
            } else {
                LoadFailure::NoBinary
            },
            device: Device::Nvidia(device),
            passed_over: passed_over(images, |image| {
                against_nvidia(image, device).unwrap_or_else(|| against_isa(image, driver))
            }),
        }),
    }
}

fn select_amd(device: AmdTarget, images: &[LoadableImage]) -> Result<Choice, LoadError> {
    let mut generic = None;
    for (index, image) in images.iter().enumerate() {
        if against_amd(image, device).is_some() {
            continue;
        }
        match code_object(image) {
            Some(target) if target.is_generic() => generic = generic.or(Some(index)),
            _ => return Ok(Choice::Image { index }),
        }
    }
    generic.map(|index| Choice::Image { index }).ok_or_else(|| LoadError {
        failure: LoadFailure::HipNoBinary,
        device: Device::Amd(device),
        passed_over: passed_over(images, |image| against_amd(image, device).unwrap_or_default()),
    })
}

fn passed_over(images: &[LoadableImage], reason: impl Fn(&LoadableImage) -> String) -> Vec<PassedOver> {
    images
        .iter()
        .enumerate()
        .map(|(index, image)| PassedOver {
            index,
            image: image.to_string(),
            reason: reason(image),
        })
        .collect()
}

/// The order in which images that fit are preferred.
const fn rank(arch: NvidiaArch) -> (u16, u8) {
    let suffix = match arch.suffix {
        Suffix::ArchitectureSpecific => 2,
        Suffix::FamilySpecific => 1,
        Suffix::Plain => 0,
    };
    (arch.number, suffix)
}

/// The device whose number an architecture has.
fn own(arch: NvidiaArch) -> ComputeCapability {
    ComputeCapability::new(arch.number / 10, arch.number % 10)
}

/// Why an image does not fit an NVIDIA device; `None` if it does.
fn against_nvidia(image: &LoadableImage, device: ComputeCapability) -> Option<String> {
    match image {
        LoadableImage::Cubin { arch } if arch.cubin_runs_on(device) => None,
        LoadableImage::Cubin { arch } => Some(match arch.suffix {
            Suffix::ArchitectureSpecific => format!("{arch} runs on {} alone", own(*arch)),
            Suffix::FamilySpecific => format!("{arch} runs on {} and later devices of its family", own(*arch)),
            Suffix::Plain if is_tegra(arch.number) => {
                format!("{arch} is Tegra's and runs on {} alone", own(*arch))
            }
            Suffix::Plain if is_tegra(device.number()) && own(*arch).major == device.major => {
                format!("{device} is a Tegra device, which runs machine code of its own chip alone")
            }
            Suffix::Plain => {
                let first = own(*arch);
                format!(
                    "machine code for {arch} runs on {first} and later devices of {}.x alone",
                    first.major
                )
            }
        }),
        LoadableImage::Ptx { arch, .. } if arch.ptx_runs_on(device) => None,
        LoadableImage::Ptx { arch, .. } => Some(match arch.suffix {
            Suffix::ArchitectureSpecific => format!("PTX of {arch} compiles for {} alone", own(*arch)),
            Suffix::FamilySpecific => {
                format!(
                    "PTX of {arch} compiles for {} and later devices of its family",
                    own(*arch)
                )
            }
            Suffix::Plain => format!("PTX of {arch} compiles for {} and later devices", own(*arch)),
        }),
        LoadableImage::LtoIr { .. } => Some("LTO-IR is the input of a link, and no driver loads it".to_owned()),
        LoadableImage::CodeObject { .. } => Some("it is code for AMD".to_owned()),
    }
}

/// Why PTX that compiles for the device is not read.
fn against_isa(image: &LoadableImage, driver: Option<PtxIsa>) -> String {
    let LoadableImage::Ptx { isa, .. } = image else {
        return String::new();
    };
    let (major, minor) = *isa;
    let reads = driver.map_or_else(String::new, |driver| format!(", and the driver reads up to {driver}"));
    let needs = release_of(*isa).map_or_else(
        || "a driver newer than all that are known".to_owned(),
        |release| format!("a driver of CUDA {release} or newer"),
    );
    format!("PTX ISA {major}.{minor} needs {needs}{reads}")
}

fn numbers(isa: PtxIsa) -> (u16, u16) {
    (isa.major.into(), isa.minor.into())
}

fn release_of((major, minor): (u16, u16)) -> Option<CudaRelease> {
    let isa = PtxIsa::new(u8::try_from(major).ok()?, u8::try_from(minor).ok()?).ok()?;
    CudaRelease::first_with(isa)
}

/// The target of a code object, if it is one of the table.
fn code_object(image: &LoadableImage) -> Option<AmdTarget> {
    match image {
        LoadableImage::CodeObject { target, .. } => processor(target).parse().ok(),
        _ => None,
    }
}

/// `gfx90a:xnack+` of `amdgcn-amd-amdhsa--gfx90a:xnack+`.
fn processor(target: &str) -> &str {
    target.rsplit_once("--").map_or(target, |(_, processor)| processor)
}

/// Why an image does not fit an AMD device; `None` if it does.
fn against_amd(image: &LoadableImage, device: AmdTarget) -> Option<String> {
    let LoadableImage::CodeObject { target, relocatable } = image else {
        return Some("it is code for NVIDIA".to_owned());
    };
    if *relocatable {
        return Some("it is relocatable, the input of a link that has not been done".to_owned());
    }
    let code: AmdTarget = match processor(target).parse() {
        Ok(code) => code,
        Err(error) => return Some(format!("{error}")),
    };
    if code.runs_on(&device) {
        return None;
    }
    for (name, wanted, has) in [
        ("sramecc", code.sramecc(), device.sramecc()),
        ("xnack", code.xnack(), device.xnack()),
    ] {
        let sign = |on| if on { '+' } else { '-' };
        match (wanted, has) {
            _ if !code.same_processor(&device) => break,
            (Some(wanted), Some(has)) if wanted != has => {
                return Some(format!(
                    "it needs {name}{}, and the device has {name}{}",
                    sign(wanted),
                    sign(has)
                ));
            }
            (Some(wanted), None) => {
                let sign = sign(wanted);
                return Some(format!(
                    "it needs {name}{sign}, and the device's setting is not stated: ask about {device}:{name}{sign}"
                ));
            }
            _ => {}
        }
    }
    Some(if code.is_generic() {
        format!("{} stands for other processors", code.chip())
    } else {
        format!("{} is another processor", code.chip())
    })
}

#[cfg(test)]
#[path = "selection_tests.rs"]
mod tests;
