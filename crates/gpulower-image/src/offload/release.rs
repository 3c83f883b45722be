//! What will finish an exported program on another machine: releases of clang, and the CUDA toolkits or the ROCm there.

use std::{fmt, str::FromStr};

use crate::target::{CudaRelease, TargetError, TargetProblem};

/// A major release of clang that exported programs are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct ClangRelease(u8);

impl ClangRelease {
    /// The oldest release: the first with a linker wrapper that reads offload binaries.
    pub const OLDEST: Self = Self(15);
    /// The newest release whose layouts are known.
    pub const NEWEST: Self = Self(23);

    /// The release with this major version.
    ///
    /// # Errors
    ///
    /// [`TargetError`] for one before 15 or after 23.
    pub fn new(number: u32) -> Result<Self, TargetError> {
        match u8::try_from(number) {
            Ok(known @ 15..=23) => Ok(Self(known)),
            Ok(0..15) => Err(TargetError::unsupported(format!(
                "clang {number} cannot finish the program: its linker reads no offload binaries and rejects --offload-link for \
                 CUDA and HIP; the oldest that can is clang 15 (or ask for --emit self, which needs no clang)"
            ))),
            _ => Err(TargetError::unsupported(format!(
                "clang {number} is not known: the layout of offload entries has changed with clang 18, 20 and 21, and a wrong one \
         registers no kernel without a word; known are clang 15 to 23 (or ask for --emit self, which needs no clang)"
            ))),
        }
    }

    /// The major version.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Whether it needs [`FATBINARY_SCRIPT`] with a CUDA toolkit: up to 21 it calls `fatbinary --image=`, which CUDA 12.9 and
    /// newer no longer have (llvm/llvm-project#151760).
    #[must_use]
    pub fn needs_fatbinary_script(self, cuda: CudaRelease) -> bool {
        self.0 <= 21 && cuda >= CudaRelease::new(12, 9)
    }

    /// The releases of a list such as `clang-19`, `15..19,22`: each part as in [`FinishWith`], oldest first.
    ///
    /// # Errors
    ///
    /// [`TargetError`]; [`TargetProblem::Malformed`] where a part names no release of clang at all.
    pub fn parse_list(list: &str) -> Result<Vec<Self>, TargetError> {
        let mut releases = Vec::new();
        for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            releases.extend(clang_range(part).map_err(|error| match error.problem {
                TargetProblem::Malformed => {
                    TargetError::malformed(format!("{part:?} is no clang: write clang-19, 19, or clang-15..19"))
                }
                _ => error,
            })?);
        }
        if releases.is_empty() {
            return Err(names_no_clang(list));
        }
        releases.sort_unstable();
        releases.dedup();
        Ok(releases)
    }

    /// Every known release, oldest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (Self::OLDEST.0..=Self::NEWEST.0).map(Self)
    }
}

impl fmt::Display for ClangRelease {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "clang {}", self.0)
    }
}

/// Prints releases as people write them: `clang 15 to 19, 21 and 23`.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseList<'a>(pub &'a [ClangRelease]);

impl fmt::Display for ReleaseList<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(u8, u8)> = Vec::new();
        for release in self.0 {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == release.0 => *last = release.0,
                _ => runs.push((release.0, release.0)),
            }
        }
        formatter.write_str("clang ")?;
        let count = runs.len();
        for (index, (first, last)) in runs.into_iter().enumerate() {
            formatter.write_str(match index {
                0 => "",
                _ if index + 1 == count => " and ",
                _ => ", ",
            })?;
            match last - first {
                0 => write!(formatter, "{first}")?,
                1 => write!(formatter, "{first}, {last}")?,
                _ => write!(formatter, "{first} to {last}")?,
            }
        }
        Ok(())
    }
}

/// What finishes an exported program.
///
/// Reads a list such as `clang-19,cuda-12.4`, in which each part is a release of clang (`clang-19`, `19`, `19.1.7`), a
/// range of them (`clang-15..19`, both ends included), a CUDA toolkit (`cuda-12.4`), or `rocm`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishWith {
    clangs: Vec<ClangRelease>,
    cudas: Vec<CudaRelease>,
    rocm: bool,
}

impl FinishWith {
    /// The oldest release of clang.
    #[must_use]
    pub fn oldest(&self) -> ClangRelease {
        self.clangs.first().copied().unwrap_or(ClangRelease::OLDEST)
    }

    /// The releases of clang, oldest first; at least one.
    #[must_use]
    pub fn clangs(&self) -> &[ClangRelease] {
        &self.clangs
    }

