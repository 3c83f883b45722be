//! PTX ISA versions and the CUDA releases that read them.

use super::TargetError;
use super::error::{either, shown};
use std::fmt;
use std::str::FromStr;

/// A version of the PTX instruction set, such as 8.3.
///
/// Reads `8.3`, `83`, `ptx83` and `+ptx83`, prints `8.3`. The minor number has one digit, as
/// in LLVM's feature names. A value need not be known to LLVM: a tool may read a newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub struct PtxIsa {
    /// The number before the dot.
    pub major: u8,
    /// The number after the dot, 0 to 9.
    pub minor: u8,
}

/// What LLVM 22's NVPTX backend writes: `llc-22 -march=nvptx64 -mattr=help`, 22.1.8.
#[rustfmt::skip]
const LLVM_PTX: [PtxIsa; 31] = [
    isa(3, 2),
    isa(4, 0), isa(4, 1), isa(4, 2), isa(4, 3),
    isa(5, 0),
    isa(6, 0), isa(6, 1), isa(6, 2), isa(6, 3), isa(6, 4), isa(6, 5),
    isa(7, 0), isa(7, 1), isa(7, 2), isa(7, 3), isa(7, 4), isa(7, 5), isa(7, 6), isa(7, 7), isa(7, 8),
    isa(8, 0), isa(8, 1), isa(8, 2), isa(8, 3), isa(8, 4), isa(8, 5), isa(8, 6), isa(8, 7), isa(8, 8),
    isa(9, 0),
];

/// Newest PTX ISA of each CUDA release since the first that reads what LLVM writes.
///
/// 11.8, 12.0, 12.4, 12.6, 12.8, 12.9 and 13.0 observed with each release's ptxas; the others
/// from the release notes in NVIDIA's "Parallel Thread Execution ISA". CUDA 12.7 (PTX 8.6)
/// was never shipped as a toolkit.
#[rustfmt::skip]
const CUDA_PTX: [(CudaRelease, PtxIsa); 32] = [
    (cuda(5, 5), isa(3, 2)),
    (cuda(6, 0), isa(4, 0)), (cuda(6, 5), isa(4, 1)),
    (cuda(7, 0), isa(4, 2)), (cuda(7, 5), isa(4, 3)),
    (cuda(8, 0), isa(5, 0)),
    (cuda(9, 0), isa(6, 0)), (cuda(9, 1), isa(6, 1)), (cuda(9, 2), isa(6, 2)),
    (cuda(10, 0), isa(6, 3)), (cuda(10, 1), isa(6, 4)), (cuda(10, 2), isa(6, 5)),
    (cuda(11, 0), isa(7, 0)), (cuda(11, 1), isa(7, 1)), (cuda(11, 2), isa(7, 2)),
    (cuda(11, 3), isa(7, 3)), (cuda(11, 4), isa(7, 4)), (cuda(11, 5), isa(7, 5)),
    (cuda(11, 6), isa(7, 6)), (cuda(11, 7), isa(7, 7)), (cuda(11, 8), isa(7, 8)),
    (cuda(12, 0), isa(8, 0)), (cuda(12, 1), isa(8, 1)), (cuda(12, 2), isa(8, 2)),
    (cuda(12, 3), isa(8, 3)), (cuda(12, 4), isa(8, 4)), (cuda(12, 5), isa(8, 5)),
    (cuda(12, 6), isa(8, 5)), (cuda(12, 8), isa(8, 7)), (cuda(12, 9), isa(8, 8)),
    (cuda(13, 0), isa(9, 0)), (cuda(13, 1), isa(9, 1)),
];

pub(super) const fn isa(major: u8, minor: u8) -> PtxIsa {
    PtxIsa { major, minor }
}

pub(super) const fn cuda(major: u16, minor: u16) -> CudaRelease {
    CudaRelease { major, minor }
}

impl PtxIsa {
    /// `major.minor`; a minor number above 9 does not exist and is refused.
    pub fn new(major: u8, minor: u8) -> Result<Self, TargetError> {
        if minor > 9 || major > 25 {
            return Err(TargetError::malformed(format!(
                "'{major}.{minor}' is not a PTX ISA version: write it as 8.3, 83 or ptx83"
            )));
        }
        Ok(isa(major, minor))
    }

