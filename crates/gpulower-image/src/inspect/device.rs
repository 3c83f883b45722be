//! What a device does with the images of a file: which it loads, which PTX its driver compiles, or which error comes.
//!
//! The rules are those of [`crate::target::selection`]. Here the images are put together as loaders see them: those of
//! one fat binary, of one bundle, of the offload binaries of one section; an image in no such container stands alone.

use std::collections::BTreeMap;

use serde::Serialize;

use super::model::{Container, Image, Inspection};
use crate::FileKind;
use crate::container::bundle::section_id;
use crate::container::host_sections::LLVM_OFFLOADING_SECTION;
use crate::target::selection::{Choice, LoadError, LoadFailure, LoadableImage, select, select_bare};
use crate::target::{Device, NvidiaArch, PtxIsa};

/// What a device does with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The device: `8.6`, `gfx90a:xnack+`.
    pub device: String,
    /// The newest PTX ISA that its driver reads, if that was given.
    pub driver_ptx_isa: Option<String>,
    /// What is loaded as one, in the order of the file.
    pub modules: Vec<Module>,
}

impl Answer {
    /// The modules of which nothing loads.
    pub fn failures(&self) -> impl Iterator<Item = &Module> {
        self.modules
            .iter()
            .filter(|module| matches!(module.outcome, Outcome::Fails { .. }))
    }
}

/// Images among which a loader chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Module {
    /// Where they are, in words.
    pub name: String,
    /// Their numbers.
    pub images: Vec<usize>,
    /// What becomes of them.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What a device does with a module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// It loads an image as it is.
    Loads {
        /// The image's number.
        image: usize,
    },
    /// The driver compiles PTX.
    CompilesPtx {
        /// The image's number.
        image: usize,
        /// The PTX ISA that the driver has to read.
        ptx_isa: String,
        /// The first CUDA release whose driver reads it, as far as releases are known.
        needs_driver_of_cuda: Option<String>,
    },
    /// All images are inputs of a link: what comes of that decides.
    LinkFirst,
    /// There is neither kernel nor variable in it, and no runtime asks for it. nvcc puts such a fat binary into every
    /// program that it links.
    Empty,
    /// The loader reports an error.
    Fails {
        /// Its number.
        code: u32,
        /// Its name in the driver API, or in HIP.
        name: &'static str,
        /// Its name in the runtime API.
        runtime_name: &'static str,
        /// Why, for each image.
        reasons: Vec<Reason>,
    },
}

/// What is against one image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// The image's number; `None` where the container as a whole is meant.
    pub image: Option<usize>,
    /// Why it is not loaded.
    pub reason: String,
}

/// Says what `device` does with a file.
///
/// `driver` is the newest PTX ISA that an NVIDIA driver reads; `None` if it is not known. Where the file has modules for
/// the device's vendor, those for other vendors are left out.
#[must_use]
pub fn answer(inspection: &Inspection, device: Device, driver: Option<PtxIsa>) -> Answer {
    let mut groups = groups(inspection);
    if groups.iter().any(|group| group.is_for(device)) {
        groups.retain(|group| group.is_for(device));
    }
    Answer {
        device: device.to_string(),
        driver_ptx_isa: driver.map(|isa| isa.to_string()),
        modules: groups.iter().map(|group| group.module(device, driver)).collect(),
    }
}

/// Images that a loader sees together.
struct Group<'a> {
    name: String,
    images: Vec<&'a Image>,
    /// Whether they are in a container that a loader takes.
    contained: bool,
    /// The container, if it is damaged.
    damaged: Option<&'a Container>,
    /// Whether it lies where a linker takes it from, and no runtime.
    for_linker: bool,
}

/// Sections of host files whose device code a linker takes: nvcc's and clang's.
const LINKER_SECTIONS: [&str; 2] = ["__nv_relfatbin", LLVM_OFFLOADING_SECTION];