    /// The CUDA toolkits on the other machine, oldest first; none if nothing was said of them.
    #[must_use]
    pub fn cudas(&self) -> &[CudaRelease] {
        &self.cudas
    }

    /// The same with a CUDA toolkit more.
    #[must_use]
    pub fn with_cuda(mut self, release: CudaRelease) -> Self {
        self.cudas.push(release);
        self.cudas.sort_unstable();
        self.cudas.dedup();
        self
    }

    /// Whether ROCm was named.
    #[must_use]
    pub const fn rocm(&self) -> bool {
        self.rocm
    }

    /// Whether some clang of these needs [`FATBINARY_SCRIPT`] with some CUDA of these.
    #[must_use]
    pub fn needs_fatbinary_script(&self) -> bool {
        let needs = |clang: &ClangRelease| self.cudas.iter().any(|cuda| clang.needs_fatbinary_script(*cuda));
        self.clangs.iter().any(needs)
    }
}

/// A script to be called `fatbinary` and to stand first in `PATH`, with which clang 15 to 21 work with CUDA 12.9 and newer;
/// `CUDA_ROOT` has to be set. Tried with clang 15 to 21 and CUDA 13.0.
pub const FATBINARY_SCRIPT: &str = r#"#!/bin/sh
# Translates --image=profile=sm_90,file=F, which CUDA 12.9 dropped, to --image3=kind=elf,sm=90,file=F.
for argument; do
  shift
  case $argument in
    --image=profile=sm_*) argument="--image3=kind=elf,sm=${argument#--image=profile=sm_}" ;;
  esac
  set -- "$@" "$argument"
done
exec "${CUDA_ROOT:?set CUDA_ROOT to the CUDA toolkit}/bin/fatbinary" "$@"
"#;

impl FromStr for FinishWith {
    type Err = TargetError;

    fn from_str(list: &str) -> Result<Self, TargetError> {
        let (mut clangs, mut cudas, mut rocm) = (Vec::new(), Vec::new(), false);
        for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if part == "rocm" {
                rocm = true;
            } else if let Some(release) = part.strip_prefix("cuda-") {
                let release = release.parse().map_err(|_| unknown(part))?;
                if !(CudaRelease::new(11, 0)..CudaRelease::new(14, 0)).contains(&release) {
                    return Err(TargetError::unsupported(format!(
                        "CUDA {release} is not known: the rules by which nvlink takes relocatable code are known for CUDA 11 to 13"
                    )));
                }
                cudas.push(release);
            } else {
                clangs.extend(clang_range(part)?);
            }
        }
        if rocm && !cudas.is_empty() {
            return Err(TargetError::conflict(format!(
                "{list:?} names both CUDA and ROCm: one program is for one of them; export it twice"
            )));
        }
        if clangs.is_empty() {
            return Err(names_no_clang(list));
        }
        clangs.sort_unstable();
        clangs.dedup();
        cudas.sort_unstable();
        cudas.dedup();
        Ok(Self { clangs, cudas, rocm })
    }
}

fn names_no_clang(list: &str) -> TargetError {
    TargetError::malformed(format!(
        "{list:?} names no clang: say which one finishes the program, such as clang-19,cuda-12.4 or clang-15..19 (clang 15 \
         to 23 are known)"
    ))
}

fn unknown(part: &str) -> TargetError {
    TargetError::malformed(format!(
        "{part:?} is neither a clang (clang-19, clang-15..19), nor a CUDA toolkit with its minor version (cuda-12.4), nor \
         rocm"
    ))
}

fn clang_range(part: &str) -> Result<Vec<ClangRelease>, TargetError> {
    let body = part.strip_prefix("clang-").unwrap_or(part);
    let (first, last) = match body.split_once("..") {
        Some((first, last)) => (first, last.strip_prefix('=').unwrap_or(last)),
        None => (body, body),
    };
    let first = major_version(first).ok_or_else(|| unknown(part))?;
    let last = major_version(last.strip_prefix("clang-").unwrap_or(last)).ok_or_else(|| unknown(part))?;
    if last < first {
        return Err(TargetError::conflict(format!(
            "the range {part:?} ends before it starts: write clang-15..19"
        )));
    }
    let (first, last) = (ClangRelease::new(first)?, ClangRelease::new(last)?);
    Ok(ClangRelease::all()
        .filter(|release| (first..=last).contains(release))
        .collect())
}

