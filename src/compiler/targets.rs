//! What to compile for, and what that means for a module and an output format.

use melior::ir::operation::{OperationLike, OperationRef};

use super::{
    InputError, attribute, emit::Emit, input::InputKind, plan::check_source, request::Product, target_attributes,
};
use crate::{
    bridge::mlir::place_of,
    error::{Cause, Error},
    options::{OptionError, Options},
    stage::Stage,
    target::{Generation, PlannedImage, PtxPolicy, Target, TargetPlan},
};

/// What to compile for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Targets {
    /// What the target attributes of each module name.
    Attributes,
    /// These. Which of them leave PTX in a container is for [`Options::include_ptx`] to say.
    List(Vec<Target>),
    /// Images that were listed one by one, as nvcc's `-gencode` does.
    Plan(TargetPlan),
}

impl From<&[Target]> for Targets {
    /// No targets at all mean those of the attributes.
    fn from(targets: &[Target]) -> Self {
        if targets.is_empty() {
            Self::Attributes
        } else {
            Self::List(targets.to_vec())
        }
    }
}

impl From<&Vec<Target>> for Targets {
    fn from(targets: &Vec<Target>) -> Self {
        targets.as_slice().into()
    }
}

impl<const N: usize> From<&[Target; N]> for Targets {
    fn from(targets: &[Target; N]) -> Self {
        targets.as_slice().into()
    }
}

/// One run of code generation for a module.
pub(super) struct PlannedGeneration {
    pub target: Target,
    pub products: Vec<Product>,
    pub options: Options,
    pub include_ptx: PtxPolicy,
    pub position: usize,
    /// What there is to say about the plan, with the first generation.
    pub notes: Vec<String>,
}

impl Targets {
    /// The runs of code generation for one input. `operation` is the `gpu.module`, if the input is MLIR.
    pub(super) fn generations(
        &self,
        input: InputKind,
        emit: Emit,
        options: &Options,
        operation: Option<OperationRef<'_, '_>>,
    ) -> Result<Vec<PlannedGeneration>, Error> {
        let planned = |cause: Cause| Error::new(Stage::Plan, cause);
        // What was asked for: place among the attributes, target, options.
        let asked: Vec<(usize, Target, Options)> = match (self, operation) {
            (Self::Attributes, Some(operation)) => asked_by_attributes(operation, options).map_err(planned)?,
            (Self::List(targets), _) => targets.iter().map(|target| (0, *target, options.clone())).collect(),
            _ => Vec::new(),
        };
        let plan = match self {
            Self::Plan(_) if options.include_ptx.is_some() => {
                return Err(planned(not_beside_a_plan("include-ptx", "the plan lists its PTX")));
            }
            Self::Plan(_) if options.compression.is_some() && !emit.is_container() => {
                return Err(planned(only_containers("compress", emit)));
            }
            Self::Plan(plan) => plan.clone(),
            _ if asked.is_empty() => {
                let location = operation.map(|operation| place_of(operation.location()));
                return Err(planned(InputError::NoTarget { location }.into()));
            }
            _ => plan_of(&asked, emit, options).map_err(planned)?,
        };
        let mut notes: Vec<String> = Vec::new();
        if emit.is_container() {
            notes.extend(plan.notes.iter().map(ToString::to_string));
        }
        let mut generations = Vec::new();
        for generation in &plan.generations {
            let by_attribute = asked.iter().filter(|(_, target, _)| *target == generation.target);
            let mut its: Vec<(usize, Options)> = by_attribute
                .map(|(position, _, options)| (*position, options.clone()))
                .collect();
            if its.is_empty() {
                // PTX of an architecture that is no target, or a plan of images.
                its.push((0, options.clone()));
            }
            if emit.is_container() && its.len() > 1 {
                return Err(planned(
                    OptionError::NotHonoured {
                        name: "targets",
                        target: generation.target.to_string(),
                        reason: "it is named twice with different options, and no driver could choose between the two \
                                 images in one container; leave one of them out"
                            .to_owned(),
                    }
                    .into(),
                ));
            }
            let listed = matches!(self, Self::Plan(_));
            let products = emit
                .products(generation, listed)
                .map_err(|error| planned(error.into()).for_target(&generation.target))?;
            for product in &products {
                check_source(input, &product.target, emit, product.format)?;
            }
            if products.is_empty() {
                continue;
            }
            for (position, options) in its {
                generations.push(PlannedGeneration {
                    target: generation.target,
                    products: products.clone(),
                    options,
                    include_ptx: plan.include_ptx.clone(),
                    position,
                    notes: std::mem::take(&mut notes),
                });
            }
        }
        if generations.is_empty() {
            return Err(planned(
                OptionError::Format(format!(
                    "{} asks for no {emit}: ask for another format, or for other images",
                    list(&plan)
                ))
                .into(),
            ));
        }
        Ok(generations)
    }
}