    /// Every version LLVM 22 writes, oldest first.
    pub fn all_of_llvm() -> &'static [PtxIsa] {
        &LLVM_PTX
    }

    /// The newest version LLVM 22 writes: 9.0.
    pub const fn newest_llvm() -> PtxIsa {
        isa(9, 0)
    }

    /// Whether LLVM 22 writes this version.
    pub fn is_known_to_llvm(self) -> bool {
        LLVM_PTX.contains(&self)
    }

    /// The version in one number, major times ten plus minor: 83 for 8.3.
    pub const fn number(self) -> u32 {
        self.major as u32 * 10 + self.minor as u32
    }

    /// LLVM's subtarget feature for the version: `+ptx83`.
    pub fn llvm_feature(self) -> String {
        format!("+ptx{}", self.number())
    }

    /// Refuses what LLVM 22 does not write, with the nearest versions that it does.
    pub fn check_llvm(self) -> Result<Self, TargetError> {
        if self.is_known_to_llvm() {
            return Ok(self);
        }
        let newest = Self::newest_llvm();
        if self > newest {
            return Err(TargetError::unsupported(format!(
                "LLVM 22 does not know PTX {asked}: the newest it writes is {newest}; ask for {newest} or older",
                asked = self
            )));
        }
        let before = LLVM_PTX.iter().rev().find(|known| **known < self);
        let after = LLVM_PTX.iter().find(|known| **known > self);
        let nearest: Vec<Self> = before.into_iter().chain(after).copied().collect();
        Err(TargetError::unsupported(format!(
            "LLVM 22 does not know PTX {asked}: the nearest versions it writes are {}",
            either(&nearest),
            asked = self
        )))
    }
}

impl fmt::Display for PtxIsa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for PtxIsa {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let malformed = || {
            TargetError::malformed(format!(
                "'{text}' is not a PTX ISA version: write it as 8.3, 83 or ptx83",
                text = shown(text)
            ))
        };
        let body = text.strip_prefix('+').unwrap_or(text);
        let (body, named) = match body.strip_prefix("ptx") {
            Some(rest) => (rest, true),
            None if body.len() == text.len() => (body, false),
            None => return Err(malformed()),
        };
        let (major, minor) = match body.split_once('.') {
            Some(parts) if !named => parts,
            Some(_) => return Err(malformed()),
            // The last digit is the minor number. `get` because the text may not be ASCII.
            None => {
                let cut = body.len().checked_sub(1).ok_or_else(malformed)?;
                (
                    body.get(..cut).ok_or_else(malformed)?,
                    body.get(cut..).ok_or_else(malformed)?,
                )
            }
        };
        let major = decimal(major).ok_or_else(malformed)?;
        let minor = decimal(minor).ok_or_else(malformed)?;
        Self::new(major, minor).map_err(|_| malformed())
    }
}

/// A release of the CUDA toolkit, such as 12.9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CudaRelease {
    /// The number before the dot.
    pub major: u16,
    /// The number after the dot.
    pub minor: u16,
}

impl CudaRelease {
    /// `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        cuda(major, minor)
    }

    /// The newest PTX ISA that the release's ptxas reads; `None` before CUDA 5.5.
    ///
    /// For a release that is not in the table the newest earlier one answers: a later release
    /// reads at least as much.
    pub fn newest_ptx(self) -> Option<PtxIsa> {
        CUDA_PTX
            .iter()
            .rev()
            .find(|(release, _)| *release <= self)
            .map(|(_, ptx)| *ptx)
    }

    /// The first release whose ptxas reads `ptx`; `None` if the table has none.
    pub fn first_with(ptx: PtxIsa) -> Option<Self> {
        CUDA_PTX
            .iter()
            .find(|(_, newest)| *newest >= ptx)
            .map(|(release, _)| *release)
    }
}

impl fmt::Display for CudaRelease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl FromStr for CudaRelease {
    type Err = TargetError;

