//! The table of AMD chips.

use super::TargetError;
use super::error::shown;
use crate::nearest;

/// The parts of an AMD instruction set version. gfx90a is 9.0.10: the last character of the
/// name is hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IsaVersion {
    /// Generation: 9, 10, 11, 12.
    pub major: u32,
    /// Branch of the generation.
    pub minor: u32,
    /// Step of the branch.
    pub stepping: u32,
}

/// Which of the target ID features a chip lets the user set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Features {
    None,
    Xnack,
    SrameccXnack,
}

/// One row of the table. The order of the fields is the order of chips.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Chip {
    pub isa: IsaVersion,
    /// LLVM's `-mcpu`.
    pub name: &'static str,
    pub features: Features,
    /// The generic target that contains the chip (the chip itself if it is generic), or nothing.
    pub family: &'static str,
}

const fn chip(
    (major, minor, stepping): (u32, u32, u32),
    name: &'static str,
    features: Features,
    family: &'static str,
) -> Chip {
    Chip {
        isa: IsaVersion { major, minor, stepping },
        name,
        features,
        family,
    }
}

use Features::{None as N, SrameccXnack as SX, Xnack as X};

/// Every chip from gfx900 on of LLVM 22.1.8's AMDGPU backend (`llc-22 -march=amdgcn
/// -mcpu=help`), in order.
///
/// Versions as `llvm-mc` puts them into `.amdgcn.gfx_generation_number`, `_minor` and
/// `_stepping`; features as `clang-22 --target=amdgcn-amd-amdhsa -mcpu=` accepts them;
/// families from "User Guide for AMDGPU Backend", "Generic Processors".
#[rustfmt::skip]
pub(super) static CHIPS: [Chip; 39] = [
    chip((9, 0, 0), "gfx9-generic", X, "gfx9-generic"),
    chip((9, 0, 0), "gfx900", X, "gfx9-generic"),
    chip((9, 0, 2), "gfx902", X, "gfx9-generic"),
    chip((9, 0, 4), "gfx904", X, "gfx9-generic"),
    chip((9, 0, 6), "gfx906", SX, "gfx9-generic"),
    chip((9, 0, 8), "gfx908", SX, ""),
    chip((9, 0, 9), "gfx909", X, "gfx9-generic"),
    chip((9, 0, 10), "gfx90a", SX, ""),
    chip((9, 0, 12), "gfx90c", X, "gfx9-generic"),
    chip((9, 4, 0), "gfx9-4-generic", SX, "gfx9-4-generic"),
    chip((9, 4, 2), "gfx942", SX, "gfx9-4-generic"),
    chip((9, 5, 0), "gfx950", SX, "gfx9-4-generic"),
    chip((10, 1, 0), "gfx10-1-generic", X, "gfx10-1-generic"),
    chip((10, 1, 0), "gfx1010", X, "gfx10-1-generic"),
    chip((10, 1, 1), "gfx1011", X, "gfx10-1-generic"),
    chip((10, 1, 2), "gfx1012", X, "gfx10-1-generic"),
    chip((10, 1, 3), "gfx1013", X, "gfx10-1-generic"),
    chip((10, 3, 0), "gfx10-3-generic", N, "gfx10-3-generic"),
    chip((10, 3, 0), "gfx1030", N, "gfx10-3-generic"),
    chip((10, 3, 1), "gfx1031", N, "gfx10-3-generic"),
    chip((10, 3, 2), "gfx1032", N, "gfx10-3-generic"),
    chip((10, 3, 3), "gfx1033", N, "gfx10-3-generic"),
    chip((10, 3, 4), "gfx1034", N, "gfx10-3-generic"),
    chip((10, 3, 5), "gfx1035", N, "gfx10-3-generic"),
    chip((10, 3, 6), "gfx1036", N, "gfx10-3-generic"),
    chip((11, 0, 0), "gfx1100", N, "gfx11-generic"),
    chip((11, 0, 1), "gfx1101", N, "gfx11-generic"),
    chip((11, 0, 2), "gfx1102", N, "gfx11-generic"),
    chip((11, 0, 3), "gfx11-generic", N, "gfx11-generic"),
    chip((11, 0, 3), "gfx1103", N, "gfx11-generic"),
    chip((11, 5, 0), "gfx1150", N, "gfx11-generic"),
    chip((11, 5, 1), "gfx1151", N, "gfx11-generic"),
    chip((11, 5, 2), "gfx1152", N, "gfx11-generic"),
    chip((11, 5, 3), "gfx1153", N, "gfx11-generic"),
    chip((12, 0, 0), "gfx12-generic", N, "gfx12-generic"),
    chip((12, 0, 0), "gfx1200", N, "gfx12-generic"),
    chip((12, 0, 1), "gfx1201", N, "gfx12-generic"),
    chip((12, 5, 0), "gfx1250", N, ""),
    chip((12, 5, 1), "gfx1251", N, ""),
];

