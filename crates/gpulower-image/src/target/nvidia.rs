//! NVIDIA targets: chips, virtual architectures, and the PTX ISA that each is given.

use super::error::shown;
use super::nvidia_chips::{CHIPS, Chip, Suffix, family};
use super::{ComputeCapability, CudaRelease, NvidiaArch, PtxIsa, TargetError};
use crate::nearest;
use std::fmt;
use std::str::FromStr;

/// Whether machine code is wanted for a chip, or PTX alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NvidiaKind {
    /// `sm_90`: machine code for the chip, or PTX on the way to it.
    Real,
    /// `compute_90`: PTX for a driver to compile, on this chip or a later one.
    Virtual,
}

/// An NVIDIA chip from LLVM's table, real or virtual, with or without an explicit PTX ISA.
///
/// Written `sm_90`, `sm_90a`, `sm_100f`, `compute_90` or `sm_90+ptx83`, and printed the same
/// way. Every value names a chip that LLVM 22 knows and, if it has one, a PTX ISA that LLVM
/// writes and that has the chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NvidiaTarget {
    chip: &'static Chip,
    kind: NvidiaKind,
    ptx: Option<PtxIsa>,
}

impl NvidiaTarget {
    /// Every chip of the table as a real target, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        CHIPS.iter().map(|chip| Self {
            chip,
            kind: NvidiaKind::Real,
            ptx: None,
        })
    }

    /// The name LLVM's `-mcpu` and ptxas's `-arch` take, `sm_90a`, also for `compute_90a`.
    pub const fn chip(&self) -> &'static str {
        self.chip.name
    }

    /// 90 for `sm_90a`: ten times the major plus the minor compute capability.
    pub const fn number(&self) -> u16 {
        self.chip.number
    }

    /// The `a` or `f` after the number, if any.
    pub const fn suffix(&self) -> Suffix {
        self.chip.suffix
    }

    /// Whether this is `sm_` or `compute_`.
    pub const fn kind(&self) -> NvidiaKind {
        self.kind
    }

    /// Whether only PTX can be made for this target.
    pub const fn is_virtual(&self) -> bool {
        matches!(self.kind, NvidiaKind::Virtual)
    }

    /// The same chip as `sm_` or `compute_`.
    pub const fn with_kind(self, kind: NvidiaKind) -> Self {
        Self { kind, ..self }
    }

    /// The PTX ISA in the target's own name, if it has one.
    pub const fn explicit_ptx(&self) -> Option<PtxIsa> {
        self.ptx
    }

    /// The same target with a PTX ISA in its name; refuses one that LLVM does not write or
    /// that is older than the chip.
    pub fn with_ptx(self, ptx: PtxIsa) -> Result<Self, TargetError> {
        self.check_ptx(ptx)?;
        Ok(Self { ptx: Some(ptx), ..self })
    }

    /// First PTX ISA that has the chip.
    pub const fn min_ptx(&self) -> PtxIsa {
        self.chip.min_ptx
    }

    /// The PTX ISA to write.
    ///
    /// `user` is what was asked for beside the target's name, `newest_tool` the newest version
    /// that the tool which comes next reads (`None` if nothing comes next). Unasked, it is the
    /// chip's first version, which the most drivers and tools accept.
    ///
    /// # Errors
    ///
    /// A version that LLVM does not write, that is older than the chip, or newer than the
    /// tool; a chip newer than the tool; two different versions for one target.
    pub fn resolve_ptx(&self, user: Option<PtxIsa>, newest_tool: Option<PtxIsa>) -> Result<PtxIsa, TargetError> {
        let asked = match (self.ptx, user) {
            (Some(named), Some(asked)) if named != asked => {
                return Err(TargetError::conflict(format!(
                    "target {target} names PTX {named}, but PTX {asked} was asked for: leave one of the two out",
                    target = self
                )));
            }
            (named, asked) => named.or(asked),
        };
        if let Some(asked) = asked {
            self.check_ptx(asked)?;
        }
        let minimum = self.min_ptx();
        let chosen = asked.unwrap_or(minimum);
        match newest_tool {
            Some(tool) if tool < minimum => Err(TargetError::unsupported(format!(
                "{chip} needs PTX {minimum}, and the tool at hand reads up to PTX {tool}: use CUDA {} or newer, or emit PTX only",
                CudaRelease::first_with(minimum).map_or_else(|| "of a later release".to_owned(), |r| r.to_string()),
                chip = self.chip()
            ))),
            Some(tool) if tool < chosen => Err(TargetError::unsupported(format!(
                "PTX {asked} is newer than the tool at hand, which reads up to PTX {tool}: ask for {tool} or older, or use a newer CUDA toolkit",
                asked = chosen
            ))),
            _ => Ok(chosen),
        }
    }

    fn check_ptx(&self, asked: PtxIsa) -> Result<(), TargetError> {
        asked.check_llvm()?;
        let minimum = self.min_ptx();
        if asked < minimum {
            return Err(TargetError::unsupported(format!(
                "PTX {asked} does not support {chip}: it needs {minimum} or newer; ask for {minimum} or leave the version out",
                chip = self.chip()
            )));
        }
        Ok(())
    }

    /// First CUDA release whose ptxas compiles for the chip, among those that read LLVM's PTX
    /// (5.5 and later).
    pub fn first_cuda(&self) -> Option<CudaRelease> {
        CudaRelease::first_with(self.min_ptx())
    }

    /// Last CUDA release whose ptxas compiles for the chip; `None` while it is supported.
    pub const fn last_cuda(&self) -> Option<CudaRelease> {
        self.chip.last_cuda
    }

    /// Whether the ptxas of a CUDA release compiles for the chip.
    pub fn supported_by_cuda(&self, release: CudaRelease) -> bool {
        self.check_cuda(release).is_ok()
    }

    /// Refuses a chip that a CUDA release has dropped, renamed or not learnt yet, with the
    /// releases that have it.
    pub fn check_cuda(&self, release: CudaRelease) -> Result<(), TargetError> {
        let chip = || self.chip().to_owned();
        // Every row's first version is in the table of releases; a test holds that.
        let first = self.first_cuda().unwrap_or(release);
        if release < first {
            return Err(TargetError::unsupported(format!(
                "CUDA {release} does not know {chip} yet: use CUDA {first} or newer, or emit PTX only",
                chip = chip()
            )));
        }
        match self.last_cuda() {
            Some(last) if release > last => Err(TargetError::unsupported(format!(
                "CUDA {release} no longer compiles for {chip}: its last release is {last}; {}",
                dropped_advice(first, last, self.chip.renamed().map(|new| new.name)),
                chip = chip()
            ))),
            _ => Ok(()),
        }
    }

    /// Whether a tool compiles PTX with this `.target` for the chip `arch`.
    ///
    /// A plain target compiles for every chip of its number or above; `a` for that chip with
    /// `a` alone; `f` for the later chips of its family, whatever their suffix. All 27 targets
    /// by 23 chips observed with ptxas 13.0.88, which counts 101 as the former number of 110.
    /// Nothing compiles for a virtual `arch`.
    pub fn ptx_compiles_for(&self, arch: &Self) -> bool {
        if arch.is_virtual() {
            return false;
        }
        match self.suffix() {
            Suffix::Plain => arch.number() >= self.number(),
            Suffix::ArchitectureSpecific => arch.chip == self.chip || self.chip.renamed() == Some(arch.chip),
            Suffix::FamilySpecific => family(arch.number()) == family(self.number()) && arch.number() >= self.number(),
        }
    }

    /// The number and the letter.
    pub const fn arch(&self) -> NvidiaArch {
        NvidiaArch {
            number: self.number(),
            suffix: self.suffix(),
        }
    }

    /// Whether a driver that reads the PTX ISA compiles PTX with this `.target` for a device: see
    /// [`NvidiaArch::ptx_runs_on`].
    pub fn ptx_runs_on(&self, device: ComputeCapability) -> bool {
        self.arch().ptx_runs_on(device)
    }

    /// Whether machine code for this chip runs on a device: see [`NvidiaArch::cubin_runs_on`]. There is none for a
    /// virtual target.
    pub fn cubin_runs_on(&self, device: ComputeCapability) -> bool {
        !self.is_virtual() && self.arch().cubin_runs_on(device)
    }

    /// The target that LLVM and MLIR attributes describe by a chip and a feature string, such
    /// as `#nvvm.target<chip = "sm_90", features = "+ptx80">`. Features other than one
    /// `+ptxNN` are refused.
    pub fn from_llvm(chip: &str, features: &str) -> Result<Self, TargetError> {
        let mut target = Self::parse_chip(chip)?;
        for feature in features.split(',').map(str::trim).filter(|feature| !feature.is_empty()) {
            let ptx: PtxIsa = match feature.strip_prefix('+') {
                Some(name) if name.starts_with("ptx") => name.parse()?,
                _ => {
                    return Err(TargetError::malformed(format!(
                        "'{text}' is not a target: {reason}",
                        text = shown(feature),
                        reason = "the only feature of an NVIDIA target is its PTX ISA, written +ptx83"
                    )));
                }
            };
            match target.ptx {
                Some(named) if named != ptx => {
                    let target = target.to_string();
                    return Err(TargetError::conflict(format!(
                        "target {target} names PTX {named}, but PTX {asked} was asked for: leave one of the two out",
                        asked = ptx
                    )));
                }
                _ => target = target.with_ptx(ptx)?,
            }
        }
        Ok(target)
    }

    /// A chip's name alone.
    fn parse_chip(name: &str) -> Result<Self, TargetError> {
        let (real, kind) = match name.strip_prefix("compute_") {
            Some(rest) => (format!("sm_{rest}"), NvidiaKind::Virtual),
            None => (name.to_owned(), NvidiaKind::Real),
        };
        match Chip::find(&real) {
            Some(chip) => Ok(Self { chip, kind, ptx: None }),
            None => {
                let names: Vec<String> = ["sm_", "compute_"]
                    .iter()
                    .flat_map(|prefix| CHIPS.iter().map(|chip| chip.name.replace("sm_", prefix)))
                    .collect();
                let nearest = nearest(name, names.iter().map(String::as_str));
                Err(TargetError::unknown_chip(name, nearest))
            }
        }
    }
}