fn groups(inspection: &Inspection) -> Vec<Group<'_>> {
    // The first container of a group stands for it; by key, the groups are in the order of the file.
    let mut groups: BTreeMap<(usize, usize), Group<'_>> = BTreeMap::new();
    for (index, container) in inspection.containers.iter().enumerate() {
        if container.error.is_some() && !container.kind.is_host() && container.kind != FileKind::Archive {
            groups.insert(
                (index, 0),
                Group {
                    name: inspection.container_name(index),
                    images: Vec::new(),
                    contained: true,
                    damaged: Some(container),
                    for_linker: false,
                },
            );
        }
    }
    for image in &inspection.images {
        let container = image
            .container
            .and_then(|index| Some((index, inspection.containers.get(index)?)));
        let (key, contained) = match container {
            Some((index, container)) => match container.kind {
                FileKind::FatBinary | FileKind::Bundle | FileKind::TextBundle => ((index, 0), true),
                FileKind::OffloadBinary => ((first_of_section(inspection, index), 0), true),
                // The entries of a bundle as sections of an object.
                kind if kind.is_host() && image.label.as_deref().and_then(section_id).is_some() => ((index, 0), true),
                _ => ((index, image.number), false),
            },
            None => ((0, image.number), false),
        };
        let group = groups.entry(key).or_insert_with(|| Group {
            name: match contained {
                true => inspection.container_name(key.0),
                false => inspection.image_name(image),
            },
            images: Vec::new(),
            contained,
            damaged: None,
            for_linker: container.is_some_and(|(_, container)| {
                let label = container.label.as_deref();
                label.is_some_and(|label| LINKER_SECTIONS.contains(&label))
            }),
        });
        group.images.push(image);
    }
    groups.into_values().collect()
}

/// The first of the offload binaries that lie where this one does.
fn first_of_section(inspection: &Inspection, index: usize) -> usize {
    let place = |container: &Container| (container.kind, container.parent, container.label.clone());
    let here = inspection.containers.get(index).map(place);
    let first = inspection
        .containers
        .iter()
        .position(|container| Some(place(container)) == here);
    first.unwrap_or(index)
}

impl Group<'_> {
    /// Whether there is something for the device's vendor in it.
    fn is_for(&self, device: Device) -> bool {
        let amd = matches!(device, Device::Amd(_));
        let container = self.damaged.is_some_and(|container| match container.kind {
            FileKind::FatBinary => !amd,
            FileKind::Bundle => amd,
            _ => false,
        });
        let image = |image: &&Image| match image.kind {
            FileKind::Cubin | FileKind::Ptx | FileKind::LtoIr => !amd,
            FileKind::Hsaco | FileKind::AmdObject => amd,
            _ => image
                .target
                .as_deref()
                .is_some_and(|target| target.starts_with("gfx") == amd),
        };
        container || self.images.iter().any(image)
    }

    fn module(&self, device: Device, driver: Option<PtxIsa>) -> Module {
        Module {
            name: self.name.clone(),
            images: self.images.iter().map(|image| image.number).collect(),
            outcome: self.outcome(device, driver),
        }
    }

    fn outcome(&self, device: Device, driver: Option<PtxIsa>) -> Outcome {
        if let Some(error) = self.damaged.and_then(|container| container.error.as_ref()) {
            return fails(
                &LoadError::invalid_image(device),
                vec![Reason {
                    image: None,
                    reason: error.clone(),
                }],
            );
        }
        // A driver that is given a relocatable cubin links it itself.
        let driver_links = |image: &&Image| image.kind == FileKind::Cubin && !self.for_linker;
        if !self.images.is_empty()
            && self
                .images
                .iter()
                .all(|image| is_link_input(image) && !driver_links(image))
        {
            return Outcome::LinkFirst;
        }
        if !self.images.is_empty() && self.contained && self.images.iter().all(|image| is_empty(image)) {
            return Outcome::Empty;
        }
        let (mut loadable, mut numbers, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
        for image in &self.images {
            match seen_by_loader(image) {
                Ok(seen) => {
                    loadable.push(seen);
                    numbers.push(image);
                }
                Err(reason) => reasons.push(Reason {
                    image: Some(image.number),
                    reason,
                }),
            }
        }
        let choice = match loadable.as_slice() {
            [one] if !self.contained => select_bare(device, driver, one),
            several => select(device, driver, several),
        };
        let image_at = |index: usize| numbers.get(index).copied();
        match choice {
            Ok(Choice::Image { index }) => match image_at(index) {
                Some(image) => chosen(image, device).unwrap_or(Outcome::Loads { image: image.number }),
                None => Outcome::LinkFirst,
            },
            Ok(Choice::CompilePtx {
                index,
                isa: (major, minor),
                needs_driver,
            }) => match image_at(index) {
                Some(image) => chosen(image, device).unwrap_or_else(|| Outcome::CompilesPtx {
                    image: image.number,
                    ptx_isa: format!("{major}.{minor}"),
                    needs_driver_of_cuda: needs_driver.map(|release| release.to_string()),
                }),
                None => Outcome::LinkFirst,
            },
            Err(error) => {
                reasons.extend(error.passed_over.iter().map(|passed| Reason {
                    image: image_at(passed.index).map(|image| image.number),
                    reason: passed.reason.clone(),
                }));
                reasons.sort_by_key(|reason| reason.image);
                fails(&error, reasons)
            }
        }
    }
}

