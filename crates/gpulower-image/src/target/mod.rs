//! What can be compiled for: chips, their features, and the versions that go with them.
//!
//! Pure data and parsing. Everything is checked here, against tables, before LLVM or a vendor
//! tool sees it: LLVM only warns about a chip it does not know, and ends the process over a
//! version that does not fit a chip.
//!
//! The tables are those of LLVM 22.1.8; tests compare them with `llc`, both ways.

mod amd;
mod amd_chips;
mod arch;
mod code_object;
mod device;
mod device_query;
mod error;
#[cfg(test)]
#[path = "../../tests/private/llvm_targets.rs"]
mod llvm_tests;
mod load_error;
mod nvcc;
mod nvcc_groups;
mod nvcc_list;
mod nvidia;
mod nvidia_capabilities;
mod nvidia_chips;
mod plan;
mod ptx;
mod ptx_policy;
pub mod selection;

pub use amd::{AmdLlvmTarget, AmdTarget, WmmaGeneration};
pub use amd_chips::IsaVersion;
pub use arch::NvidiaArch;
pub use code_object::CodeObjectVersion;
pub use device::ComputeCapability;
pub use device_query::{Device, DeviceQuery};
pub use error::{TargetError, TargetProblem};
pub use nvcc::{NvccArch, NvccFlags};
pub use nvidia::{NvidiaKind, NvidiaTarget};
pub use nvidia_chips::Suffix;
pub use plan::{Generation, PlanNote, PlannedImage, TargetPlan};
pub use ptx::{CudaRelease, PtxIsa};
pub use ptx_policy::PtxPolicy;

use error::shown;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Who made a chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Vendor {
    /// NVIDIA: PTX, cubin, fat binary.
    Nvidia,
    /// AMD: HSA code objects.
    Amd,
}

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nvidia => "NVIDIA",
            Self::Amd => "AMD",
        })
    }
}

/// One chip to compile for, with its features.
///
/// Read with [`str::parse`] and printed in the same notation: `sm_90a`, `compute_90`,
/// `sm_90+ptx83`, `gfx90a:sramecc+:xnack-`, `gfx9-4-generic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// A chip of NVIDIA.
    Nvidia(NvidiaTarget),
    /// A chip of AMD.
    Amd(AmdTarget),
}

impl Target {
    /// Every chip of the tables, without features: NVIDIA's first, each vendor's in the order
    /// of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        NvidiaTarget::all()
            .map(Self::Nvidia)
            .chain(AmdTarget::all().map(Self::Amd))
    }

    /// Reads targets separated by commas, such as `sm_80,sm_90a,gfx942:xnack-`. Spaces around
    /// a target are ignored, and so is a target that came before.
    ///
    /// # Errors
    ///
    /// The first target that cannot be read, an empty one between commas, or an empty list.
    pub fn parse_list(list: &str) -> Result<Vec<Self>, TargetError> {
        if list.trim().is_empty() {
            return Err(TargetError::malformed(
                "empty list of targets: name at least one chip, such as sm_90 or gfx942",
            ));
        }
        let mut targets = Vec::new();
        for (index, text) in list.split(',').map(str::trim).enumerate() {
            if text.is_empty() {
                return Err(TargetError::malformed(format!(
                    "target {position} of the list '{list}' is empty: remove the extra comma",
                    position = index + 1,
                    list = shown(list)
                )));
            }
            let target = text.parse()?;
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        Ok(targets)
    }

    /// Refuses targets whose code cannot lie in one binary because no loader could choose
    /// between them: two of one AMD chip, of which one leaves a feature open that the other
    /// sets. Clang refuses the same.
    pub fn check_one_binary(targets: &[Self]) -> Result<(), TargetError> {
        for (index, first) in targets.iter().enumerate() {
            for second in targets.iter().skip(index + 1) {
                let (Self::Amd(a), Self::Amd(b)) = (first, second) else {
                    continue;
                };
                if let Some(feature) = a.ambiguity(b) {
                    let b_sets = b.to_string().contains(feature);
                    let (open, set) = if b_sets { (a, b) } else { (b, a) };
                    let (first, second) = (open.to_string(), set.to_string());
                    return Err(TargetError::conflict(format!(
                        "targets {first} and {second} cannot be in one binary: both match a device with {feature} set; name {feature} in all targets of the chip, or in none"
                    )));
                }
            }
        }
        Ok(())
    }

    /// Who made the chip.
    pub const fn vendor(&self) -> Vendor {
        match self {
            Self::Nvidia(_) => Vendor::Nvidia,
            Self::Amd(_) => Vendor::Amd,
        }
    }

    /// The name LLVM's `-mcpu` takes: `sm_90a` (also for `compute_90a`), `gfx90a`.
    pub const fn chip(&self) -> &'static str {
        match self {
            Self::Nvidia(target) => target.chip(),
            Self::Amd(target) => target.chip(),
        }
    }

    /// LLVM's target triple.
    pub const fn triple(&self) -> &'static str {
        match self {
            Self::Nvidia(_) => "nvptx64-nvidia-cuda",
            Self::Amd(_) => "amdgcn-amd-amdhsa",
        }
    }

    /// The target as NVIDIA's, if it is.
    pub const fn as_nvidia(&self) -> Option<&NvidiaTarget> {
        match self {
            Self::Nvidia(target) => Some(target),
            Self::Amd(_) => None,
        }
    }

    /// The target as AMD's, if it is.
    pub const fn as_amd(&self) -> Option<&AmdTarget> {
        match self {
            Self::Amd(target) => Some(target),
            Self::Nvidia(_) => None,
        }
    }
}

impl From<NvidiaTarget> for Target {
    fn from(target: NvidiaTarget) -> Self {
        Self::Nvidia(target)
    }
}

impl From<AmdTarget> for Target {
    fn from(target: AmdTarget) -> Self {
        Self::Amd(target)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nvidia(target) => target.fmt(f),
            Self::Amd(target) => target.fmt(f),
        }
    }
}

/// As the text that [`str::parse`] reads.
impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if text.is_empty() {
            return Err(TargetError::malformed(
                "empty target name: write a chip such as sm_90 or gfx942",
            ));
        }
        let nvidia = match text.parse() {
            Ok(target) => return Ok(Self::Nvidia(target)),
            Err(error) => error,
        };
        if text.starts_with("sm_") || text.starts_with("compute_") {
            return Err(nvidia);
        }
        match (text.parse(), nvidia) {
            (Ok(target), _) => Ok(Self::Amd(target)),
            // Of two refusals the one with suggestions helps more.
            (Err(amd), nvidia)
                if amd.problem == TargetProblem::UnknownChip
                    && nvidia.problem == TargetProblem::UnknownChip
                    && amd.nearest.is_empty() =>
            {
                Err(nvidia)
            }
            (Err(amd), _) => Err(amd),
        }
    }
}

#[cfg(test)]
mod tests;
