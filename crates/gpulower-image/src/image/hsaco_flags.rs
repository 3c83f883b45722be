//! What the ELF header of an AMDGPU code object says about its target.
//!
//! Source of every value: `EF_AMDGPU_*` and `ELFABIVERSION_AMDGPU_HSA_*` in `llvm/BinaryFormat/ELF.h`
//! of LLVM 22, described in "User Guide for AMDGPU Backend", section "ELF Code Object / Header".

use std::fmt;

/// `e_ident[EI_OSABI]` of code objects for the HSA runtime (`amdhsa`).
pub const ELFOSABI_AMDGPU_HSA: u8 = 64;

/// What a code object requires of a processor feature that can be on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// The processor does not have the feature.
    Unsupported,
    /// The code runs with the feature on and off.
    Any,
    /// The code needs the feature to be off.
    Off,
    /// The code needs the feature to be on.
    On,
}

impl Feature {
    fn from_bits(bits: u32) -> Self {
        match bits & 3 {
            1 => Self::Any,
            2 => Self::Off,
            3 => Self::On,
            _ => Self::Unsupported,
        }
    }

    /// The sign in a target id: `+`, `-`, or nothing where both settings will do.
    fn sign(self) -> Option<char> {
        match self {
            Self::On => Some('+'),
            Self::Off => Some('-'),
            Self::Unsupported | Self::Any => None,
        }
    }
}

/// The target of a code object, decoded from `e_flags` (code object V4 and later).
///
/// `Display` writes the target id as the HIP runtime and clang's offload tools write it: the processor,
/// then the settings that are fixed, in alphabetical order (`gfx90a:sramecc-:xnack+`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TargetFlags {
    /// The machine number, `EF_AMDGPU_MACH`.
    pub machine: u8,
    /// Name of the processor with that number, `None` if LLVM 22 knows none.
    pub processor: Option<&'static str>,
    /// Retry of memory faults (XNACK replay).
    pub xnack: Feature,
    /// Error correction of on-chip memory (SRAM-ECC).
    pub sramecc: Feature,
    /// Version of a generic target (`gfx9-generic`), `None` for a real processor.
    pub generic_version: Option<u8>,
}

impl TargetFlags {
    /// Decodes `e_flags`.
    #[must_use]
    pub fn from_e_flags(flags: u32) -> Self {
        let [machine, _, _, generic] = flags.to_le_bytes();
        Self {
            machine,
            processor: processor(machine),
            xnack: Feature::from_bits(flags >> 8),
            sramecc: Feature::from_bits(flags >> 10),
            generic_version: (generic != 0).then_some(generic),
        }
    }
}

impl fmt::Display for TargetFlags {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.processor {
            Some(processor) => formatter.write_str(processor)?,
            None => write!(formatter, "unknown-mach-{:#04x}", self.machine)?,
        }
        for (name, feature) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            if let Some(sign) = feature.sign() {
                write!(formatter, ":{name}{sign}")?;
            }
        }
        Ok(())
    }
}

/// Name of the processor with an `EF_AMDGPU_MACH_AMDGCN_*` number.
#[must_use]
pub fn processor(machine: u8) -> Option<&'static str> {
    PROCESSORS
        .iter()
        .find(|(number, _)| *number == machine)
        .map(|(_, name)| *name)
}

