//! Targets in nvcc's spelling: `-arch`, `-code` and `-gencode`, word for word.
//!
//! The images, and their order, are those of nvcc 13.0.88; tests compare with `nvcc --dryrun`, acceptance and refusal.
//! Where nvcc hands on what its `ptxas` refuses (`compute_90a` to `sm_100a`), it is refused here.

use super::error::shown;
use super::nvcc_groups::{Groups, is_major};
use super::nvcc_list::{Stray, split};
use super::plan;
use super::{ComputeCapability, CudaRelease, NvidiaKind, NvidiaTarget, PlanNote, PtxPolicy, TargetError, TargetPlan};

/// The flags as written, without their names: every occurrence of each, in order.
///
/// How the flags stand to each other on the command line does not matter to nvcc, and is not recorded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NvccFlags {
    /// `-arch`, `--gpu-architecture`. The last one counts.
    pub arch: Vec<String>,
    /// `-code`, `--gpu-code`. They add up.
    pub code: Vec<String>,
    /// `-gencode`, `--generate-code`. They add up.
    pub gencode: Vec<String>,
}

/// What `-arch` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvccArch {
    /// One architecture, real or virtual.
    Named(NvidiaTarget),
    /// `all`: every plain chip of the CUDA release, and PTX for its highest major one.
    All,
    /// `all-major`: the release's first chip and those with a minor number of 0, and PTX for its highest major one.
    AllMajor,
    /// `native`: the devices of this machine.
    Native,
}

impl NvccArch {
    /// The word for what is no single architecture.
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Named(_) => None,
            Self::All => Some("all"),
            Self::AllMajor => Some("all-major"),
            Self::Native => Some("native"),
        }
    }
}

impl NvccFlags {
    /// Whether none of the flags was given.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.arch.is_empty() && self.code.is_empty() && self.gencode.is_empty()
    }

    /// What `-arch` says, the last one; `None` without the flag. After [`NvccArch::Native`] the caller has to ask the
    /// driver for its devices, before [`plan`](Self::plan).
    ///
    /// # Errors
    ///
    /// A name that is none.
    pub fn arch(&self) -> Result<Option<NvccArch>, TargetError> {
        let Some(name) = self.arch.last() else {
            return Ok(None);
        };
        Ok(Some(match name.as_str() {
            "all" => NvccArch::All,
            "all-major" => NvccArch::AllMajor,
            "native" => NvccArch::Native,
            name => NvccArch::Named(architecture(name, &format!("-arch={}", shown(name)))?),
        }))
    }

    /// The plan that nvcc would follow.
    ///
    /// `policy` is what was asked for beside the flags: it has to be `None`, for the code lists say which PTX there is.
    /// The plan's policy lists it. `release` is the CUDA release at hand, which `all` and `all-major` depend on;
    /// `devices` are those of this machine, which `native` depends on. The chips of 13.0 are nvcc's own list; for other
    /// releases they are those that the release's `ptxas` compiles for, chosen by the rule of `nvcc --help`.
    ///
    /// # Errors
    ///
    /// What nvcc refuses, with the reason. Other than nvcc: `native` without a device, and no flag at all, for there is no
    /// default chip; `lto_` code; what nvcc accepts and `ptxas` refuses. Chips that the CUDA release does not compile for
    /// are left to [`NvidiaTarget::check_cuda`].
    pub fn plan(
        &self,
        policy: Option<&PtxPolicy>,
        release: CudaRelease,
        devices: &[ComputeCapability],
    ) -> Result<TargetPlan, TargetError> {
        let mut groups = Groups::default();
        self.add_arch(&mut groups, release, devices)?;
        for argument in &self.gencode {
            let (arch, codes) = gencode(argument)?;
            groups.add(arch, &codes)?;
        }
        if groups.is_empty() {
            return Err(plan::no_target());
        }
        if let Some(policy) = policy {
            return Err(TargetError::conflict(format!(
                "--include-ptx={policy} beside -arch, -code or -gencode: their code lists say which PTX is included; leave the \
                 policy out, or name the chips by --target",
                policy = policy
            )));
        }
        let mut notes: Vec<PlanNote> = self.repeated().into_iter().collect();
        notes.extend(groups.check_cubins()?);
        Ok(groups.plan(notes))
    }

    /// What `-arch` and `-code` say.
    fn add_arch(
        &self,
        groups: &mut Groups,
        release: CudaRelease,
        devices: &[ComputeCapability],
    ) -> Result<(), TargetError> {
        let codes = self.codes()?;
        let Some(arch) = self.arch()? else {
            if codes.is_empty() {
                return Ok(());
            }
            return Err(TargetError::malformed(format!(
                "-code={code} needs -arch: write -arch=compute_80 -code=sm_80,compute_80, or use -gencode",
                code = shown(&codes.join(","))
            )));
        };
        if let (Some(arch), false) = (arch.word(), codes.is_empty()) {
            return Err(TargetError::conflict(format!(
                "-arch={arch} decides about the code, and -code={code} does too: leave one of the two out",
                code = shown(&codes.join(","))
            )));
        }
        match arch {
            NvccArch::Named(arch) if codes.is_empty() => groups.add_shorthand(arch),
            NvccArch::Named(arch) => {
                let flag = format!("-arch={arch} -code={}", shown(&codes.join(",")));
                check_virtual(arch, &flag)?;
                codes
                    .iter()
                    .try_for_each(|code| groups.add(arch, &[architecture(code, &flag)?]))
            }
            NvccArch::All => groups.add_release(release, "all", |_| true),
            NvccArch::AllMajor => groups.add_release(release, "all-major", is_major),
            NvccArch::Native => groups.add_devices(devices),
        }
    }

    /// All codes of all `-code`, as words.
    fn codes(&self) -> Result<Vec<String>, TargetError> {
        let mut codes = Vec::new();
        for argument in &self.code {
            let items = split(argument, false).map_err(|Stray(stray)| unclosed(stray, "-code", argument))?;
            codes.extend(items);
        }
        Ok(codes)
    }

    /// nvcc warns about an `-arch` that a later one with another value replaces.
    fn repeated(&self) -> Option<PlanNote> {
        let used = self.arch.last()?;
        let dropped = self.arch.iter().rev().find(|arch| *arch != used)?;
        Some(PlanNote::ArchRepeated {
            used: shown(used),
            dropped: shown(dropped),
        })
    }
}

