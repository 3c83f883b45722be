//! Device linking: several objects into one image, whose kernels call what another object defines.
//!
//! Inputs are PTX, relocatable cubins, LTO-IR, fat binaries and `nvcc -dc` objects for NVIDIA (nvJitLink links them), and
//! relocatable objects for AMD (lld does); archives of these for both. Before a linker runs, the symbols of all inputs are
//! read: what is defined twice and what nothing defines is refused with the names of everybody concerned. After it has run,
//! every kernel of every input has to be in the image.
//!
//! ```no_run
//! use gpulower::serialize::device_link::{self, LinkInput, LinkOptions};
//! use gpulower::{Compiler, Target};
//!
//! let (kernels, functions) = (std::fs::read("kernels.cubin")?, std::fs::read("functions.ptx")?);
//! let inputs = [
//!     LinkInput::detect("kernels.cubin", &kernels)?,
//!     LinkInput::detect("functions.ptx", &functions)?,
//! ];
//! let target: Target = "sm_90".parse()?;
//! let compiler = Compiler::builder().build();
//! let linked = device_link::link(&inputs, &target, &LinkOptions::default(), compiler.ptx_to_cubin())?;
//! std::fs::write("linked.cubin", linked.bytes)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod amd;
mod amd_registers;
mod input;
mod nvidia;
mod resolve;

pub use super::link_error::DeviceLinkError;
pub use input::LinkInput;

use super::nvidia::PtxToCubin;
use super::nvidia_options::PtxOptions;
use crate::image::elf::Elf;
use crate::image::ptx_symbols;
use crate::image::resource::KernelResources;
pub use crate::image::symbols::LinkInterface;
use crate::image::symbols::LinkSymbols;
use crate::target::Target;
use crate::{FileKind, ReadError, error::ErrorKind};
use input::Unit;

/// How to link.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkOptions {
    /// NVIDIA: for the PTX among the inputs, and for what LTO-IR becomes. `relocatable` has no effect.
    pub ptx: PtxOptions,
    /// NVIDIA: for the LTO-IR among the inputs.
    pub lto: LtoOptions,
}

/// Floating-point settings of LTO-IR; PTX and machine code carry theirs in the instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LtoOptions {
    /// f32 denormals become zero. Default: no.
    pub flush_denormals: Option<bool>,
    /// Division of f32 is correctly rounded. Default: yes.
    pub precise_division: Option<bool>,
    /// Square roots of f32 are correctly rounded. Default: yes.
    pub precise_square_root: Option<bool>,
    /// Multiplications and additions are fused. Default: yes.
    pub contract: Option<bool>,
}

impl LinkOptions {
    /// Refuses what nvJitLink could not honour.
    fn check(&self) -> Result<(), DeviceLinkError> {
        self.ptx
            .check()
            .map_err(|error| DeviceLinkError::new(ErrorKind::Option, error.to_string()))
    }

    /// Refuses everything: code of AMDGPU objects is final.
    fn check_for_amd(&self) -> Result<(), DeviceLinkError> {
        if *self == Self::default() {
            return Ok(());
        }
        Err(DeviceLinkError::new(
            ErrorKind::Option,
            "options for code generation have no effect on AMDGPU objects, whose code is final: leave them out",
        ))
    }
}

/// A linked image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedImage {
    /// The cubin or the hsaco.
    pub bytes: Vec<u8>,
    /// Its kernels and what they need. For NVIDIA spills are known of those kernels that were compiled in this link.
    pub kernels: Vec<KernelResources>,
    /// What took part: the inputs, and what was taken out of containers and archives.
    pub inputs: Vec<String>,
    /// The linker and its version.
    pub tool: String,
    /// What the linker said.
    pub log: String,
    /// What it warned about.
    pub warnings: Vec<String>,
}

/// Links `inputs` for `target` into one image.
///
/// `tools` gives nvJitLink for NVIDIA targets, and is not touched for others.
///
/// # Errors
///
/// [`DeviceLinkError`].
pub fn link(
    inputs: &[LinkInput<'_>],
    target: &Target,
    options: &LinkOptions,
    tools: &PtxToCubin,
) -> Result<LinkedImage, DeviceLinkError> {
    if inputs.is_empty() {
        return Err(DeviceLinkError::link("nothing to link: no input was given"));
    }
    if let Target::Nvidia(target) = target
        && target.is_virtual()
    {
        let problem = format!(
            "{target} is a virtual architecture, and linking makes machine code: name a chip, such as {}",
            target.chip()
        );
        return Err(DeviceLinkError::new(ErrorKind::Target, problem));
    }
    let units = input::unpack(inputs, target)?;
    tracing::debug!(inputs = inputs.len(), units = units.len(), %target, "device link");
    match target {
        Target::Nvidia(target) => nvidia::link(&units, *target, options, tools),
        Target::Amd(target) => amd::link(&units, *target, options),
    }
}

/// Reads what `inputs` define and need, without linking them.
///
/// # Errors
///
/// [`DeviceLinkError`]: an input that cannot be used.
pub fn interface(inputs: &[LinkInput<'_>], target: &Target) -> Result<LinkInterface, DeviceLinkError> {
    let mut interface = LinkInterface::default();
    for unit in input::unpack(inputs, target)? {
        if matches!(unit.kind, FileKind::LtoIr | FileKind::FatBinary) {
            interface.opaque = true;
            continue;
        }
        let symbols = symbols(&unit).map_err(|problem| DeviceLinkError::input(&unit.name, problem))?;
        interface
            .defined
            .extend(symbols.defined.keys().map(ToString::to_string));
        interface.needed.extend(symbols.needed.keys().map(ToString::to_string));
        if let Target::Amd(target) = target {
            let registers = amd_registers::of_functions(&unit, *target)?;
            interface.registers = interface.registers.max(registers);
        }
    }
    Ok(interface)
}

/// The symbols of an object that is not LTO-IR.
fn symbols<'u>(unit: &'u Unit<'_>) -> Result<LinkSymbols<'u>, ReadError> {
    Ok(match unit.kind {
        FileKind::Ptx => ptx_symbols::symbols(&unit.bytes)?,
        FileKind::AmdObject => LinkSymbols::of_amd_object(&Elf::parse(&unit.bytes)?)?,
        _ => LinkSymbols::of_cubin(&Elf::parse(&unit.bytes)?)?,
    })
}