/// The `EF_AMDGPU_MACH_AMDGCN_*` numbers of LLVM 22.
const PROCESSORS: &[(u8, &str)] = &[
    (0x20, "gfx600"),
    (0x21, "gfx601"),
    (0x22, "gfx700"),
    (0x23, "gfx701"),
    (0x24, "gfx702"),
    (0x25, "gfx703"),
    (0x26, "gfx704"),
    (0x28, "gfx801"),
    (0x29, "gfx802"),
    (0x2a, "gfx803"),
    (0x2b, "gfx810"),
    (0x2c, "gfx900"),
    (0x2d, "gfx902"),
    (0x2e, "gfx904"),
    (0x2f, "gfx906"),
    (0x30, "gfx908"),
    (0x31, "gfx909"),
    (0x32, "gfx90c"),
    (0x33, "gfx1010"),
    (0x34, "gfx1011"),
    (0x35, "gfx1012"),
    (0x36, "gfx1030"),
    (0x37, "gfx1031"),
    (0x38, "gfx1032"),
    (0x39, "gfx1033"),
    (0x3a, "gfx602"),
    (0x3b, "gfx705"),
    (0x3c, "gfx805"),
    (0x3d, "gfx1035"),
    (0x3e, "gfx1034"),
    (0x3f, "gfx90a"),
    (0x41, "gfx1100"),
    (0x42, "gfx1013"),
    (0x43, "gfx1150"),
    (0x44, "gfx1103"),
    (0x45, "gfx1036"),
    (0x46, "gfx1101"),
    (0x47, "gfx1102"),
    (0x48, "gfx1200"),
    (0x49, "gfx1250"),
    (0x4a, "gfx1151"),
    (0x4c, "gfx942"),
    (0x4e, "gfx1201"),
    (0x4f, "gfx950"),
    (0x51, "gfx9-generic"),
    (0x52, "gfx10-1-generic"),
    (0x53, "gfx10-3-generic"),
    (0x54, "gfx11-generic"),
    (0x55, "gfx1152"),
    (0x58, "gfx1153"),
    (0x59, "gfx12-generic"),
    (0x5a, "gfx1251"),
    (0x5f, "gfx9-4-generic"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::elf::Elf;
    use crate::target::CodeObjectVersion;
    use gpulower_testing::amd::{object, readelf};

    #[test]
    fn every_processor_has_the_number_that_llc_writes() {
        for (number, name) in PROCESSORS {
            // Generic targets exist from code object V6 on.
            let object = object("", name, "", 6);
            let header = *Elf::parse(&object).unwrap().header();
            let flags = TargetFlags::from_e_flags(header.flags);
            assert_eq!(flags.machine, *number, "{name}");
            assert_eq!(flags.processor, Some(*name));
            assert_eq!(flags.to_string(), *name, "nothing is fixed by default");
            let generic = name.ends_with("-generic");
            assert_eq!(flags.generic_version.is_some(), generic, "{name}");
            assert_eq!(
                CodeObjectVersion::from_abi_version(header.abi_version),
                Some(CodeObjectVersion::V6)
            );
        }
    }

    #[test]
    fn features_are_those_that_llvm_readelf_prints() {
        let any = object("", "gfx90a", "", 5);
        let fixed = object("", "gfx90a", "+xnack,-sramecc", 5);
        for (object, id, xnack, sramecc) in [
            (&any, "gfx90a", Feature::Any, Feature::Any),
            (&fixed, "gfx90a:sramecc-:xnack+", Feature::On, Feature::Off),
        ] {
            let flags = TargetFlags::from_e_flags(Elf::parse(object).unwrap().header().flags);
            assert_eq!((flags.xnack, flags.sramecc), (xnack, sramecc));
            assert_eq!(flags.to_string(), id);
        }
        let text = readelf(&fixed, &["-h"]);
        assert!(text.contains("gfx90a, xnack+, sramecc-"), "{text}");
        let none = object("", "gfx1100", "", 5);
        let flags = TargetFlags::from_e_flags(Elf::parse(&none).unwrap().header().flags);
        assert_eq!(flags.xnack, Feature::Unsupported);
    }

    #[test]
    fn unknown_numbers_are_shown_as_such() {
        let flags = TargetFlags::from_e_flags(0x0300 | 0xfe);
        assert_eq!(flags.processor, None);
        assert_eq!(flags.to_string(), "unknown-mach-0xfe:xnack+");
        assert_eq!(CodeObjectVersion::from_abi_version(1), None);
        assert_eq!(CodeObjectVersion::from_abi_version(5), None);
    }
}
