//! What a compilation will do, before it does it.
//!
//! [`steps`] and [`artifacts`] decide; the jobs carry out what they say, and [`Plan`] shows it.

use super::{
    InputError,
    emit::Emit,
    input::InputKind,
    request::{Product, Request},
};
use crate::{
    device::DeviceOutput,
    error::{Cause, Error},
    options::{Isolation, OptionError},
    report::Format,
    stage::Stage,
    target::{Target, Vendor},
};

/// A part of a request, carried out in order. What one leaves is what the next one takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// MLIR into the dialect of the target.
    Lower,
    /// That MLIR as text.
    Print,
    /// LLVM IR: made, linked, optimised and emitted.
    Device(DeviceOutput),
    /// A cubin, relocatable for an object, from PTX.
    PtxToCubin(Product),
    /// An hsaco from an object.
    LinkObject(Product),
    /// Machine code from what was generated and from objects.
    DeviceLink(Product),
    /// What is there is the product.
    Keep(Product),
}

/// The steps of a request.
pub(super) fn steps(request: &Request<'_>) -> Result<Vec<Step>, Cause> {
    let Request { target, products, .. } = request;
    let mut steps = Vec::new();
    if request.input() == InputKind::Mlir {
        steps.push(Step::Lower);
    }
    let vendor = target.vendor();
    if request.options.memory_limit.is_some() && request.options.isolation == Isolation::InProcess {
        return Err(OptionError::NotHonoured {
            name: "memory-limit",
            target: target.to_string(),
            reason:
                "it limits worker processes, and this process is none; use isolation=worker, or leave the option out"
                    .to_owned(),
        }
        .into());
    }
    if request.options.input_optimized && request.input() != InputKind::Llvm {
        return Err(OptionError::NotHonoured {
            name: "input-optimized",
            target: target.to_string(),
            reason: format!(
                "it is for LLVM IR, and this is {}; leave the option out",
                request.input().name()
            ),
        }
        .into());
    }
    if request.options.llvm_passes.is_some() && request.input() == InputKind::Ptx {
        return Err(OptionError::NotHonoured {
            name: "llvm-passes",
            target: target.to_string(),
            reason: "it is for what LLVM compiles, and this is PTX; leave the option out".to_owned(),
        }
        .into());
    }
    if request.links_objects() {
        let without_effect = [
            (
                "ptx-compiler",
                request.options.ptx_compiler.is_some(),
                "nvJitLink compiles the PTX",
            ),
            (
                "time-limit",
                request.options.time_limit.is_some() && request.options.isolation == Isolation::InProcess,
                "neither nvJitLink nor lld can be interrupted in this process",
            ),
        ];
        if let Some((name, _, reason)) = without_effect.into_iter().find(|(_, given, _)| *given) {
            return Err(OptionError::NotHonoured {
                name,
                target: target.to_string(),
                reason: format!("{reason} where objects are linked; leave the option out"),
            }
            .into());
        }
    }
    let mut output = None;
    for product in products {
        let needed = product.format.device_output(vendor);
        match output {
            None => {
                steps.push(needed.map_or(Step::Print, Step::Device));
                output = Some(needed);
            }
            Some(before) if before == needed => {}
            Some(_) => {
                let text = format!("{:?} and {:?} of one run of code generation", products[0], product);
                return Err(Cause::Internal(text));
            }
        }
        steps.push(match (product.format, vendor) {
            (Format::Cubin | Format::Hsaco, _) if request.links_objects() => Step::DeviceLink(*product),
            _ if request.links_objects() => {
                return Err(OptionError::NotHonoured {
                    name: "device-link",
                    target: product.target.to_string(),
                    reason: format!(
                        "objects are linked into machine code, and this is {}; ask for cubin or hsaco, or for a container \
                         without PTX, or link no object",
                        product.format.title()
                    ),
                }
                .into());
            }
            (Format::Cubin | Format::Object, Vendor::Nvidia) => Step::PtxToCubin(*product),
            (Format::Hsaco, _) => Step::LinkObject(*product),
            _ => Step::Keep(*product),
        });
    }
    Ok(steps)
}

impl Step {
    /// The stage that it begins with, or belongs to.
    pub(super) const fn first_stage(self) -> Stage {
        match self {
            Self::Lower | Self::Print => Stage::Lower,
            Self::Device(_) => Stage::Translate,
            Self::PtxToCubin(_) => Stage::PtxToCubin,
            Self::LinkObject(_) => Stage::LinkObject,
            Self::DeviceLink(_) => Stage::DeviceLink,
            Self::Keep(_) => Stage::CodeGen,
        }
    }