fn unclosed(stray: char, flag: &str, argument: &str) -> TargetError {
    let argument = shown(argument);
    TargetError::malformed(format!(
        "'{stray}' in {flag} {argument} is not closed: write -gencode arch=compute_80,code=[sm_80,compute_80]"
    ))
}

/// The architecture and the codes of one `-gencode`.
fn gencode(argument: &str) -> Result<(NvidiaTarget, Vec<NvidiaTarget>), TargetError> {
    let written = || shown(argument);
    let items = split(argument, true).map_err(|Stray(stray)| unclosed(stray, "-gencode", argument))?;
    let (mut arch, mut code) = (None, None);
    for item in &items {
        let (keyword, slot, value) = match item.split_once('=') {
            Some(("arch", value)) => ("arch", &mut arch, value),
            Some(("code", value)) => ("code", &mut code, value),
            _ => {
                return Err(TargetError::malformed(format!(
                    "'{item}' in -gencode {argument} is neither arch=... nor code=...: several codes stand in brackets, as in \
                     -gencode arch=compute_80,code=[sm_80,compute_80]",
                    item = shown(item),
                    argument = written()
                )));
            }
        };
        if slot.replace(value).is_some() {
            return Err(TargetError::malformed(format!(
                "-gencode {argument} says {keyword}= twice: several codes stand in brackets, several architectures in several -gencode",
                argument = written()
            )));
        }
    }
    let missing = |keyword| {
        TargetError::malformed(format!(
            "-gencode {argument} lacks {keyword}=: write -gencode arch=compute_80,code=[sm_80,compute_80]",
            argument = written()
        ))
    };
    let arch = arch.ok_or_else(|| missing("arch"))?;
    let code = code.ok_or_else(|| missing("code"))?;
    let flag = format!("-gencode {}", written());
    let arch = architecture(arch, &flag)?;
    check_virtual(arch, &flag)?;
    let codes: Result<_, _> = code.split(',').map(|name| architecture(name, &flag)).collect();
    Ok((arch, codes?))
}

/// Reads `sm_90a` or `compute_90a`.
fn architecture(name: &str, flag: &str) -> Result<NvidiaTarget, TargetError> {
    let notation = |advice| {
        TargetError::malformed(format!(
            "{flag}: '{name}' is not nvcc's notation: {advice}",
            flag = flag,
            name = shown(name)
        ))
    };
    if name.starts_with("lto_") {
        return Err(TargetError::unsupported(format!(
            "{flag}: {name} asks for NVIDIA's LTO-IR, which only NVIDIA's own compilers (nvcc, NVRTC) make from source; leave \
             it out here, and hand LTO-IR that they made to the link",
            flag = flag,
            name = shown(name)
        )));
    }
    if name.contains('+') {
        return Err(notation("it has no PTX ISA in the name; ask for one by --ptx"));
    }
    if name.starts_with("gfx") {
        return Err(notation("nvcc has NVIDIA's chips alone; name those of AMD by --target"));
    }
    if matches!(name, "all" | "all-major" | "native") {
        return Err(notation("it stands alone, as in -arch=all"));
    }
    name.parse()
        .map_err(|source| TargetError::malformed(format!("{flag}: {source}", flag = flag)))
}

fn check_virtual(arch: NvidiaTarget, flag: &str) -> Result<(), TargetError> {
    if arch.is_virtual() {
        return Ok(());
    }
    Err(TargetError::malformed(format!(
        "{flag}: {real} is no virtual architecture: write {virtual_} there, and {real} as its code",
        flag = flag,
        real = arch,
        virtual_ = arch.with_kind(NvidiaKind::Virtual)
    )))
}