/// The 19 of `19` and of `19.1.7`.
fn major_version(text: &str) -> Option<u32> {
    let mut parts = text.split('.');
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let major = parts.next().filter(|part| digits(part))?;
    parts.all(digits).then(|| major.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<u8>, Vec<String>, bool) {
        let finish: FinishWith = text.parse().expect(text);
        (
            finish.clangs().iter().map(|clang| clang.number()).collect(),
            finish.cudas().iter().map(ToString::to_string).collect(),
            finish.rocm(),
        )
    }

    #[test]
    fn reads_every_spelling() {
        assert_eq!(read("clang-19,cuda-12.4"), (vec![19], vec!["12.4".to_owned()], false));
        assert_eq!(read("19"), (vec![19], vec![], false));
        assert_eq!(read("19.1.7, rocm"), (vec![19], vec![], true));
        assert_eq!(read("clang-15..19").0, [15, 16, 17, 18, 19]);
        assert_eq!(read("clang-21..clang-23,16,clang-16..=17").0, [16, 17, 21, 22, 23]);
        assert_eq!(read("22,cuda-13.0,cuda-12.4").1, ["12.4", "13.0"]);
    }

    #[test]
    fn refuses_with_reasons() {
        for (text, message) in [
            (
                "clang-14",
                "clang 14 cannot finish the program: its linker reads no offload binaries",
            ),
            ("clang-14..19", "clang 14 cannot finish the program"),
            (
                "clang-24",
                "clang 24 is not known: the layout of offload entries has changed with clang 18, 20 and 21",
            ),
            ("15..4000000000", "clang 4000000000 is not known"),
            ("", "\"\" names no clang"),
            ("cuda-12.4", "\"cuda-12.4\" names no clang: say which one"),
            ("clang-19..15", "the range \"clang-19..15\" ends before it starts"),
            ("19,cuda-10.2", "CUDA 10.2 is not known: the rules by which nvlink"),
            ("19,cuda-14.0", "CUDA 14.0 is not known"),
            ("19,cuda-12", "\"cuda-12\" is neither a clang"),
            ("19,cuda-12.4,rocm", "\"19,cuda-12.4,rocm\" names both CUDA and ROCm"),
            (
                "gcc-12",
                "\"gcc-12\" is neither a clang (clang-19, clang-15..19), nor a CUDA toolkit",
            ),
            ("rocm-6.2,19", "\"rocm-6.2\" is neither"),
            ("clang-", "\"clang-\" is neither"),
            ("-19", "\"-19\" is neither"),
            ("19..", "\"19..\" is neither"),
        ] {
            let error = text.parse::<FinishWith>().expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn clangs_alone_are_read_and_refused() {
        let read = |text: &str| -> Vec<u8> {
            let releases = ClangRelease::parse_list(text).expect(text);
            releases.into_iter().map(ClangRelease::number).collect()
        };
        assert_eq!(read("22, clang-15..17,clang-22"), [15, 16, 17, 22]);
        for (text, message) in [
            (
                "19,cuda-12.4",
                "\"cuda-12.4\" is no clang: write clang-19, 19, or clang-15..19",
            ),
            ("gcc-12", "\"gcc-12\" is no clang"),
            (",", "\",\" names no clang"),
            ("24", "clang 24 is not known"),
        ] {
            let error = ClangRelease::parse_list(text).expect_err(text).to_string();
            assert!(error.starts_with(message), "{text}: {error}");
        }
    }

    #[test]
    fn lists_read_well() {
        let list = |text: &str| ReleaseList(text.parse::<FinishWith>().expect(text).clangs()).to_string();
        assert_eq!(list("19"), "clang 19");
        assert_eq!(list("15..19,21,23"), "clang 15 to 19, 21 and 23");
        assert_eq!(list("15,16,22"), "clang 15, 16 and 22");
    }

    /// The page for the person on the other machine has the script, too.
    #[test]
    fn the_documentation_has_this_script() {
        let page = include_str!("../../../../docs/finishing.md");
        let lines = FATBINARY_SCRIPT.lines().filter(|line| !line.starts_with("# "));
        let script: String = lines.fold(String::new(), |text, line| text + line + "\n");
        assert!(page.contains(&format!("<<'END'\n{script}END\n")), "{script}");
    }

    #[test]
    fn the_fatbinary_script_is_for_old_clang_with_new_cuda() {
        let needed = |text: &str| text.parse::<FinishWith>().expect(text).needs_fatbinary_script();
        assert!(needed("21,cuda-13.0"));
        assert!(needed("15..22,cuda-12.9"));
        assert!(!needed("22,cuda-13.0"));
        assert!(!needed("19,cuda-12.8"));
        assert!(!needed("19"));
    }
}
