//! AMD targets: chips with their target ID features, wave sizes, code object versions.

use super::amd_chips::{CHIPS, Chip, IsaVersion};
use super::error::{either, shown};
use super::{CodeObjectVersion, TargetError};
use std::fmt;
use std::str::FromStr;

/// Which matrix instructions of the WMMA kind a chip has. The generations differ in the
/// layout of their operands, so that code for one does not compile for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum WmmaGeneration {
    /// gfx11: 16x16x16, 16 elements of f16 a lane, each value held by two lanes.
    Gfx11,
    /// gfx12: 16x16x16, 8 elements of f16 a lane.
    Gfx12,
    /// gfx1250: other shapes, 16x16x32 for f16.
    Gfx1250,
}

/// An AMD chip from LLVM's table with target ID features.
///
/// Written `gfx90a`, `gfx90a:sramecc+:xnack-` or `gfx9-4-generic`, features in any order, and
/// printed with the features in alphabetical order, as LLVM's target IDs are. A feature that
/// is left out means code that runs in either setting. Every value names a chip that LLVM 22
/// knows and features that the chip has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AmdTarget {
    chip: &'static Chip,
    sramecc: Option<bool>,
    xnack: Option<bool>,
}

/// An AMD target read from an LLVM feature string, with what else the string says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AmdLlvmTarget {
    /// The chip with the target ID features of the string.
    pub target: AmdTarget,
    /// Lanes of a wave, if the string sets them.
    pub wave_size: Option<u32>,
    /// The string's other features, signs kept, in its order.
    pub other: Vec<String>,
}

