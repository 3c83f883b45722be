//! Which form an image has to have for the clang and the CUDA toolkit that will finish a program, and for the ptxas that
//! there are here.

use super::{
    layout::{ImageForm, refusal},
    release::{ClangRelease, FinishWith, ReleaseList},
};
use crate::target::{AmdTarget, CodeObjectVersion, CudaRelease, NvidiaTarget, PtxIsa, Suffix, TargetError};

/// How an image is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImageRecipe {
    /// `ptxas -c` of a release that is available here.
    RelocatableCubin {
        /// The release.
        ptxas: CudaRelease,
    },
    /// PTX of this ISA or an older one, for the ptxas over there.
    Ptx {
        /// The newest ISA that every ptxas over there reads.
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

/// Why no form of image serves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// No CUDA release was named.
    #[error(
        "say which CUDA toolkit is on the machine where the program is finished, such as clang-19,cuda-12.4: its nvlink \
         takes relocatable cubins of some releases only"
    )]
    NoCuda,
    /// A toolkit over there knows nothing of the chip.
    #[error("nothing can be made for the CUDA toolkit over there: {0}")]
    Chip(#[source] TargetError),
    /// Clang over there refuses the chip.
    #[error(
        "{release} does not know {chip} and refuses its images; finish with clang {first} or newer{}, or ask for --emit \
         self, which needs no clang", except(*.first)
    )]
    ChipUnknownToClang {
        /// The release.
        release: ClangRelease,
        /// The chip.
        chip: &'static str,
        /// The first release that knows it.
        first: u8,
    },
    /// Every form was refused.
    #[error(
        "no form of image for {chip} serves {} with CUDA {}: {}{}",
        ReleaseList(.clangs), list(.cudas), .reasons.join("; "), or_self()
    )]
    None {
        /// The chip.
        chip: &'static str,
        /// The releases of clang.
        clangs: Vec<ClangRelease>,
        /// The toolkits over there.
        cudas: Vec<CudaRelease>,
        /// Why not, for each form.
        reasons: Vec<String>,
    },
    /// A version of the code object that some release does not take.
    #[error("code object version {version} does not serve {release}: {reason}{}", version_advice(*.version))]
    CodeObject {
        /// The version.
        version: CodeObjectVersion,
        /// The release.
        release: ClangRelease,
        /// What the release does with it.
        reason: &'static str,
    },
}

fn list(cudas: &[CudaRelease]) -> String {
    let names: Vec<String> = cudas.iter().map(ToString::to_string).collect();
    names.join(", ")
}

const fn or_self() -> &'static str {
    "; --emit self, which needs no clang, carries PTX and linked cubins"
}

fn except(first: u8) -> &'static str {
    // Clang 15 gives the image to lld or nvlink without looking at the chip.
    if first <= 17 { " (clang 15 does not ask)" } else { "" }
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
/// A relocatable cubin is preferred, of the newest ptxas that every nvlink over there takes; then PTX, then bitcode.
///
/// # Errors
///
/// [`ImageError`], with the reason for each form.
pub fn nvidia(
    finish: &FinishWith,
    target: &NvidiaTarget,
    ptxas: &[CudaRelease],
    bitcode: bool,
) -> Result<ImageRecipe, ImageError> {
    let cudas = finish.cudas();
    let Some(&oldest_cuda) = cudas.first() else {
        return Err(ImageError::NoCuda);
    };
    for cuda in cudas {
        target.check_cuda(*cuda).map_err(ImageError::Chip)?;
    }
    known_to_clang(finish, target.chip(), first_clang_nvidia(target))?;

    let links_everywhere = |maker: &CudaRelease| cudas.iter().all(|linker| links(*maker, *linker));
    let maker = ptxas
        .iter()
        .filter(|maker| links_everywhere(maker) && target.supported_by_cuda(**maker))
        .max();
    if let Some(&ptxas) = maker {
        return Ok(ImageRecipe::RelocatableCubin { ptxas });
    }
    let mut reasons = vec![no_cubin(target, cudas, ptxas)];

    let no_ptx = finish
        .clangs()
        .iter()
        .find_map(|release| Some((*release, refusal(*release, ImageForm::Ptx)?)));
    // CUDA has read more of PTX with every release.
    match (no_ptx, oldest_cuda.newest_ptx()) {
        (None, Some(newest)) if newest >= target.min_ptx() => return Ok(ImageRecipe::Ptx { newest }),
        (Some((release, reason)), _) => reasons.push(format!("PTX: not with {release}, {reason}")),
        _ => reasons.push(format!(
            "PTX: CUDA {oldest_cuda} does not read PTX {}",
            target.min_ptx()
        )),
    }
    match finish.clangs().first() {
        // Bitcode is compiled for the chip over there, and the LLVM of clang 15 has chips up to sm_86.
        Some(&oldest) if bitcode && (oldest.number() > 15 || target.number() <= 86) => {
            Ok(ImageRecipe::Bitcode { oldest })
        }
        _ => {
            reasons.push(match bitcode {
                true => format!("bitcode: clang 15 cannot compile it for {}", target.chip()),
                false => "bitcode: only with host IR (--emit ll or bc)".to_owned(),
            });
            Err(ImageError::None {
                chip: target.chip(),
                clangs: finish.clangs().to_vec(),
                cudas: cudas.to_vec(),
                reasons,
            })
        }
    }
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
/// [`ImageError::ChipUnknownToClang`] and [`ImageError::CodeObject`].
pub fn amd(
    finish: &FinishWith,
    target: &AmdTarget,
    wanted: Option<CodeObjectVersion>,
) -> Result<ImageRecipe, ImageError> {
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
        Some((release, reason)) => Err(ImageError::CodeObject {
            version,
            release,
            reason,
        }),
        None => Ok(ImageRecipe::AmdObject { version }),
    }
}

/// Clang from 16 on runs itself for the chip, and refuses one that it does not know.
fn known_to_clang(finish: &FinishWith, chip: &'static str, first: u8) -> Result<(), ImageError> {
    let ignorant = finish
        .clangs()
        .iter()
        .find(|release| release.number() >= 16 && release.number() < first);
    match ignorant {
        Some(&release) => Err(ImageError::ChipUnknownToClang { release, chip, first }),
        None => Ok(()),
    }
}

/// The first release that takes `-march=` of the chip. Tried with 16 and 19; which release between or after those is the
/// first has not been tried.
fn first_clang_nvidia(target: &NvidiaTarget) -> u8 {
    match (target.number(), target.suffix()) {
        (..=90, Suffix::Plain) if target.number() != 88 => 15,
        (90, _) => 18,
        (100 | 101 | 120, Suffix::Plain | Suffix::ArchitectureSpecific) => 20,
        (103 | 121, Suffix::Plain | Suffix::ArchitectureSpecific) => 21,
        _ => 22,
    }
}

/// The same for `-mcpu=`, tried with 16, 19 and 22.
fn first_clang_amd(chip: &str) -> u8 {
    match chip {
        "gfx941" | "gfx942" | "gfx1150" | "gfx1151" => 17,
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
