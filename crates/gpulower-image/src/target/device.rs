//! What an NVIDIA device says it is.

use std::fmt;

/// Compute capability of an NVIDIA device, such as 9.0. Has no suffix: a device runs all that
/// its chip has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComputeCapability {
    /// The number before the dot.
    pub major: u16,
    /// The number after the dot.
    pub minor: u16,
}

impl ComputeCapability {
    /// `major.minor`, as the driver reports it.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// The number of the device's chip: 90 for 9.0, 121 for 12.1.
    pub const fn number(self) -> u16 {
        self.major.saturating_mul(10).saturating_add(self.minor)
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_chips() {
        assert_eq!(ComputeCapability::new(9, 0).number(), 90);
        assert_eq!(ComputeCapability::new(12, 1).number(), 121);
        assert_eq!(ComputeCapability::new(u16::MAX, 1).number(), u16::MAX);
        assert_eq!(ComputeCapability::new(9, 0).to_string(), "9.0");
    }
}
