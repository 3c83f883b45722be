//! nvcc's `-gencode`, `-arch` and `-code`.

use clap::Args;
use gpulower::{
    Options, Target, Toolkit,
    target::{CudaRelease, Generation, NvccArch, NvccFlags, PlannedImage, TargetPlan, Vendor},
    toolkit::{PartKind, tool_version},
};

use super::{Failed, message::Problem, native::Native};

/// The release whose list of chips `all` means where there is no ptxas.
const NEWEST: CudaRelease = CudaRelease::new(13, 0);

/// The flags, under the names that [`super::nvcc_flags`] gives them.
#[derive(Args, Clone, Debug)]
pub struct NvccArguments {
    /// As nvcc: arch=compute_80,code=[sm_80,compute_80]; may be repeated
    #[arg(
        long,
        alias = "generate-code",
        value_name = "ARCH,CODE",
        help_heading = "NVIDIA targets in nvcc's spelling"
    )]
    gencode: Vec<String>,
    /// As nvcc: sm_90, compute_90, all, all-major or native
    #[arg(
        long,
        alias = "gpu-architecture",
        value_name = "ARCH",
        help_heading = "NVIDIA targets in nvcc's spelling"
    )]
    arch: Vec<String>,
    /// As nvcc: what to make of --arch=compute_90, such as sm_90,compute_90
    #[arg(
        long,
        alias = "gpu-code",
        value_name = "CODE[,CODE..]",
        help_heading = "NVIDIA targets in nvcc's spelling"
    )]
    code: Vec<String>,
}

impl NvccArguments {
    /// The plan that the flags ask for, if any was given. AMD targets of `--target` are added to it.
    pub fn plan(&self, targets: &[Target], options: &Options, toolkit: &Toolkit) -> Result<Option<TargetPlan>, Failed> {
        let flags = NvccFlags {
            arch: self.arch.clone(),
            code: self.code.clone(),
            gencode: self.gencode.clone(),
        };
        if flags.is_empty() {
            return Ok(None);
        }
        if let Some(target) = targets.iter().find(|target| target.vendor() == Vendor::Nvidia) {
            return Err(Failed::Usage(format!(
                "--target {target} and nvcc's -arch or -gencode both name NVIDIA chips: use one of the two spellings"
            )));
        }
        let problem = |text: String| Failed::from(Problem::target(text));
        let devices = match flags.arch().map_err(|error| problem(error.to_string()))? {
            Some(NvccArch::Native) => {
                let native = Native::ask().map_err(|error| problem(format!("-arch=native: {error}")))?;
                native.capabilities
            }
            _ => Vec::new(),
        };
        let release = toolkit
            .find(PartKind::Ptxas)
            .and_then(|program| tool_version(program).ok())
            .and_then(|version| {
                let (major, minor) = version.release();
                Some(CudaRelease::new(major.try_into().ok()?, minor.try_into().ok()?))
            })
            .unwrap_or(NEWEST);
        let mut plan = flags
            .plan(options.include_ptx.as_ref(), release, &devices)
            .map_err(|error| problem(error.to_string()))?;
        Target::check_one_binary(targets).map_err(|error| problem(error.to_string()))?;
        plan.generations.extend(targets.iter().map(|target| Generation {
            target: *target,
            images: vec![PlannedImage::Machine(*target)],
        }));
        Ok(Some(plan))
    }
}