    /// Reads `12.9`, and `12.9.86` with the patch number ignored.
    fn from_str(text: &str) -> Result<Self, TargetError> {
        let malformed = || {
            TargetError::malformed(format!(
                "'{text}' is not a CUDA release: write it as 12.9",
                text = shown(text)
            ))
        };
        let mut parts = text.split('.');
        let mut number = || parts.next().and_then(decimal::<u16>);
        let (major, minor) = (number(), number());
        let patch = parts.all(|part| decimal::<u32>(part).is_some());
        match (major, minor, patch) {
            (Some(major), Some(minor), true) => Ok(cuda(major, minor)),
            _ => Err(malformed()),
        }
    }
}

/// Digits only: `parse` alone would take a sign.
pub(super) fn decimal<T: FromStr>(text: &str) -> Option<T> {
    text.bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_spelling() {
        for text in ["8.3", "83", "ptx83", "+ptx83"] {
            assert_eq!(text.parse(), Ok(isa(8, 3)), "{text}");
        }
        assert_eq!("10.0".parse(), Ok(isa(10, 0)));
        assert_eq!("100".parse(), Ok(isa(10, 0)));
        assert_eq!(isa(8, 3).to_string(), "8.3");
        assert_eq!(isa(8, 3).number(), 83);
        assert_eq!(isa(8, 3).llvm_feature(), "+ptx83");
    }

    #[test]
    fn refuses_what_is_no_version() {
        for text in [
            "", "+", "8", "ptx", "ptx8", "+83", "8.", ".3", "8.3.1", "8.12", "ptx8.3", "+ptx+83", "-8.3", "8.-3", "8é",
            "é", "999999", "٨٣", " 8.3",
        ] {
            let error = text.parse::<PtxIsa>().expect_err(text);
            assert_eq!(
                error.to_string(),
                format!("'{text}' is not a PTX ISA version: write it as 8.3, 83 or ptx83")
            );
        }
    }

    #[test]
    fn tables_are_in_order() {
        assert!(LLVM_PTX.is_sorted());
        assert_eq!(LLVM_PTX.last(), Some(&PtxIsa::newest_llvm()));
        assert!(CUDA_PTX.is_sorted());
        assert!(CUDA_PTX.iter().map(|(_, ptx)| ptx).is_sorted());
    }

    #[test]
    fn unknown_versions_name_their_neighbours() {
        assert_eq!(
            isa(7, 9).check_llvm().unwrap_err().to_string(),
            "LLVM 22 does not know PTX 7.9: the nearest versions it writes are 7.8 or 8.0"
        );
        assert_eq!(
            isa(2, 0).check_llvm().unwrap_err().to_string(),
            "LLVM 22 does not know PTX 2.0: the nearest versions it writes are 3.2"
        );
        assert_eq!(
            isa(9, 1).check_llvm().unwrap_err().to_string(),
            "LLVM 22 does not know PTX 9.1: the newest it writes is 9.0; ask for 9.0 or older"
        );
    }

    #[test]
    fn cuda_releases_and_their_ptx() {
        for (release, ptx) in [
            ("11.8", isa(7, 8)),
            ("12.0", isa(8, 0)),
            ("12.4", isa(8, 4)),
            ("12.6", isa(8, 5)),
            ("12.8", isa(8, 7)),
            ("12.9", isa(8, 8)),
            ("13.0", isa(9, 0)),
            ("13.0.88", isa(9, 0)),
            // Not in the table: what an earlier release reads.
            ("12.7", isa(8, 5)),
            ("99.0", isa(9, 1)),
        ] {
            assert_eq!(
                release.parse::<CudaRelease>().unwrap().newest_ptx(),
                Some(ptx),
                "{release}"
            );
        }
        assert_eq!(cuda(5, 0).newest_ptx(), None);
        assert_eq!(CudaRelease::first_with(isa(8, 6)), Some(cuda(12, 8)));
        assert_eq!(CudaRelease::first_with(isa(9, 9)), None);
    }

    #[test]
    fn malformed_releases_are_refused() {
        for text in ["", "12", "12.", ".9", "12.x", "v12.9", "12.9.x", "99999999.0", "+1.2"] {
            let error = text.parse::<CudaRelease>().expect_err(text);
            assert_eq!(
                error.to_string(),
                format!("'{text}' is not a CUDA release: write it as 12.9")
            );
        }
    }
}
