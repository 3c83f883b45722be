//! Which form an image has to have for the clang and the CUDA toolkit that will finish a program, and for the ptxas that
//! there are here.

use std::ops::Range;

use super::{
    layout::{ImageForm, refusal},
    release::{ClangRelease, FinishWith, ReleaseList},
};
use crate::target::{AmdTarget, CodeObjectVersion, CudaRelease, NvidiaTarget, PtxIsa, Suffix, Target, TargetError};

/// How an image is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageRecipe {
    /// `ptxas -c` of a release that is available here.
    RelocatableCubin {
        /// The release.
        ptxas: CudaRelease,
    },
    /// PTX of this ISA or an older one, for the ptxas on the other machine.
    Ptx {
        /// The newest ISA that every ptxas on the other machine reads.
        newest: PtxIsa,
    },
    /// Bitcode that this release and the newer ones of those asked for read.
    Bitcode {
        /// The release.
        oldest: ClangRelease,
    },
    /// A relocatable ELF object of a version of the code object.
    AmdObject {
        /// The version.
        version: CodeObjectVersion,
    },
}

impl ImageRecipe {
    /// What it makes.
    #[must_use]
    pub const fn form(self) -> ImageForm {
        match self {
            Self::RelocatableCubin { .. } => ImageForm::RelocatableCubin,
            Self::Ptx { .. } => ImageForm::Ptx,
            Self::Bitcode { .. } => ImageForm::Bitcode,
            Self::AmdObject { version } => ImageForm::AmdObject(version),
        }
    }
}

fn list(cudas: &[CudaRelease]) -> String {
    let names: Vec<String> = cudas.iter().map(ToString::to_string).collect();
    names.join(", ")
}

const fn or_self() -> &'static str {
    "; --emit self, which needs no clang, carries PTX and linked cubins"
}

fn except(chip: &str) -> &'static str {
    // Clang 15 gives the image to lld without looking at the chip; but its lld takes no generic one, for the version of
    // the code object.
    if chip.ends_with("-generic") {
        ""
    } else {
        " (clang 15 does not ask)"
    }
}

fn version_advice(version: CodeObjectVersion) -> &'static str {
    match version {
        CodeObjectVersion::V5 => "",
        _ => "; version 5 serves clang 15 to 23",
    }
}

/// Whether the nvlink of `linker` takes a relocatable cubin that the ptxas of `maker` has made: it must not be older, and
/// CUDA 11 stands alone. Observed with 11.8, 12.4 and 13.0, each against each.
#[must_use]
pub fn links(maker: CudaRelease, linker: CudaRelease) -> bool {
    maker <= linker && (maker.major > 11 || linker.major == maker.major)
}

/// The form of the image for one NVIDIA chip. `ptxas` are the releases that are available here; `bitcode` says whether IR
/// may cross, as in the form with host IR.
///
/// A relocatable cubin is preferred, of the newest ptxas that every nvlink on the other machine takes; then PTX, then bitcode.
///
/// # Errors
///
/// [`TargetError`], with the reason for each form.
pub fn nvidia(
    finish: &FinishWith,
    target: &NvidiaTarget,
    ptxas: &[CudaRelease],
    bitcode: bool,
) -> Result<ImageRecipe, TargetError> {
    let cudas = finish.cudas();
    let Some(&oldest_cuda) = cudas.first() else {
        return Err(TargetError::unsupported(
            "say which CUDA toolkit is on the machine where the program is finished, such as clang-19,cuda-12.4: its nvlink \
             takes relocatable cubins of some releases only",
        ));
    };
    for cuda in cudas {
        target.check_cuda(*cuda).map_err(|error| {
            TargetError::unsupported(format!(
                "nothing can be made for the CUDA toolkit on the other machine: {error}"
            ))
        })?;
    }

    let links_everywhere = |maker: &CudaRelease| cudas.iter().all(|linker| links(*maker, *linker));
    let maker = ptxas
        .iter()
        .filter(|maker| links_everywhere(maker) && target.supported_by_cuda(**maker))
        .max();
    if let Some(&ptxas) = maker {
        return Ok(ImageRecipe::RelocatableCubin { ptxas });
    }
    let mut reasons = vec![no_cubin(target, cudas, ptxas)];

    let chip = target.chip();
    // Nvlink alone sees a cubin; all else is compiled on the other machine, by a clang that has to know the chip.
    let ignorant = one_of(finish, 15..first_clang_nvidia(target));
    let no_ptx = finish
        .clangs()
        .iter()
        .find_map(|release| Some((*release, refusal(*release, ImageForm::Ptx)?)));
    // CUDA has read more of PTX with every release.
    match (no_ptx, ignorant, oldest_cuda.newest_ptx()) {
        (Some((release, reason)), ..) => reasons.push(format!("PTX: not with {release}, {reason}")),
        (_, Some(release), _) => reasons.push(format!("PTX: {release} does not know {chip}")),
        (None, None, Some(newest)) if newest >= target.min_ptx() => return Ok(ImageRecipe::Ptx { newest }),
        _ => reasons.push(format!(
            "PTX: CUDA {oldest_cuda} does not read PTX {}",
            target.min_ptx()
        )),
    }
    match (finish.clangs().first(), ignorant) {
        (Some(&oldest), None) if bitcode => return Ok(ImageRecipe::Bitcode { oldest }),
        (_, Some(release)) if bitcode => reasons.push(format!("bitcode: {release} cannot compile it for {chip}")),
        _ => reasons.push("bitcode: only with host IR (--emit ll or bc)".to_owned()),
    }
    Err(TargetError::unsupported(format!(
        "no form of image for {chip} serves {} with CUDA {}: {}{}",
        ReleaseList(finish.clangs()),
        list(cudas),
        reasons.join("; "),
        or_self()
    )))
}

