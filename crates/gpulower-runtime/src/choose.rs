//! Which image of some bytes a device loads: the rules of [`gpulower_image::target::selection`], as `gpulower inspect --device` states
//! them.

use std::collections::HashMap;

use super::cubin_layout;
use super::kernel::KernelInterface;
use super::module_error::ModuleError;
use crate::bridge::driver::JitOptions;
use gpulower_image::FileKind;
use gpulower_image::inspect::device::{Module, Outcome, answer};
use gpulower_image::inspect::{Image, Inspection, inspect_with};
use gpulower_image::target::{Device, PtxIsa};

/// Whether the driver may compile PTX where no machine code fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PtxFallback {
    /// It may. The driver keeps what it compiled in a cache of its own, on disk.
    #[default]
    Allowed,
    /// It may not: a surprise of many milliseconds is worse than an error.
    Refused,
}

/// The image that a device loads.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChosenImage {
    /// Where it is, in words: `image 2, cubin for sm_90`.
    pub name: String,
    /// What it is: a cubin, PTX or an hsaco.
    pub kind: FileKind,
    /// Its bytes, decompressed.
    pub bytes: Vec<u8>,
    /// Its kernels.
    pub kernels: Vec<KernelInterface>,
    /// What the container asks of the driver's compiler.
    pub jit: JitOptions,
}

impl ChosenImage {
    /// Whether the driver has to compile it.
    #[must_use]
    pub fn is_ptx(&self) -> bool {
        self.kind == FileKind::Ptx
    }
}

/// Chooses the image of `bytes` that `device` loads.
///
/// `bytes` are an image or any container of images; `name` is what messages call them. `driver` is the newest PTX ISA that the
/// driver of an NVIDIA device reads.
///
/// # Errors
///
/// [`ModuleError`]. Damaged bytes are an error here, before a driver sees them.
pub fn choose(
    name: &str,
    bytes: &[u8],
    device: Device,
    driver: Option<PtxIsa>,
    ptx: PtxFallback,
) -> Result<ChosenImage, ModuleError> {
    let mut contents: HashMap<usize, Vec<u8>> = HashMap::new();
    let mut keep = |image: &Image, bytes: &[u8]| {
        let of_vendor = match device {
            Device::Nvidia(_) => matches!(image.kind, FileKind::Cubin | FileKind::Ptx),
            Device::Amd(_) => image.kind == FileKind::Hsaco,
        };
        if of_vendor {
            contents.insert(image.number, bytes.to_vec());
        }
    };
    let inspection = inspect_with(name, bytes, &mut keep).map_err(|source| ModuleError::Unreadable {
        name: name.to_owned(),
        source,
    })?;
    let answer = answer(&inspection, device, driver);
    let loads = |module: &&Module| matches!(module.outcome, Outcome::Loads { .. } | Outcome::CompilesPtx { .. });
    let modules: Vec<&Module> = answer.modules.iter().filter(loads).collect();
    let number = match modules.as_slice() {
        [] => return Err(why_none(name, &inspection, &answer.device, &answer.modules)),
        [module] => match &module.outcome {
            Outcome::CompilesPtx { image, .. } if ptx == PtxFallback::Refused => {
                return Err(ModuleError::PtxRefused {
                    name: name.to_owned(),
                    device: answer.device,
                    image: image_name(&inspection, *image),
                });
            }
            Outcome::Loads { image } | Outcome::CompilesPtx { image, .. } => *image,
            _ => return Err(ModuleError::Empty { name: name.to_owned() }),
        },
        several => {
            return Err(ModuleError::Several {
                name: name.to_owned(),
                device: answer.device,
                modules: several.iter().map(|module| module.name.clone()).collect(),
            });
        }
    };
    let image = inspection.images.iter().find(|image| image.number == number);
    let (Some(image), Some(bytes)) = (image, contents.remove(&number)) else {
        return Err(ModuleError::Empty { name: name.to_owned() });
    };
    if image.kind == FileKind::Cubin
        && let Err(problem) = cubin_layout::check(&bytes)
    {
        return Err(ModuleError::Damaged {
            name: name.to_owned(),
            device: answer.device,
            problems: vec![format!("{}: {problem}", inspection.image_name(image))],
        });
    }
    Ok(ChosenImage {
        name: inspection.image_name(image),
        kind: image.kind,
        bytes,
        kernels: image.kernels.iter().map(KernelInterface::from).collect(),
        jit: jit_options(image.options.as_deref().unwrap_or_default()),
    })
}

/// The error where no module loads: that of those that fail, if any.
fn why_none(name: &str, inspection: &Inspection, device: &str, modules: &[Module]) -> ModuleError {
    let (name, device) = (name.to_owned(), device.to_owned());
    let mut failure = None;
    let (mut reasons, mut all_damaged) = (Vec::new(), true);
    for module in modules {
        let Outcome::Fails {
            code,
            name,
            reasons: against,
            ..
        } = &module.outcome
        else {
            continue;
        };
        failure = failure.or(Some((*code, *name)));
        for against in against {
            let number = against.image;
            let image = inspection.images.iter().find(|image| Some(image.number) == number);
            let damage = image.and_then(|image| image.error.as_deref());
            // Without an image it is the container that is damaged.
            all_damaged &= damage.is_some() || image.is_none();
            let place = image.map_or_else(|| module.name.clone(), |image| inspection.image_name(image));
            let why = damage.map_or_else(|| against.reason.clone(), |damage| format!("it is damaged: {damage}"));
            reasons.push(format!("{place}: {why}"));
        }
    }
    match failure {
        Some(_) if all_damaged && !reasons.is_empty() => ModuleError::Damaged {
            name,
            device,
            problems: reasons,
        },
        Some((code, error)) => ModuleError::NothingFits {
            name,
            device,
            error,
            code,
            reasons,
        },
        None if modules.iter().any(|module| module.outcome == Outcome::LinkFirst) => ModuleError::LinkFirst { name },
        None => {
            let problems: Vec<String> = inspection
                .problems()
                .map(|(place, problem)| format!("{place}: {problem}"))
                .collect();
            match problems.is_empty() {
                true => ModuleError::Empty { name },
                false => ModuleError::Damaged { name, device, problems },
            }
        }
    }
}

fn image_name(inspection: &Inspection, number: usize) -> String {
    let image = inspection.images.iter().find(|image| image.number == number);
    image.map_or_else(|| format!("image {number}"), |image| inspection.image_name(image))
}

/// What a fat binary's options for its PTX mean to the driver's compiler, which takes numbers instead of text. Others are for
/// `ptxas` alone.
fn jit_options(text: &str) -> JitOptions {
    let mut options = JitOptions::default();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let word = word.trim_start_matches('-');
        let (key, value) = word
            .split_once('=')
            .map_or((word, None), |(key, value)| (key, Some(value)));
        match key {
            "O0" | "O1" | "O2" | "O3" => options.optimization = key.get(1..).and_then(|level| level.parse().ok()),
            "opt-level" => options.optimization = value.or_else(|| words.next()).and_then(|level| level.parse().ok()),
            "maxrregcount" => {
                options.max_registers = value.or_else(|| words.next()).and_then(|count| count.parse().ok())
            }
            "lineinfo" | "generate-line-info" => options.line_info = true,
            _ => {}
        }
    }
    options
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