impl AmdTarget {
    /// Every chip of the table without features, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        CHIPS.iter().map(Self::plain)
    }

    const fn plain(chip: &'static Chip) -> Self {
        Self {
            chip,
            sramecc: None,
            xnack: None,
        }
    }

    /// The name LLVM's `-mcpu` takes, without features: `gfx90a`.
    pub const fn chip(&self) -> &'static str {
        self.chip.name
    }

    /// Version of the instruction set; for a generic target the one LLVM gives it.
    pub const fn isa_version(&self) -> IsaVersion {
        self.chip.isa
    }

    /// The target ID features that the chip lets the user set, in alphabetical order.
    pub const fn supported_features(&self) -> &'static [&'static str] {
        self.chip.feature_names()
    }

    /// Error correction of the register files and local memory: `None` if left open.
    pub const fn sramecc(&self) -> Option<bool> {
        self.sramecc
    }

    /// Replay of instructions after a page fault: `None` if left open.
    pub const fn xnack(&self) -> Option<bool> {
        self.xnack
    }

    /// Whether the target stands for several chips (`gfx11-generic`).
    pub fn is_generic(&self) -> bool {
        self.chip.is_generic()
    }

    /// Lanes of a wave that the chip runs, its default first: 64 before gfx10, then 32 and 64,
    /// and 32 alone on gfx1250.
    pub const fn wave_sizes(&self) -> &'static [u32] {
        self.chip.wave_sizes()
    }

    /// Lanes of a wave unless asked otherwise.
    pub fn default_wave_size(&self) -> u32 {
        // The list is never empty; 64 is what LLVM assumes of a chip it does not know.
        self.wave_sizes().first().copied().unwrap_or(64)
    }

    /// Lanes of a wave: what was asked for, if the chip runs it, or the chip's default.
    pub fn resolve_wave_size(&self, asked: Option<u32>) -> Result<u32, TargetError> {
        match asked {
            None => Ok(self.default_wave_size()),
            Some(size) if self.wave_sizes().contains(&size) => Ok(size),
            Some(asked) => Err(TargetError::unsupported(format!(
                "{chip} cannot run waves of {asked} lanes: it has {}",
                either(self.wave_sizes()),
                chip = self.chip()
            ))),
        }
    }

    /// LLVM's feature string for the target, such as `+sramecc,-xnack,+wavefrontsize64`.
    ///
    /// The wave size is always in it, so that code, device library constants and metadata
    /// follow from one decision. An open feature is not in it.
    pub fn llvm_features(&self, wave_size: Option<u32>) -> Result<String, TargetError> {
        let wave_size = self.resolve_wave_size(wave_size)?;
        let mut features: Vec<String> = self
            .set_features()
            .map(|(name, on)| format!("{}{name}", if on { '+' } else { '-' }))
            .collect();
        features.push(format!("+wavefrontsize{wave_size}"));
        Ok(features.join(","))
    }

    /// The features that the target sets, in alphabetical order.
    fn set_features(&self) -> impl Iterator<Item = (&'static str, bool)> {
        [("sramecc", self.sramecc), ("xnack", self.xnack)]
            .into_iter()
            .filter_map(|(name, setting)| Some((name, setting?)))
    }

    /// Value of the device libraries' constant `__oclc_ISA_version`: major × 1000 + minor ×
    /// 100 + stepping, 9010 for gfx90a.
    ///
    /// For generic targets the value of ROCm's device libraries (`oclc/src/isa_version_*-generic.cl`).
    /// It is the same formula, but for gfx9-4-generic, which LLVM calls 9.4.0 and the libraries
    /// give gfx942's number.
    pub fn oclc_isa_version(&self) -> u32 {
        if self.chip() == "gfx9-4-generic" {
            return 9402;
        }
        let IsaVersion { major, minor, stepping } = self.isa_version();
        major * 1000 + minor * 100 + stepping
    }

    /// The code object version to write: what was asked for, if it can express the target.
    /// Unasked, 6 for generic targets and 5, which more loaders take, for all others.
    ///
    /// # Errors
    ///
    /// A version before 6 for a generic target: LLVM ends the process over it ("only available
    /// on code object version 6 or better").
    pub fn resolve_code_object_version(
        &self,
        asked: Option<CodeObjectVersion>,
    ) -> Result<CodeObjectVersion, TargetError> {
        let minimum = if self.is_generic() {
            CodeObjectVersion::V6
        } else {
            CodeObjectVersion::V4
        };
        match asked {
            None => Ok(minimum.max(CodeObjectVersion::default())),
            Some(asked) if asked >= minimum => Ok(asked),
            Some(asked) => {
                let chip = self.chip().to_owned();
                Err(TargetError::unsupported(format!(
                    "{chip} is a generic target, which exists in code object version {minimum} and newer, not in version {asked}: ask for {minimum} or leave the version out, or name a chip of the family"
                )))
            }
        }
    }

    /// Matrix instructions of the MFMA kind: gfx908, gfx90a, gfx942, gfx950, gfx9-4-generic.
    /// Observed with llc 22.1.8.
    pub fn has_mfma(&self) -> bool {
        let IsaVersion { major, minor, stepping } = self.isa_version();
        major == 9 && (minor >= 4 || matches!(stepping, 8 | 10))
    }

    /// Whether vector and accumulation registers share one file, so that a wave's budget covers both: gfx90a and later
    /// chips with MFMA (LLVM's AMDGPUUsage, "GFX90A"; observed with llc 22.1.8, where `amdgpu-num-vgpr=24` gives 48).
    pub fn has_unified_registers(&self) -> bool {
        self.has_mfma() && self.chip() != "gfx908"
    }

    /// Matrix instructions of the WMMA kind: gfx11 and later.
    pub fn has_wmma(&self) -> bool {
        self.wmma().is_some()
    }

    /// Which WMMA instructions the chip has. Observed with llc 22.1.8.
    pub fn wmma(&self) -> Option<WmmaGeneration> {
        match (self.isa_version().major, self.isa_version().minor) {
            (11, _) => Some(WmmaGeneration::Gfx11),
            (12, 0) => Some(WmmaGeneration::Gfx12),
            (12, 5) => Some(WmmaGeneration::Gfx1250),
            _ => None,
        }
    }

    /// Whether code for this target runs on `device`, a chip with its settings: the same chip
    /// or its generic target, and each feature that is set here set alike there.
    pub fn runs_on(&self, device: &Self) -> bool {
        let agrees = |ours: Option<bool>, theirs: Option<bool>| ours.is_none() || ours == theirs;
        self.same_processor(device) && agrees(self.sramecc, device.sramecc) && agrees(self.xnack, device.xnack)
    }

    /// Whether this is the chip of `device` or its generic target, whatever the settings.
    pub(super) fn same_processor(&self, device: &Self) -> bool {
        self.chip == device.chip || (self.is_generic() && self.chip.family == device.chip.family)
    }

    /// A feature that one of two targets of the same chip sets and the other leaves open, if
    /// there is one: no loader could choose between their code.
    pub(super) fn ambiguity(&self, other: &Self) -> Option<&'static str> {
        if self.chip != other.chip {
            return None;
        }
        [
            ("sramecc", self.sramecc, other.sramecc),
            ("xnack", self.xnack, other.xnack),
        ]
        .into_iter()
        .find_map(|(name, a, b)| (a.is_some() != b.is_some()).then_some(name))
    }

    /// The target that LLVM and MLIR attributes describe by a chip and a feature string, such
    /// as `#rocdl.target<chip = "gfx90a", features = "+sramecc,-xnack">`.
    ///
    /// The chip may be a whole target ID. Features that are neither target ID features nor a
    /// wave size are handed back, for LLVM has hundreds.
    pub fn from_llvm(chip: &str, features: &str) -> Result<AmdLlvmTarget, TargetError> {
        let mut target: Self = chip.parse()?;
        let (mut wave_size, mut other) = (None, Vec::new());
        for feature in features.split(',').map(str::trim).filter(|feature| !feature.is_empty()) {
            let signed = feature
                .strip_prefix('+')
                .map(|name| (name, true))
                .or_else(|| feature.strip_prefix('-').map(|name| (name, false)));
            match signed {
                None => {
                    return Err(TargetError::malformed(format!(
                        "'{text}' is not a target: {reason}",
                        text = shown(feature),
                        reason = "LLVM features begin with + or -, as in +xnack"
                    )));
                }
                Some((name @ ("sramecc" | "xnack"), on)) => target.set(name, on, features)?,
                Some(("wavefrontsize32", true)) => wave_size = target.one_wave_size(wave_size, 32)?,
                Some(("wavefrontsize64", true)) => wave_size = target.one_wave_size(wave_size, 64)?,
                // Only said beside the size that is wanted.
                Some(("wavefrontsize32" | "wavefrontsize64", false)) => {}
                Some(_) => other.push(feature.to_owned()),
            }
        }
        Ok(AmdLlvmTarget {
            target,
            wave_size,
            other,
        })
    }

    /// `size` if the chip runs it and no other size was named before.
    fn one_wave_size(&self, before: Option<u32>, size: u32) -> Result<Option<u32>, TargetError> {
        if before.is_some_and(|before| before != size) {
            return Err(TargetError::malformed(format!(
                "'{text}' is not a target: {reason}",
                text = "+wavefrontsize32,+wavefrontsize64".to_owned(),
                reason = "a kernel has one wave size; leave one of the two out"
            )));
        }
        self.resolve_wave_size(Some(size)).map(Some)
    }

    /// Sets a target ID feature that is not set yet. `whole` is what the messages quote.
    fn set(&mut self, feature: &str, on: bool, whole: &str) -> Result<(), TargetError> {
        let supported = self.supported_features();
        let Some(&feature) = supported.iter().find(|name| **name == feature) else {
            return Err(TargetError::unsupported(format!(
                "{chip} has no target ID feature '{feature}': {}",
                has_features(supported),
                chip = self.chip(),
                feature = shown(feature)
            )));
        };
        let slot = if feature == "sramecc" {
            &mut self.sramecc
        } else {
            &mut self.xnack
        };
        match slot.replace(on) {
            None => Ok(()),
            Some(before) if before == on => Err(TargetError::conflict(format!(
                "'{target}' names {feature} twice: leave one out",
                target = shown(whole)
            ))),
            Some(_) => Err(TargetError::conflict(format!(
                "'{target}' asks for both {feature}+ and {feature}-: choose one, or leave it out for code that runs in either setting",
                target = shown(whole)
            ))),
        }
    }
}

