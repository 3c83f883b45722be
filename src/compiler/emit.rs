//! What a compilation is asked to produce, and whether a target has it.

use std::{fmt, str::FromStr};

use crate::{
    device::DeviceOutput,
    options::OptionError,
    report::Format,
    target::{Target, Vendor},
};

/// What to produce: a format, or "the" format of the target's vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Emit {
    /// MLIR in the dialect of the target.
    Mlir,
    /// Textual LLVM IR, linked and optimised.
    Llvm,
    /// LLVM bitcode, linked and optimised.
    Bitcode,
    /// PTX (NVIDIA).
    Ptx,
    /// Assembly: PTX, or AMDGPU assembly.
    Asm,
    /// A relocatable object: AMDGPU ELF, or a relocatable cubin.
    Object,
    /// A cubin (NVIDIA).
    Cubin,
    /// An hsaco (AMD).
    Hsaco,
    /// What a driver loads: a cubin or an hsaco, or PTX for a `compute_*` target.
    Binary,
    /// All targets of a module in what a driver loads. NVIDIA: one fat binary of cubins and PTX. AMD: the hsaco, as
    /// upstream MLIR does, or an offload bundle for several targets.
    Fatbin,
    /// All AMD targets of a module in one clang offload bundle, HIP's fat binary.
    Bundle,
    /// All targets of a module as LLVM offload binaries, one after the other.
    Offload,
}

/// Names on the command line, in the order of the documentation.
const NAMES: &[(&str, Emit)] = &[
    ("ptx", Emit::Ptx),
    ("cubin", Emit::Cubin),
    ("hsaco", Emit::Hsaco),
    ("asm", Emit::Asm),
    ("llvm", Emit::Llvm),
    ("bitcode", Emit::Bitcode),
    ("object", Emit::Object),
    ("mlir", Emit::Mlir),
    ("binary", Emit::Binary),
    ("fatbin", Emit::Fatbin),
    ("bundle", Emit::Bundle),
    ("offload", Emit::Offload),
];

impl Emit {
    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        NAMES.iter().map(|(name, _)| *name)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, emit)| *emit == self)
            .map_or("binary", |(name, _)| name)
    }

    /// Whether the images of all targets of a module come out in one artifact.
    pub const fn is_container(self) -> bool {
        matches!(self, Self::Fatbin | Self::Bundle | Self::Offload)
    }

    /// The format of the image for one target, or why there is none.
    pub fn format(self, target: &Target) -> Result<Format, OptionError> {
        let refuse = |advice| {
            let message = format!("{self} does not exist for {target}: {advice}");
            Err(OptionError::Format(message))
        };
        let is_virtual = target.as_nvidia().is_some_and(|chip| chip.is_virtual());
        let virtual_advice = "a compute_* target is PTX alone; ask for ptx, or for the sm_* chip of the same number";
        match (self, target.vendor()) {
            (Self::Mlir, _) => Ok(Format::Mlir),
            (Self::Llvm, _) => Ok(Format::Llvm),
            (Self::Bitcode, _) => Ok(Format::Bitcode),
            (Self::Ptx | Self::Asm, Vendor::Nvidia) => Ok(Format::Ptx),
            (Self::Ptx, Vendor::Amd) => refuse("PTX is NVIDIA's; ask for asm, object or hsaco"),
            (Self::Asm, Vendor::Amd) => Ok(Format::Asm),
            (Self::Binary | Self::Fatbin | Self::Offload, Vendor::Nvidia) if is_virtual => Ok(Format::Ptx),
            (Self::Object | Self::Cubin, Vendor::Nvidia) if is_virtual => refuse(virtual_advice),
            (Self::Bundle, Vendor::Nvidia) => refuse("an offload bundle is HIP's; ask for fatbin, or for offload"),
            (Self::Object, _) => Ok(Format::Object),
            (Self::Cubin | Self::Binary | Self::Fatbin | Self::Offload, Vendor::Nvidia) => Ok(Format::Cubin),
            (Self::Cubin, Vendor::Amd) => refuse("a cubin is NVIDIA's; ask for hsaco, or for binary"),
            (Self::Hsaco, Vendor::Nvidia) => refuse("an hsaco is AMD's; ask for cubin, or for binary"),
            (Self::Hsaco | Self::Binary | Self::Fatbin | Self::Bundle | Self::Offload, Vendor::Amd) => {
                Ok(Format::Hsaco)
            }
        }
    }
}

impl fmt::Display for Emit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Emit {
    type Err = OptionError;

    fn from_str(name: &str) -> Result<Self, OptionError> {
        NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, emit)| *emit)
            .ok_or_else(|| {
                let names = Self::names().collect::<Vec<_>>().join(", ");
                OptionError::Format(format!("unknown output format '{name}': expected one of {names}"))
            })
    }
}

impl Format {
    /// What the device stage has to make for an image; `None` for MLIR, which does not get there, for containers, and
    /// for what the library does not make.
    pub(super) const fn device_output(self, vendor: Vendor) -> Option<DeviceOutput> {
        match self {
            Self::Mlir | Self::Sass | Self::Fatbin | Self::Bundle | Self::Offload => None,
            Self::Llvm => Some(DeviceOutput::Llvm),
            Self::Bitcode => Some(DeviceOutput::Bitcode),
            Self::Ptx | Self::Asm | Self::Cubin => Some(DeviceOutput::Assembly),
            Self::Hsaco => Some(DeviceOutput::Object),
            Self::Object => Some(match vendor {
                Vendor::Nvidia => DeviceOutput::Assembly,
                Vendor::Amd => DeviceOutput::Object,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(name: &str) -> Target {
        name.parse().expect("a target")
    }

    #[test]
    fn names_round_trip_and_wrong_ones_are_listed() {
        for (name, emit) in NAMES {
            assert_eq!(name.parse(), Ok(*emit));
            assert_eq!(emit.name(), *name);
        }
        let error = "elf".parse::<Emit>().expect_err("refused").to_string();
        assert_eq!(
            error,
            "unknown output format 'elf': expected one of ptx, cubin, hsaco, asm, llvm, bitcode, object, mlir, binary, fatbin, bundle, offload"
        );
    }

    #[test]
    fn a_format_of_the_other_vendor_is_refused_with_advice() {
        for (emit, chip, advice) in [
            (Emit::Ptx, "gfx942", "ask for asm"),
            (Emit::Cubin, "gfx942", "ask for hsaco"),
            (Emit::Hsaco, "sm_90", "ask for cubin"),
            (Emit::Cubin, "compute_90", "ask for ptx"),
        ] {
            let error = emit.format(&target(chip)).expect_err("refused").to_string();
            assert!(
                error.starts_with(&format!("{emit} does not exist for {chip}: ")) && error.contains(advice),
                "{error}"
            );
        }
        assert_eq!(Emit::Binary.format(&target("gfx942")), Ok(Format::Hsaco));
        assert_eq!(Emit::Asm.format(&target("sm_90")), Ok(Format::Ptx));
    }
}