impl fmt::Display for NvidiaTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            NvidiaKind::Real => f.write_str(self.chip.name)?,
            NvidiaKind::Virtual => write!(f, "compute_{}{}", self.number(), self.suffix().as_str())?,
        }
        match self.ptx {
            Some(ptx) => f.write_str(&ptx.llvm_feature()),
            None => Ok(()),
        }
    }
}

impl FromStr for NvidiaTarget {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let malformed =
            |reason| TargetError::malformed(format!("'{text}' is not a target: {reason}", text = shown(text)));
        if text.is_empty() {
            return Err(TargetError::malformed(
                "empty target name: write a chip such as sm_90 or gfx942",
            ));
        }
        if text.contains(':') {
            return Err(malformed("only AMD chips take features after a colon"));
        }
        let Some((chip, ptx)) = text.split_once('+') else {
            return Self::parse_chip(text);
        };
        let target = Self::parse_chip(chip)?;
        if !ptx.starts_with("ptx") {
            return Err(malformed("after + comes a PTX ISA version, as in sm_90+ptx83"));
        }
        target.with_ptx(ptx.parse()?)
    }
}

fn dropped_advice(first: CudaRelease, last: CudaRelease, renamed: Option<&str>) -> String {
    let old = format!("use CUDA {first} to {last}, or emit PTX only");
    match renamed {
        Some(name) => format!("it is called {name} now; name that, or {old}"),
        None => old,
    }
}

#[cfg(test)]
#[path = "nvidia_tests.rs"]
mod tests;
