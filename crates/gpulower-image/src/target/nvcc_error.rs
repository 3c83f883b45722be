//! What can be wrong with targets in nvcc's spelling.

use super::{ComputeCapability, CudaRelease, NvidiaTarget, PlanError, PtxPolicy, TargetError};

/// Flags in nvcc's spelling that nvcc refuses too, but for link-time code, which only nvcc can make.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NvccError {
    /// A quote or bracket that is not closed.
    #[error("'{stray}' in {flag} {argument} is not closed: write -gencode arch=compute_80,code=[sm_80,compute_80]")]
    Stray {
        /// The character.
        stray: char,
        /// The flag.
        flag: &'static str,
        /// Its argument.
        argument: String,
    },
    /// Part of a `-gencode` that is not `arch=` or `code=`.
    #[error(
        "'{item}' in -gencode {argument} is neither arch=... nor code=...: several codes stand in brackets, as in \
         -gencode arch=compute_80,code=[sm_80,compute_80]"
    )]
    Item {
        /// The part.
        item: String,
        /// The argument.
        argument: String,
    },
    /// `arch=` or `code=` twice in one `-gencode`.
    #[error(
        "-gencode {argument} says {keyword}= twice: several codes stand in brackets, several architectures in several -gencode"
    )]
    Repeated {
        /// `arch` or `code`.
        keyword: &'static str,
        /// The argument.
        argument: String,
    },
    /// `arch=` or `code=` not in a `-gencode`.
    #[error("-gencode {argument} lacks {keyword}=: write -gencode arch=compute_80,code=[sm_80,compute_80]")]
    Missing {
        /// `arch` or `code`.
        keyword: &'static str,
        /// The argument.
        argument: String,
    },
    /// A name that is none of NVIDIA's architectures.
    #[error("{flag}: {source}")]
    Name {
        /// The flag with its argument.
        flag: String,
        /// What is wrong with the name.
        source: TargetError,
    },
    /// Another notation within nvcc's.
    #[error("{flag}: '{name}' is not nvcc's notation: {advice}")]
    Notation {
        /// The flag with its argument.
        flag: String,
        /// The name.
        name: String,
        /// How it is written.
        advice: &'static str,
    },
    /// Link-time code.
    #[error(
        "{flag}: {name} asks for NVIDIA's LTO-IR, which only NVIDIA's own compilers (nvcc, NVRTC) make from source; leave \
         it out here, and hand LTO-IR that they made to the link"
    )]
    LinkTimeCode {
        /// The flag with its argument.
        flag: String,
        /// `lto_90`.
        name: String,
    },
    /// A real architecture where code is generated for a virtual one.
    #[error("{flag}: {real} is no virtual architecture: write {virtual_} there, and {real} as its code")]
    RealArchitecture {
        /// The flag with its argument.
        flag: String,
        /// What was written.
        real: NvidiaTarget,
        /// What was meant.
        virtual_: NvidiaTarget,
    },
    /// Code for one architecture that does not run on another.
    #[error("incompatible code generation: arch={arch}, code={code}: {reason}")]
    Incompatible {
        /// What code is generated for.
        arch: NvidiaTarget,
        /// The image that was asked for.
        code: NvidiaTarget,
        /// Why it cannot be made.
        reason: String,
    },
    /// The same cubin from a family's generation and another.
    #[error(
        "{first} and {second} would both make code for {code}, one of them specific to a family: leave one of the two out"
    )]
    FamilyConflict {
        /// What the one is generated for.
        first: NvidiaTarget,
        /// What the other is generated for.
        second: NvidiaTarget,
        /// The code in question.
        code: NvidiaTarget,
    },
    /// `-code` alone.
    #[error("-code={code} needs -arch: write -arch=compute_80 -code=sm_80,compute_80, or use -gencode")]
    CodeWithoutArch {
        /// The codes.
        code: String,
    },
    /// `-code` beside a word that decides on its own.
    #[error("-arch={arch} decides about the code, and -code={code} does too: leave one of the two out")]
    CodeBesideList {
        /// `all`, `all-major` or `native`.
        arch: &'static str,
        /// The codes.
        code: String,
    },
    /// `-arch=native` without a device.
    #[error("-arch=native found no NVIDIA GPU here: name the architecture, such as -arch=sm_90")]
    NoDevice,
    /// `-arch=native` on a device that is in no table.
    #[error("-arch=native found a GPU of compute capability {device}: {source}")]
    UnknownDevice {
        /// The device.
        device: ComputeCapability,
        /// Why there is no target for it.
        source: TargetError,
    },
    /// `-arch=all` for a release before all that is known.
    #[error("-arch={arch}: CUDA {release} is older than all releases that are known: name the architectures")]
    NoChips {
        /// `all` or `all-major`.
        arch: &'static str,
        /// The release.
        release: CudaRelease,
    },
    /// A PTX policy beside code lists.
    #[error(
        "--include-ptx={policy} beside -arch, -code or -gencode: their code lists say which PTX is included; leave the \
         policy out, or name the chips by --target"
    )]
    PolicyBeside {
        /// The policy.
        policy: PtxPolicy,
    },
    /// No flag that names an architecture.
    #[error(transparent)]
    Plan(#[from] PlanError),
}