/// The failure that comes of choosing a damaged image; `None` if it is sound.
fn chosen(image: &Image, device: Device) -> Option<Outcome> {
    let error = image.error.as_ref()?;
    let reason = Reason {
        image: Some(image.number),
        reason: format!("the loader would choose it, and it is damaged: {error}"),
    };
    // PTX that cannot be read here may still be PTX: a compiler has the last word.
    let failure = match image.kind {
        FileKind::Ptx => LoadFailure::InvalidPtx,
        _ => LoadError::invalid_image(device).failure,
    };
    Some(failure_of(failure, vec![reason]))
}

fn fails(error: &LoadError, reasons: Vec<Reason>) -> Outcome {
    failure_of(error.failure, reasons)
}

fn failure_of(failure: LoadFailure, reasons: Vec<Reason>) -> Outcome {
    Outcome::Fails {
        code: failure.code(),
        name: failure.name(),
        runtime_name: failure.runtime_name(),
        reasons,
    }
}

/// Whether a link comes before any loader.
fn is_link_input(image: &Image) -> bool {
    image.relocatable || matches!(image.kind, FileKind::LtoIr | FileKind::Bitcode | FileKind::Text)
}

/// Whether a cubin defines nothing that a program could ask for.
fn is_empty(image: &Image) -> bool {
    let holds_variables = |name: &str| name.starts_with(".nv.global") || name == ".nv.constant3";
    image.kind == FileKind::Cubin
        && image.error.is_none()
        && image.kernels.is_empty()
        && !image.sections.iter().any(|section| holds_variables(&section.name))
}

/// An image as a loader sees it, or why no loader does.
fn seen_by_loader(image: &Image) -> Result<LoadableImage, String> {
    let arch = || {
        let target = image.target.as_deref().unwrap_or_default();
        NvidiaArch::parse(target).ok_or_else(|| "what it is for cannot be told".to_owned())
    };
    match image.kind {
        FileKind::Cubin => Ok(LoadableImage::Cubin { arch: arch()? }),
        FileKind::Ptx => {
            let isa = image.ptx_isa.as_deref().and_then(|isa| isa.split_once('.'));
            let isa = isa.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
            Ok(LoadableImage::Ptx {
                arch: arch()?,
                isa: isa.ok_or("its PTX ISA cannot be told")?,
            })
        }
        FileKind::LtoIr => Ok(LoadableImage::LtoIr { arch: arch()? }),
        FileKind::Hsaco | FileKind::AmdObject => Ok(LoadableImage::CodeObject {
            target: image.target.clone().unwrap_or_default(),
            relocatable: image.relocatable,
        }),
        FileKind::Bitcode | FileKind::Text => Err("it is the input of a compiler, and no loader takes it".to_owned()),
        FileKind::SpirV => Err("it is SPIR-V, which the loaders of NVIDIA and AMD do not take".to_owned()),
        _ => Err("it is of no kind that is known".to_owned()),
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
