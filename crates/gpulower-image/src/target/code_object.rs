//! Versions of AMD's code object format.

use super::TargetError;
use super::error::shown;
use std::fmt;
use std::str::FromStr;

/// Version of the HSA code object, which decides metadata, implicit kernel arguments and the
/// ABI version byte of the ELF file.
///
/// Reads `5`, and `500` as in MLIR's `abi` option; prints `5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum CodeObjectVersion {
    /// Version 4.
    V4,
    /// Version 5: the default, for older loaders take it.
    #[default]
    V5,
    /// Version 6: clang 22's default, and the first with generic targets.
    V6,
}

impl CodeObjectVersion {
    /// Every version LLVM 22 writes, oldest first.
    pub const ALL: [Self; 3] = [Self::V4, Self::V5, Self::V6];

    /// The version for `e_ident[EI_ABIVERSION]` (`ELFABIVERSION_AMDGPU_HSA_*` in `llvm/BinaryFormat/ELF.h`); `None` for
    /// versions before 4, whose flags and metadata differ, and for versions that LLVM 22 does not know.
    pub const fn from_abi_version(abi_version: u8) -> Option<Self> {
        match abi_version {
            2 => Some(Self::V4),
            3 => Some(Self::V5),
            4 => Some(Self::V6),
            _ => None,
        }
    }

    /// The version's number: 4, 5 or 6.
    pub const fn number(self) -> u32 {
        match self {
            Self::V4 => 4,
            Self::V5 => 5,
            Self::V6 => 6,
        }
    }

    /// Value of LLVM's module flag `amdhsa_code_object_version`: 400, 500 or 600.
    pub const fn module_flag(self) -> u32 {
        self.number() * 100
    }

    /// Value of the device libraries' constant `__oclc_ABI_version`, equal to the module flag.
    pub const fn oclc_abi_version(self) -> u32 {
        self.module_flag()
    }
}

impl fmt::Display for CodeObjectVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number())
    }
}

impl FromStr for CodeObjectVersion {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match text {
            "4" | "400" => Ok(Self::V4),
            "5" | "500" => Ok(Self::V5),
            "6" | "600" => Ok(Self::V6),
            _ => Err(TargetError::malformed(format!(
                "'{text}' is not a code object version: it is 4, 5 or 6",
                text = shown(text)
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for (text, flag) in [("4", 400), ("5", 500), ("6", 600)] {
            let version: CodeObjectVersion = text.parse().unwrap();
            assert_eq!(version.to_string(), text);
            assert_eq!(version.module_flag(), flag);
            assert_eq!(version.oclc_abi_version(), flag);
            assert_eq!(flag.to_string().parse(), Ok(version));
        }
        assert_eq!(CodeObjectVersion::default(), CodeObjectVersion::V5);
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "3", "7", "v5", "5.0", "50", "none"] {
            assert_eq!(
                text.parse::<CodeObjectVersion>().unwrap_err().to_string(),
                format!("'{text}' is not a code object version: it is 4, 5 or 6")
            );
        }
    }
}
