//! The runtime libraries that host code calls.

/// Whose runtime library the host code calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Runtime {
    /// NVIDIA's `libcudart`.
    Cuda,
    /// AMD's `libamdhip64`.
    Hip,
    /// LLVM's `libomptarget`, for devices of either vendor ([`openmp`](super::openmp)).
    OpenMp,
}

impl Runtime {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Cuda, Self::Hip, Self::OpenMp];

    /// The prefix of the runtime's functions: `cuda`, `hip` or `omp`.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Hip => "hip",
            Self::OpenMp => "omp",
        }
    }

    /// The name of its language on command lines: `cuda`, `hip` or `openmp`.
    pub const fn language(self) -> &'static str {
        match self {
            Self::Cuda => "cuda",
            Self::Hip => "hip",
            Self::OpenMp => "openmp",
        }
    }

    /// The runtime with a name of [`Runtime::language`].
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|runtime| runtime.language() == name)
    }

    /// The name that people know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cuda => "CUDA",
            Self::Hip => "HIP",
            Self::OpenMp => "OpenMP",
        }
    }
}