    /// The stages of the step in order, with what each leaves.
    pub(super) fn phases(self, input: InputKind, vendor: Vendor) -> Vec<(Stage, &'static str)> {
        match self {
            Self::Lower => vec![(Stage::Lower, "MLIR")],
            Self::Print | Self::Keep(_) => Vec::new(),
            Self::Device(_) if input == InputKind::Ptx => Vec::new(),
            Self::Device(output) => {
                let first = if input == InputKind::Mlir {
                    Stage::Translate
                } else {
                    Stage::Input
                };
                vec![
                    (first, "LLVM IR"),
                    (Stage::Link, "LLVM IR"),
                    (Stage::Optimize, "LLVM IR"),
                    (
                        Stage::CodeGen,
                        match output {
                            DeviceOutput::Llvm => "LLVM IR",
                            DeviceOutput::Bitcode => "bitcode",
                            DeviceOutput::Assembly if vendor == Vendor::Nvidia => "PTX",
                            DeviceOutput::Assembly => "assembly",
                            DeviceOutput::Object => "object",
                        },
                    ),
                ]
            }
            Self::PtxToCubin(product) if product.format == Format::Object => {
                vec![(Stage::PtxToCubin, "relocatable cubin")]
            }
            Self::PtxToCubin(_) => vec![(Stage::PtxToCubin, "cubin")],
            Self::LinkObject(_) => vec![(Stage::LinkObject, "hsaco")],
            Self::DeviceLink(product) => vec![(Stage::DeviceLink, product.format.title())],
        }
    }
}

/// An artifact that is to come out.
#[derive(Clone, Debug)]
pub(super) struct PlannedArtifact {
    /// Which module of the input it is of.
    pub module: usize,
    /// The first position among the module's target attributes that asked for a part of it.
    pub position: usize,
    /// What it is.
    pub format: Format,
    /// Its images, as places of requests and of their products.
    pub images: Vec<(usize, usize)>,
}

impl PlannedArtifact {
    /// Whether the first product of a request is in it: what the request reports is reported with that.
    pub(super) fn is_first_of(&self, request: usize) -> bool {
        self.images.contains(&(request, 0))
    }
}

/// The artifacts that come from requests, in the order of the requests.
pub(super) fn artifacts(requests: &[Request<'_>], emit: Emit) -> Vec<PlannedArtifact> {
    let mut planned: Vec<PlannedArtifact> = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        for (place, product) in request.products.iter().enumerate() {
            let format = match (emit, product.target.vendor()) {
                (Emit::Fatbin, Vendor::Nvidia) => Format::Fatbin,
                (Emit::Fatbin | Emit::Bundle, _) => Format::Bundle,
                (Emit::Offload, _) => Format::Offload,
                _ => product.format,
            };
            let open = planned.iter_mut().find(|artifact| {
                format.is_container() && artifact.module == request.module && artifact.format == format
            });
            match open {
                Some(artifact) => {
                    artifact.position = artifact.position.min(request.position);
                    artifact.images.push((index, place));
                }
                None => planned.push(PlannedArtifact {
                    module: request.module,
                    position: request.position,
                    format,
                    images: vec![(index, place)],
                }),
            }
        }
    }
    for artifact in &mut planned {
        // One AMD target needs no container: this is upstream's fat binary for AMD.
        if emit == Emit::Fatbin && artifact.format == Format::Bundle && artifact.images.len() == 1 {
            artifact.format = Format::Hsaco;
        }
    }
    planned
}

/// Whether the input can still become what is asked for.
pub(super) fn check_source(input: InputKind, target: &Target, emit: Emit, format: Format) -> Result<(), Error> {
    let not_from = |advice| {
        Err(Error::new(
            Stage::Plan,
            OptionError::Format(format!("{emit} cannot be made from {}: {advice}", input.name())),
        ))
    };
    match (input, format) {
        (InputKind::Ptx, _) if target.vendor() == Vendor::Amd => Err(Error::new(
            Stage::Plan,
            InputError::PtxForAmd {
                target: target.to_string(),
            },
        )),
        (InputKind::Ptx, Format::Mlir | Format::Llvm | Format::Bitcode) => {
            not_from("PTX is already past it; start from MLIR or LLVM IR")
        }
        (InputKind::Llvm, Format::Mlir) => not_from("LLVM IR is already past it; start from MLIR"),
        _ => Ok(()),
    }
}