/// Names of LLVM 22 before gfx900, with the code names that are their aliases.
#[rustfmt::skip]
pub(super) const OLD_CHIPS: [&str; 32] = [
    "gfx600", "gfx601", "gfx602",
    "gfx700", "gfx701", "gfx702", "gfx703", "gfx704", "gfx705",
    "gfx801", "gfx802", "gfx803", "gfx805", "gfx810",
    "bonaire", "carrizo", "fiji", "hainan", "hawaii", "iceland", "kabini", "kaveri", "mullins",
    "oland", "pitcairn", "polaris10", "polaris11", "stoney", "tahiti", "tonga", "tongapro", "verde",
];

/// LLVM's names that stand for no chip.
pub(super) const NO_CHIPS: [&str; 2] = ["generic", "generic-hsa"];

impl Chip {
    /// The row of the chip that is called `name`, or why there is none.
    pub fn find(name: &str) -> Result<&'static Chip, TargetError> {
        if let Some(chip) = CHIPS.iter().find(|chip| chip.name == name) {
            return Ok(chip);
        }
        match excluded(name) {
            Some(reason) => Err(TargetError::unsupported(format!(
                "chip '{name}' is not supported: {reason}",
                name = shown(name)
            ))),
            None => {
                let nearest = nearest(name, CHIPS.iter().map(|chip| chip.name));
                Err(TargetError::unknown_chip(name, nearest))
            }
        }
    }

    /// Whether the row stands for several chips.
    pub fn is_generic(&self) -> bool {
        self.family == self.name
    }

    /// The target ID features that the user may set, in the order in which they are written.
    pub const fn feature_names(&self) -> &'static [&'static str] {
        match self.features {
            Features::None => &[],
            Features::Xnack => &["xnack"],
            Features::SrameccXnack => &["sramecc", "xnack"],
        }
    }

    /// Lanes of a wave that the chip runs, its default first. Observed with llc 22.1.8: it
    /// refuses kernels with the other size.
    pub const fn wave_sizes(&self) -> &'static [u32] {
        match (self.isa.major, self.isa.minor) {
            (..=9, _) => &[64],
            (12, 5..) => &[32],
            _ => &[32, 64],
        }
    }
}

/// Why a name that LLVM knows, or knew, is not in the table.
pub(super) fn excluded(name: &str) -> Option<&'static str> {
    if OLD_CHIPS.contains(&name) {
        Some("ROCm no longer supports chips before gfx900, and neither do we; name gfx900 or a newer chip")
    } else if NO_CHIPS.contains(&name) {
        Some("it stands for no chip; name one, or a family such as gfx9-4-generic or gfx11-generic")
    } else if matches!(name, "gfx940" | "gfx941") {
        Some("LLVM 22 no longer has it; name gfx942")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_spelled_after_their_version() {
        assert!(CHIPS.is_sorted());
        for chip in CHIPS.iter().filter(|chip| !chip.is_generic()) {
            let IsaVersion { major, minor, stepping } = chip.isa;
            assert_eq!(chip.name, format!("gfx{major}{minor}{stepping:x}"));
        }
    }

    #[test]
    fn families_are_generic_chips() {
        for chip in CHIPS.iter().filter(|chip| !chip.family.is_empty()) {
            assert!(Chip::find(chip.family).is_ok_and(Chip::is_generic), "{}", chip.name);
        }
    }
}
