//! What one artifact is to hold: runs of code generation, and the images that come from each.

use super::{NvidiaArch, NvidiaKind, NvidiaTarget, PtxPolicy, Suffix, Target, TargetError, Vendor};
use std::fmt;

/// One run of code generation and the images that come from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Generation {
    /// What LLVM generates code for: `sm_90a`, `compute_80`, `gfx942`.
    pub target: Target,
    /// What is made of it, in the order in which it lies in a container. Never empty.
    pub images: Vec<PlannedImage>,
}

/// An image to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PlannedImage {
    /// PTX, for a virtual target.
    Ptx(NvidiaTarget),
    /// Machine code: the cubin of an `sm_` target, the hsaco of an AMD target.
    Machine(Target),
}

impl PlannedImage {
    /// What the image is for: `compute_80`, `sm_86`, `gfx942`.
    #[must_use]
    pub const fn target(&self) -> Target {
        match self {
            Self::Ptx(target) => Target::Nvidia(*target),
            Self::Machine(target) => *target,
        }
    }

    /// The architecture that an NVIDIA image is stored under.
    #[must_use]
    pub fn arch(&self) -> Option<NvidiaArch> {
        self.target().as_nvidia().map(NvidiaTarget::arch)
    }

    /// Whether it is PTX.
    #[must_use]
    pub const fn is_ptx(&self) -> bool {
        matches!(self, Self::Ptx(_))
    }
}

/// `ptx compute_80`, `cubin sm_90a`, `hsaco gfx942`.
impl fmt::Display for PlannedImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Ptx(_) => "ptx",
            Self::Machine(Target::Nvidia(_)) => "cubin",
            Self::Machine(Target::Amd(_)) => "hsaco",
        };
        write!(f, "{kind} {}", self.target())
    }
}

/// What one artifact is to hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetPlan {
    /// The runs of code generation, in the order of their images in a container.
    pub generations: Vec<Generation>,
    /// Which PTX was asked for. It travels with an artifact that holds images of NVIDIA's.
    pub include_ptx: PtxPolicy,
    /// What a user may want to know about the plan.
    pub notes: Vec<PlanNote>,
}

/// Something about a plan that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanNote {
    /// The default policy found nothing that is portable.
    NoPortablePtx {
        /// The NVIDIA targets.
        targets: String,
    },
    /// nvcc's `-arch` more than once.
    ArchRepeated {
        /// The last.
        used: String,
        /// The one before it.
        dropped: String,
    },
    /// Two generations make a cubin for one architecture, as nvcc lets them.
    TwoCubins {
        /// The architecture.
        arch: NvidiaArch,
        /// What the one is generated for.
        first: Target,
        /// What the other is generated for.
        second: Target,
    },
}

impl fmt::Display for PlanNote {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPortablePtx { targets } => write!(
                formatter,
                "no PTX is included: {targets} are not portable, their PTX runs on no other chip or family; \
                 --include-ptx=all includes it all the same"
            ),
            Self::ArchRepeated { used, dropped } => {
                write!(
                    formatter,
                    "-arch={used} counts, the last one, and -arch={dropped} does not"
                )
            }
            Self::TwoCubins { arch, first, second } => write!(
                formatter,
                "there are two cubins for {arch}, made from {first} and {second}: a device loads one of them only"
            ),
        }
    }
}

impl TargetPlan {
    /// The plan for a list of targets: code is generated for each chip itself, and its PTX, where the policy includes it,
    /// comes from the same generation. `policy` is what was asked for; `None` stands for the default.
    ///
    /// The generations have the order of the targets; a target that came before counts once. PTX of an architecture that
    /// is no target makes a generation of its own, after those.
    ///
    /// # Errors
    ///
    /// No target; two targets that make the same image; AMD targets that [`Target::check_one_binary`] refuses; a policy
    /// that was asked for and cannot be honoured.
    pub fn from_targets(targets: &[Target], policy: Option<&PtxPolicy>) -> Result<Self, TargetError> {
        let targets = distinct(targets);
        if targets.is_empty() {
            return Err(no_target());
        }
        Target::check_one_binary(&targets)?;
        check_same_image(&targets)?;

        let nvidia: Vec<NvidiaTarget> = targets
            .iter()
            .filter_map(|target| target.as_nvidia().copied())
            .collect();
        let (ptx, notes) = policy_ptx(&nvidia, policy)?;
        let mut generations: Vec<Generation> = Vec::new();
        for &target in &targets {
            add_target(&mut generations, target);
        }
        for target in ptx {
            // A virtual target is PTX of its architecture already.
            if !nvidia
                .iter()
                .any(|named| named.is_virtual() && named.arch() == target.arch())
            {
                add_target(&mut generations, Target::Nvidia(target));
            }
        }
        Ok(Self {
            generations,
            include_ptx: policy.cloned().unwrap_or_default(),
            notes,
        })
    }

    /// Every image with the index of its generation, in the order in which they lie in a container. That is nvcc 13.0's
    /// order for what nvcc's flags say.
    pub fn images(&self) -> impl Iterator<Item = (usize, PlannedImage)> + '_ {
        self.generations
            .iter()
            .enumerate()
            .flat_map(|(index, generation)| generation.images.iter().map(move |image| (index, *image)))
    }

    /// The images of one vendor: what a fat binary or a HIP bundle of the plan holds.
    pub fn images_of(&self, vendor: Vendor) -> impl Iterator<Item = (usize, PlannedImage)> + '_ {
        self.images()
            .filter(move |(_, image)| image.target().vendor() == vendor)
    }

    /// The policy to write into the artifact: none without an image of NVIDIA's.
    #[must_use]
    pub fn stored_policy(&self) -> Option<&PtxPolicy> {
        self.images_of(Vendor::Nvidia).next().map(|_| &self.include_ptx)
    }
}