fn no_cubin(target: &NvidiaTarget, cudas: &[CudaRelease], ptxas: &[CudaRelease]) -> String {
    let have = match ptxas {
        [] => "there is no ptxas here".to_owned(),
        some => format!("ptxas here is of CUDA {}", list(some)),
    };
    let chip = target.chip();
    match (cudas.first(), cudas.last()) {
        (Some(first), Some(last)) if first.major == 11 && last.major > 11 => {
            format!("relocatable cubin: the nvlink of CUDA {first} and that of CUDA {last} take none in common")
        }
        (Some(first), _) if first.major == 11 => {
            format!("relocatable cubin: {have}, and a ptxas of CUDA 11 up to {first} that knows {chip} would do")
        }
        (Some(first), _) => {
            format!("relocatable cubin: {have}, and a ptxas of CUDA 12.0 up to {first} that knows {chip} would do")
        }
        (None, _) => format!("relocatable cubin: {have}"),
    }
}

/// The form of the image for one AMD chip: a relocatable object of `wanted`, or of version 5, which every release takes.
///
/// # Errors
///
/// A chip that a release does not know, and a version of the code object that it does not take.
pub fn amd(
    finish: &FinishWith,
    target: &AmdTarget,
    wanted: Option<CodeObjectVersion>,
) -> Result<ImageRecipe, TargetError> {
    known_to_clang(finish, target.chip(), first_clang_amd(target.chip()))?;
    // Generic targets are there from version 6 on.
    let version = wanted.unwrap_or(if target.chip().ends_with("-generic") {
        CodeObjectVersion::V6
    } else {
        CodeObjectVersion::V5
    });
    let refused = finish
        .clangs()
        .iter()
        .find_map(|release| Some((*release, refusal(*release, ImageForm::AmdObject(version))?)));
    match refused {
        Some((release, reason)) => Err(TargetError::unsupported(format!(
            "code object version {version} does not serve {release}: {reason}{}",
            version_advice(version)
        ))),
        None => Ok(ImageRecipe::AmdObject { version }),
    }
}

/// Clang from 16 on runs itself for a chip of AMD's, and refuses one that it does not know ("invalid target ID").
fn known_to_clang(finish: &FinishWith, chip: &'static str, first: u8) -> Result<(), TargetError> {
    match one_of(finish, 16..first) {
        Some(release) => Err(TargetError::unsupported(format!(
            "{release} does not know {chip} and refuses its images; finish with clang {first} or newer{}, or ask for --emit \
             self, which needs no clang",
            except(chip)
        ))),
        None => Ok(()),
    }
}

/// The oldest release with a number in the range.
fn one_of(finish: &FinishWith, numbers: Range<u8>) -> Option<ClangRelease> {
    let mut releases = finish.clangs().iter().copied();
    releases.find(|release| numbers.contains(&release.number()))
}

/// The first release that knows a chip, where this one does not and would have to.
pub(super) fn unknown_chip(release: ClangRelease, form: ImageForm, target: &Target) -> Option<u8> {
    let (asks, first) = match (target, form) {
        // Nvlink alone sees a cubin.
        (Target::Nvidia(_), ImageForm::RelocatableCubin | ImageForm::LinkedCubin) => (false, 0),
        (Target::Nvidia(target), _) => (true, first_clang_nvidia(target)),
        (Target::Amd(target), _) => (release.number() >= 16, first_clang_amd(target.chip())),
    };
    (asks && release.number() < first).then_some(first)
}

/// The first release that makes machine code for the chip out of PTX or bitcode, and so do all after it. Every chip was
/// tried with every release, 15 to 23, and ptxas 11.8, 12.4 or 13.0 (sm_101: as far as the call of ptxas).
///
/// Releases before say "is not a recognized processor" or call ptxas for a chip "unknown". Clang 22 knows sm_88 and
/// sm_110, and asks for a PTX ISA that is too old for them, whatever CUDA there is.
fn first_clang_nvidia(target: &NvidiaTarget) -> u8 {
    match (target.number(), target.suffix()) {
        (88 | 110, _) => 23,
        (..=86, _) => 15,
        (87 | 89 | 90, Suffix::Plain) => 16,
        (90, _) => 18,
        (100 | 101 | 120, Suffix::Plain | Suffix::ArchitectureSpecific) => 20,
        (100 | 101 | 103 | 120 | 121, _) => 21,
        _ => 23,
    }
}

/// The first release that takes `-mcpu=` of the chip, and so do all after it. Every chip was tried with every release, 15
/// to 23, by linking a relocatable object of version 5 or 6.
fn first_clang_amd(chip: &str) -> u8 {
    match chip {
        "gfx942" | "gfx1150" | "gfx1151" => 17,
        "gfx1200" | "gfx1201" => 18,
        "gfx1152" | "gfx9-generic" | "gfx10-1-generic" | "gfx10-3-generic" | "gfx11-generic" | "gfx12-generic" => 19,
        "gfx950" | "gfx1153" | "gfx9-4-generic" => 20,
        "gfx1250" => 21,
        "gfx1251" => 22,
        _ => 15,
    }
}

#[cfg(test)]
#[path = "images_tests.rs"]
mod tests;