fn list(plan: &TargetPlan) -> String {
    let images: Vec<String> = plan.images().map(|(_, image)| image.to_string()).collect();
    images.join(", ")
}

fn asked_by_attributes(
    operation: OperationRef<'_, '_>,
    options: &Options,
) -> Result<Vec<(usize, Target, Options)>, Cause> {
    let base = attribute::with_debug_of(operation, options)?;
    let mut asked: Vec<(usize, Target, Options)> = Vec::new();
    for (position, attribute) in target_attributes(operation).into_iter().enumerate() {
        let (target, options) = attribute::read(attribute, &base)?;
        if !asked.iter().any(|(_, other, its)| *other == target && *its == options) {
            asked.push((position, target, options));
        }
    }
    Ok(asked)
}

/// The images for a list of targets.
fn plan_of(asked: &[(usize, Target, Options)], emit: Emit, base: &Options) -> Result<TargetPlan, Cause> {
    let mut policy: Option<(PtxPolicy, String)> = base
        .include_ptx
        .clone()
        .map(|policy| (policy, "the option include-ptx".to_owned()));
    for (_, target, options) in asked {
        let Some(its) = &options.include_ptx else { continue };
        let name = format!("target {target}");
        policy = Some(match policy {
            None => (its.clone(), name),
            Some((before, from)) => (PtxPolicy::join((&before, &from), (its, &name))?, from),
        });
    }
    let policy = policy.map(|(policy, _)| policy);
    let targets: Vec<Target> = asked.iter().map(|(_, target, _)| *target).collect();
    if emit.is_container() {
        let links_objects = base.device_link.as_ref().is_some_and(|link| !link.objects.is_empty());
        let has_nvidia = targets.iter().any(|target| target.as_nvidia().is_some());
        // PTX cannot hold what was linked from objects.
        let policy = policy.or((links_objects && has_nvidia).then_some(PtxPolicy::None));
        return Ok(TargetPlan::from_targets(&targets, policy.as_ref())?);
    }
    if policy.is_some() {
        return Err(only_containers("include-ptx", emit));
    }
    if asked.iter().any(|(_, _, options)| options.compression.is_some()) {
        return Err(only_containers("compress", emit));
    }
    // Each target for itself: without a container two images of one architecture do not meet.
    Ok(TargetPlan {
        generations: targets.into_iter().map(generation_of).collect(),
        include_ptx: PtxPolicy::default(),
        notes: Vec::new(),
    })
}

fn only_containers(name: &'static str, emit: Emit) -> Cause {
    Cause::Option(OptionError::NotHonoured {
        name,
        target: emit.name().to_owned(),
        reason: "it says how a container is filled; ask for fatbin, bundle or offload, or leave it out".to_owned(),
    })
}

fn not_beside_a_plan(name: &'static str, reason: &str) -> Cause {
    Cause::Option(OptionError::NotHonoured {
        name,
        target: "a plan of images".to_owned(),
        reason: format!("{reason}; leave the option out"),
    })
}

fn generation_of(target: Target) -> Generation {
    let image = match target {
        Target::Nvidia(chip) if chip.is_virtual() => PlannedImage::Ptx(chip),
        _ => PlannedImage::Machine(target),
    };
    Generation {
        target,
        images: vec![image],
    }
}

impl Emit {
    /// What one run of code generation makes. `listed`: the images were listed one by one, so that one without machine
    /// code is no mistake where machine code is asked for.
    fn products(self, generation: &Generation, listed: bool) -> Result<Vec<Product>, OptionError> {
        let product = |target: Target| {
            Ok(Product {
                target,
                format: self.format(&target)?,
            })
        };
        let is_virtual = generation.target.as_nvidia().is_some_and(|chip| chip.is_virtual());
        let images: Vec<Target> = match self {
            Self::Mlir | Self::Llvm | Self::Bitcode | Self::Ptx | Self::Asm => vec![generation.target],
            Self::Fatbin | Self::Bundle | Self::Offload => generation.images.iter().map(PlannedImage::target).collect(),
            Self::Binary if listed => generation.images.iter().map(PlannedImage::target).collect(),
            Self::Binary if is_virtual => vec![generation.target],
            Self::Object | Self::Cubin | Self::Hsaco | Self::Binary => {
                let machine: Vec<Target> = generation
                    .images
                    .iter()
                    .filter(|image| matches!(image, PlannedImage::Machine(_)))
                    .map(PlannedImage::target)
                    .collect();
                if machine.is_empty() && !listed {
                    // Says why not.
                    vec![generation.target]
                } else {
                    machine
                }
            }
        };
        images.into_iter().map(product).collect()
    }
}
