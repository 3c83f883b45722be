//! An NVIDIA architecture by its number, whether or not the tables know it, and where code for it runs.

use super::ComputeCapability;
use super::nvidia_chips::{Suffix, family, is_tegra};
use std::fmt;

/// The architecture that an image states, such as sm_90a.
///
/// A container written by somebody else may hold images for chips that the tables have lost or never had: this is a
/// number and a letter, where [`NvidiaTarget`](super::NvidiaTarget) is a chip that can be compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NvidiaArch {
    /// 90 in `sm_90a`: ten times the major plus the minor compute capability.
    pub number: u16,
    /// What the letter after it says.
    pub suffix: Suffix,
}

impl NvidiaArch {
    /// Reads `sm_90a`, `compute_90a` or `90a`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let digits = name
            .strip_prefix("sm_")
            .or_else(|| name.strip_prefix("compute_"))
            .unwrap_or(name);
        let (digits, suffix) = if let Some(digits) = digits.strip_suffix('a') {
            (digits, Suffix::ArchitectureSpecific)
        } else if let Some(digits) = digits.strip_suffix('f') {
            (digits, Suffix::FamilySpecific)
        } else {
            (digits, Suffix::Plain)
        };
        if !(2..=3).contains(&digits.len()) || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let number = digits.parse().ok()?;
        Some(Self { number, suffix })
    }

    /// Whether a driver that reads the PTX ISA compiles PTX with this `.target` for a device.
    ///
    /// A plain target compiles for every device of its number or above; `a` for that one alone; `f` for the later
    /// ones of its family.
    #[must_use]
    pub fn ptx_runs_on(self, device: ComputeCapability) -> bool {
        let (number, device) = (self.number, device.number());
        match self.suffix {
            Suffix::Plain => device >= number,
            Suffix::ArchitectureSpecific => device == number || (number == 101 && device == 110),
            Suffix::FamilySpecific => family(device) == family(number) && device >= number,
        }
    }

    /// Whether machine code for this architecture runs on a device.
    ///
    /// Plain code runs on the same major compute capability with an equal or larger minor one,
    /// Tegra chips excepted, which run their own only; `a` runs on exactly its own, `f` on later members of its
    /// family. Source: CUDA C++ Programming Guide, "Binary Compatibility"; that sm_80, sm_86 and sm_100 do not load on
    /// an H200 (9.0) was observed with driver 580.159.
    #[must_use]
    pub fn cubin_runs_on(self, device: ComputeCapability) -> bool {
        let (number, device) = (self.number, device.number());
        match self.suffix {
            Suffix::ArchitectureSpecific => device == number,
            Suffix::Plain if is_tegra(number) || is_tegra(device) => device == number,
            Suffix::FamilySpecific if family(device) != family(number) => false,
            Suffix::FamilySpecific | Suffix::Plain => device / 10 == number / 10 && device >= number,
        }
    }
}

impl fmt::Display for NvidiaArch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sm_{}{}", self.number, self.suffix.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["sm_75", "sm_90a", "sm_100f", "sm_121a"] {
            assert_eq!(NvidiaArch::parse(name).unwrap().to_string(), name);
        }
        assert_eq!(NvidiaArch::parse("compute_90a"), NvidiaArch::parse("90a"));
        for name in [
            "", "sm_", "sm_a", "sm_9", "sm_90b", "gfx942", "sm_90af", "sm_+9", "sm_1000",
        ] {
            assert_eq!(NvidiaArch::parse(name), None, "{name}");
        }
    }
}