/// Each target once, in order.
fn distinct(targets: &[Target]) -> Vec<Target> {
    let mut distinct = Vec::new();
    for target in targets {
        if !distinct.contains(target) {
            distinct.push(*target);
        }
    }
    distinct
}

/// Whether the generation for `real` makes this PTX: the same architecture, and no other PTX ISA named.
fn made_with(ptx: NvidiaTarget, real: NvidiaTarget) -> bool {
    let same_isa = ptx.explicit_ptx().is_none() || ptx.explicit_ptx() == real.explicit_ptx();
    ptx.arch() == real.arch() && same_isa
}

pub(super) fn no_target() -> TargetError {
    TargetError::malformed("nothing to make: name at least one target, such as sm_90 or gfx942")
}

/// Two targets of one architecture and kind differ by their PTX ISA alone, which no container records for a cubin.
fn check_same_image(targets: &[Target]) -> Result<(), TargetError> {
    for (index, first) in targets.iter().enumerate() {
        for second in targets.iter().skip(index + 1) {
            let (Some(a), Some(b)) = (first.as_nvidia(), second.as_nvidia()) else {
                continue;
            };
            if a.kind() == b.kind() && a.arch() == b.arch() {
                return Err(TargetError::conflict(format!(
                    "targets {first} and {second} would both make a {kind} for {arch}: leave one of them out",
                    kind = if a.is_virtual() { "PTX" } else { "cubin" },
                    arch = a.arch()
                )));
            }
        }
    }
    Ok(())
}

/// The architectures, as virtual targets, whose PTX the policy includes.
fn policy_ptx(
    nvidia: &[NvidiaTarget],
    asked: Option<&PtxPolicy>,
) -> Result<(Vec<NvidiaTarget>, Vec<PlanNote>), TargetError> {
    let default = PtxPolicy::default();
    let policy = asked.unwrap_or(&default);
    let as_virtual = |target: &NvidiaTarget| target.with_kind(NvidiaKind::Virtual);
    let mut portable: Vec<NvidiaTarget> = nvidia
        .iter()
        .filter(|target| target.suffix() == Suffix::Plain)
        .map(as_virtual)
        .collect();
    portable.sort_by_key(NvidiaTarget::number);
    let chosen = match policy {
        PtxPolicy::None => {
            if let Some(target) = nvidia.iter().find(|target| target.is_virtual()) {
                return Err(TargetError::conflict(format!(
                    "target {target} is PTX alone, and --include-ptx=none asks for no PTX: leave one of the two out, or name {real} \
                     for machine code",
                    real = target.with_kind(NvidiaKind::Real)
                )));
            }
            return Ok((Vec::new(), Vec::new()));
        }
        PtxPolicy::Listed(listed) => return Ok((listed.clone(), Vec::new())),
        PtxPolicy::All if !nvidia.is_empty() => {
            return Ok((nvidia.iter().map(as_virtual).collect(), Vec::new()));
        }
        PtxPolicy::All => None,
        PtxPolicy::Lowest => portable.first(),
        PtxPolicy::Newest => portable.last(),
    };
    if let Some(chosen) = chosen {
        return Ok((vec![*chosen], Vec::new()));
    }
    let targets = join(nvidia);
    match (asked, nvidia.first()) {
        (None, None) => Ok((Vec::new(), Vec::new())),
        (None, Some(_)) => Ok((Vec::new(), vec![PlanNote::NoPortablePtx { targets }])),
        (Some(policy), None) => Err(TargetError::conflict(format!(
            "--include-ptx={policy} finds no NVIDIA target: PTX is NVIDIA's; name one, or leave the policy out",
            policy = policy
        ))),
        (Some(policy), Some(first)) => Err(TargetError::conflict(format!(
            "--include-ptx={policy} finds no portable target among {targets}: PTX of a target with a or f runs on that chip or \
         family alone; --include-ptx=all, or --include-ptx={example}, includes it all the same, and --include-ptx=sm_80, \
             say, adds PTX of a portable one",
            policy = policy,
            example = first.with_kind(NvidiaKind::Real)
        ))),
    }
}

fn join(targets: &[NvidiaTarget]) -> String {
    let names: Vec<String> = targets.iter().map(NvidiaTarget::to_string).collect();
    names.join(", ")
}

/// Adds the image of a target. PTX and the cubin of one architecture share a generation, unless each names another PTX ISA.
fn add_target(generations: &mut Vec<Generation>, target: Target) {
    let image = match target {
        Target::Nvidia(ptx) if ptx.is_virtual() => {
            let home = generations.iter_mut().find_map(|generation| match generation.target {
                Target::Nvidia(real) if !real.is_virtual() && made_with(ptx, real) => Some((generation, real)),
                _ => None,
            });
            if let Some((generation, real)) = home {
                let ptx = real.with_kind(NvidiaKind::Virtual);
                generation.images.push(PlannedImage::Ptx(ptx));
                return;
            }
            PlannedImage::Ptx(ptx)
        }
        Target::Nvidia(real) => {
            let home = generations.iter_mut().find(|generation| {
                matches!(generation.target, Target::Nvidia(ptx) if ptx.is_virtual() && made_with(ptx, real))
            });
            if let Some(generation) = home {
                let ptx = real.with_kind(NvidiaKind::Virtual);
                generation.target = target;
                generation.images = vec![PlannedImage::Ptx(ptx), PlannedImage::Machine(target)];
                return;
            }
            PlannedImage::Machine(target)
        }
        Target::Amd(_) => PlannedImage::Machine(target),
    };
    generations.push(Generation {
        target,
        images: vec![image],
    });
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
