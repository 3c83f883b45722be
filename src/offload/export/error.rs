//! Why a program cannot be exported.

use super::{
    super::{
        embed::EmbedError, entries::EntryError, profile::ProfileError, program::Runtime,
        registration::RegistrationError, release::ReleaseError,
    },
    ExportForm,
};
use crate::{
    bridge::LlvmError,
    target::{CudaRelease, PtxIsa},
};

/// Why a program cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// No form has this name.
    #[error("unknown form '{name}': expected obj, ll, bc or self")]
    UnknownForm {
        /// The name.
        name: String,
    },
    /// Device code alone.
    #[error(
        "only MLIR can be exported, with host code that launches kernels; compile device code alone with `gpulower \
         compile`"
    )]
    NotMlir,
    /// Nothing says what finishes the program.
    #[error(
        "say which clang finishes the program on the other machine (--finish-with clang-19,cuda-12.4): the layout of the offload \
         entries differs from release to release; --emit self needs no clang, and was not asked for ({form} was)"
    )]
    NoFinishWith {
        /// What was asked for.
        form: ExportForm,
    },
    /// Targets of two vendors.
    #[error(
        "{nvidia} and {amd} cannot be in one program: its host code calls either CUDA or HIP; export once for each"
    )]
    MixedVendors {
        /// A target of NVIDIA's.
        nvidia: String,
        /// A target of AMD's.
        amd: String,
    },
    /// The other vendor's runtime.
    #[error("kind '{}' was asked for, and the targets need '{}'", .asked.prefix(), .needed.prefix())]
    OtherRuntime {
        /// What was asked for.
        asked: Runtime,
        /// What the targets need.
        needed: Runtime,
    },
    /// The other vendor's toolkit.
    #[error("the program is finished with {toolkit}, and its targets need {runtime}; name targets of the same vendor")]
    OtherToolkit {
        /// The toolkit.
        toolkit: String,
        /// What the targets need.
        runtime: &'static str,
    },
    /// No layout of entries, or no form of image, serves the releases.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// Kernels or variables cannot be registered.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// Images cannot be embedded.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// The program cannot register itself.
    #[error(transparent)]
    Registration(#[from] RegistrationError),
    /// IR that an older release does not read.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// LLVM refused the host code.
    #[error(transparent)]
    Llvm(#[from] LlvmError),
    /// A module without an image for a target.
    #[error("the module {module} has no image for {target}{}; {advice}", known(.found))]
    NoImage {
        /// The module.
        module: String,
        /// The target.
        target: String,
        /// The images that it has.
        found: Vec<String>,
        /// What to do.
        advice: &'static str,
    },
    /// A module that was compiled before, without a kernel that is launched.
    #[error(
        "the kernel {kernel} is launched, and the {form} for {target} in the gpu.binary {module} does not define it{}",
        known(.found)
    )]
    NoKernel {
        /// The kernel.
        kernel: String,
        /// The image.
        form: String,
        /// What it is for.
        target: String,
        /// The module.
        module: String,
        /// The kernels that it has.
        found: Vec<String>,
    },
    /// An image of a `gpu.binary` that cannot be used.
    #[error("the gpu.binary {module}: {problem}")]
    Binary {
        /// The module.
        module: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// A relocatable cubin that some nvlink on the other machine refuses.
    #[error(
        "the relocatable cubin for {target} in the gpu.binary {module} was made by CUDA {maker}, and the nvlink of CUDA \
         {linker} does not take it; keep the module as a gpu.module, or compile it with CUDA {linker}"
    )]
    CubinRelease {
        /// The module.
        module: String,
        /// What the cubin is for.
        target: String,
        /// The release that made it.
        maker: CudaRelease,
        /// The release that does not take it.
        linker: CudaRelease,
    },
    /// Another compiler took part than was planned.
    #[error(
        "the cubin for {target} was to be made by the ptxas of CUDA {wanted}, and {tool} made it, whose cubins the nvlink \
         on the other machine may refuse; ask for that ptxas alone with --ptx-compiler=ptxas, which says why it cannot"
    )]
    OtherCompiler {
        /// The target.
        target: String,
        /// The release that was planned.
        wanted: CudaRelease,
        /// What made it.
        tool: String,
    },
    /// PTX that is too new for the ptxas on the other machine.
    #[error(
        "the PTX of the module {module} for {target} is of version {found}, and the ptxas on the other machine reads up to \
         {newest}; finish with a newer CUDA"
    )]
    PtxTooNew {
        /// The module.
        module: String,
        /// The target.
        target: String,
        /// The version of the PTX.
        found: String,
        /// The newest version that is read on the other machine.
        newest: PtxIsa,
    },
    /// OpenMP.
    #[error(
        "kind 'openmp' is not supported: libomptarget starts kernels that were compiled for its own device runtime, and \
         kernels of the gpu dialect are not; use cuda or hip"
    )]
    OpenMp,
    /// The object that was written is not what it should be.
    #[error("internal error: what was exported is not what it has to be: {0} (this is a bug in gpulower)")]
    Unconfirmed(String),
}

fn known(found: &[String]) -> String {
    match found {
        [] => "; there is none at all".to_owned(),
        found => format!("; there is {}", found.join(", ")),
    }
}