impl fmt::Display for AmdTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.chip.name)?;
        self.set_features()
            .try_for_each(|(name, on)| write!(f, ":{name}{}", if on { '+' } else { '-' }))
    }
}

impl FromStr for AmdTarget {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if text.is_empty() {
            return Err(TargetError::malformed(
                "empty target name: write a chip such as sm_90 or gfx942",
            ));
        }
        let mut parts = text.split(':');
        let chip = parts.next().unwrap_or_default();
        if let Some((name, _)) = chip.split_once('+') {
            Chip::find(name)?;
            let reason = "AMD features follow a colon, as in gfx90a:xnack+";
            return Err(TargetError::malformed(format!(
                "'{text}' is not a target: {reason}",
                text = shown(text)
            )));
        }
        let mut target = Self::plain(Chip::find(chip)?);
        for part in parts {
            let (name, on) = match (part.strip_suffix('+'), part.strip_suffix('-')) {
                (Some(name), _) if !name.is_empty() => (name, true),
                (_, Some(name)) if !name.is_empty() => (name, false),
                _ => {
                    let (target, feature) = (shown(text), shown(part));
                    return Err(TargetError::malformed(format!(
                        "'{feature}' in '{target}' is not a target ID feature: write its name followed by + or -, such as xnack-"
                    )));
                }
            };
            target.set(name, on, text)?;
        }
        Ok(target)
    }
}

fn has_features(supported: &[&str]) -> String {
    if supported.is_empty() {
        "it has none, write the chip alone".to_owned()
    } else {
        format!("it has {}", supported.join(" and "))
    }
}

#[cfg(test)]
#[path = "amd_tests.rs"]
mod tests;
