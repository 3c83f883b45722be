//! The runtime libraries of the two vendors.

/// Whose runtime library the host code calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// NVIDIA's `libcudart`.
    Cuda,
    /// AMD's `libamdhip64`.
    Hip,
}

impl Runtime {
    /// The prefix of the runtime's functions, `cuda` or `hip`.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Hip => "hip",
        }
    }

    /// The name that people know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDA",
            Self::Hip => "HIP",
        }
    }
}
