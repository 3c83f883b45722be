//! The table of NVIDIA chips.

use super::ptx::{cuda, isa};
use super::{CudaRelease, PtxIsa};

/// What follows a chip's number and decides where its code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Suffix {
    /// None: the instructions that later chips keep.
    Plain,
    /// `a`: everything the chip has; the code runs on that chip alone.
    ArchitectureSpecific,
    /// `f`: what the chip's family shares; the code runs on that chip and later ones of its family.
    FamilySpecific,
}

impl Suffix {
    /// The letter, or nothing.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::ArchitectureSpecific => "a",
            Self::FamilySpecific => "f",
        }
    }
}

/// One row of the table. The order of the fields is the order of chips.
#[derive(Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Chip {
    /// 90 in `sm_90a`.
    pub number: u16,
    pub suffix: Suffix,
    /// LLVM's `-mcpu`, which is ptxas's `-arch` too.
    pub name: &'static str,
    /// First PTX ISA with the chip: what `llc -mcpu` of LLVM 22.1.8 writes unasked, and the
    /// least it accepts.
    pub min_ptx: PtxIsa,
    /// Last CUDA release whose ptxas compiles for the chip, if there is one.
    pub last_cuda: Option<CudaRelease>,
}

const fn chip(
    number: u16,
    suffix: Suffix,
    name: &'static str,
    min_ptx: PtxIsa,
    last_cuda: Option<CudaRelease>,
) -> Chip {
    Chip {
        number,
        suffix,
        name,
        min_ptx,
        last_cuda,
    }
}

use Suffix::{ArchitectureSpecific as A, FamilySpecific as F, Plain as P};

/// Removals: 35 and 37 after 11.8, 50 to 72 and the name 101 after 12.9 observed with the
/// ptxas of 11.8, 12.0, 12.9 and 13.0; those before from NVIDIA's release notes.
const FERMI: Option<CudaRelease> = Some(cuda(8, 0));
const KEPLER: Option<CudaRelease> = Some(cuda(10, 2));
const LATE_KEPLER: Option<CudaRelease> = Some(cuda(11, 8));
const BEFORE_TURING: Option<CudaRelease> = Some(cuda(12, 9));

/// Every chip of LLVM 22.1.8's NVPTX backend (`llc-22 -march=nvptx64 -mcpu=help`), in order.
#[rustfmt::skip]
pub(super) static CHIPS: [Chip; 40] = [
    chip(20, P, "sm_20", isa(3, 2), FERMI),
    chip(21, P, "sm_21", isa(3, 2), FERMI),
    chip(30, P, "sm_30", isa(3, 2), KEPLER),
    chip(32, P, "sm_32", isa(4, 0), KEPLER),
    chip(35, P, "sm_35", isa(3, 2), LATE_KEPLER),
    chip(37, P, "sm_37", isa(4, 1), LATE_KEPLER),
    chip(50, P, "sm_50", isa(4, 0), BEFORE_TURING),
    chip(52, P, "sm_52", isa(4, 1), BEFORE_TURING),
    chip(53, P, "sm_53", isa(4, 2), BEFORE_TURING),
    chip(60, P, "sm_60", isa(5, 0), BEFORE_TURING),
    chip(61, P, "sm_61", isa(5, 0), BEFORE_TURING),
    chip(62, P, "sm_62", isa(5, 0), BEFORE_TURING),
    chip(70, P, "sm_70", isa(6, 0), BEFORE_TURING),
    chip(72, P, "sm_72", isa(6, 1), BEFORE_TURING),
    chip(75, P, "sm_75", isa(6, 3), None),
    chip(80, P, "sm_80", isa(7, 0), None),
    chip(86, P, "sm_86", isa(7, 1), None),
    chip(87, P, "sm_87", isa(7, 4), None),
    chip(88, P, "sm_88", isa(9, 0), None),
    chip(89, P, "sm_89", isa(7, 8), None),
    chip(90, P, "sm_90", isa(7, 8), None),
    chip(90, A, "sm_90a", isa(8, 0), None),
    chip(100, P, "sm_100", isa(8, 6), None),
    chip(100, A, "sm_100a", isa(8, 6), None),
    chip(100, F, "sm_100f", isa(8, 8), None),
    chip(101, P, "sm_101", isa(8, 6), BEFORE_TURING),
    chip(101, A, "sm_101a", isa(8, 6), BEFORE_TURING),
    chip(101, F, "sm_101f", isa(8, 8), BEFORE_TURING),
    chip(103, P, "sm_103", isa(8, 8), None),
    chip(103, A, "sm_103a", isa(8, 8), None),
    chip(103, F, "sm_103f", isa(8, 8), None),
    chip(110, P, "sm_110", isa(9, 0), None),
    chip(110, A, "sm_110a", isa(9, 0), None),
    chip(110, F, "sm_110f", isa(9, 0), None),
    chip(120, P, "sm_120", isa(8, 7), None),
    chip(120, A, "sm_120a", isa(8, 7), None),
    chip(120, F, "sm_120f", isa(8, 8), None),
    chip(121, P, "sm_121", isa(8, 8), None),
    chip(121, A, "sm_121a", isa(8, 8), None),
    chip(121, F, "sm_121f", isa(8, 8), None),
];

impl Chip {
    /// The row of the chip that is called `name`.
    pub fn find(name: &str) -> Option<&'static Chip> {
        CHIPS.iter().find(|chip| chip.name == name)
    }

    /// What the chip is called since CUDA 13.0, if that is something else.
    pub fn renamed(&self) -> Option<&'static Chip> {
        (self.number == 101)
            .then(|| {
                CHIPS
                    .iter()
                    .find(|chip| chip.number == 110 && chip.suffix == self.suffix)
            })
            .flatten()
    }
}

/// Smallest chip number of the family that a chip number belongs to.
///
/// Families as ptxas 13.0.88 has them. 101 is the former number of 110: ptxas compiles
/// `.target sm_101f` for sm_110, sm_110a and sm_110f.
pub(super) const fn family(number: u16) -> u16 {
    match number {
        100 | 103 => 100,
        101 | 110 => 101,
        120 | 121 => 120,
        other => other,
    }
}

/// Whether a number is that of a Tegra or Jetson chip that shares its major number with others. Their cubins and those of the
/// others do not run on each other (CUDA C++ Programming Guide, "Binary Compatibility"), and are not linked: nvlink 13.0.88 for
/// 87 and 88, of which NVIDIA documents no device, nvJitLink 12.9.86 for 101. 110, as 101 is called now, has none beside it.
pub(super) const fn is_tegra(number: u16) -> bool {
    matches!(number, 32 | 53 | 62 | 72 | 87 | 88 | 101)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_spelled_after_their_number() {
        assert!(CHIPS.is_sorted());
        for chip in &CHIPS {
            assert_eq!(chip.name, format!("sm_{}{}", chip.number, chip.suffix.as_str()));
            assert!(chip.min_ptx.is_known_to_llvm(), "{}", chip.name);
            assert_eq!(Chip::find(chip.name), Some(chip));
        }
    }
}
