//! The kinds of parts, what each enables, and how to get it.

use std::fmt;
use std::path::PathBuf;

use super::search::Origin;
use crate::target::Vendor;

gpulower_image::table! {
    /// A file of a toolkit that some output needs.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
    #[non_exhaustive]
    pub enum PartKind: (&'static str, &'static str) {
        /// `ptxas`, the assembler from PTX to cubin.
        Ptxas = ("ptxas", "PTX to cubin in a child process");
        /// `nvlink`, the linker of relocatable cubins.
        Nvlink = ("nvlink", "linking relocatable cubins in a child process");
        /// `fatbinary`, which packs cubins and PTX.
        Fatbinary = ("fatbinary", "comparing fat binaries with NVIDIA's own");
        /// `cuobjdump`, which shows what is in a cubin or fat binary.
        Cuobjdump = ("cuobjdump", "listing what a cubin or fat binary holds");
        /// `nvdisasm`, the disassembler.
        Nvdisasm = ("nvdisasm", "disassembling cubins");
        /// `libdevice.10.bc`, the math functions as bitcode.
        Libdevice = ("libdevice.10.bc", "math functions (exp, erf, pow, ...) in NVIDIA kernels");
        /// `libnvJitLink.so.13` or `.12`.
        NvJitLink = ("libnvJitLink.so", "PTX to cubin in this process, and linking several PTX or cubin inputs");
        /// `libnvptxcompiler_static.a`; NVIDIA ships no shared library of it.
        NvPtxCompiler = ("libnvptxcompiler_static.a", "PTX to cubin in this process, without a driver");
        /// `libnvfatbin.so.13` or `.12`.
        NvFatbin = ("libnvfatbin.so", "fat binaries with LTO-IR");
        /// `libcudart.so`, the runtime library that host programs link.
        Cudart = ("libcudart.so", "linking host programs that launch exported NVIDIA kernels");
        /// `ocml.bc`, the math functions as bitcode.
        Ocml = ("ocml.bc", "math functions (exp, erf, pow, ...) in AMD kernels");
        /// `ockl.bc`, device runtime functions as bitcode.
        Ockl = ("ockl.bc", "device runtime functions (printf, assert, dynamic sizes) in AMD kernels");
        /// `opencl.bc`, OpenCL's built-in functions as bitcode.
        Opencl = ("opencl.bc", "OpenCL built-ins in AMD kernels (printf of device code)");
        /// `hip.bc`, HIP's built-in functions as bitcode.
        Hip = ("hip.bc", "HIP built-ins in AMD kernels");
    }
}

impl PartKind {
    /// Whose it is.
    #[must_use]
    pub fn vendor(self) -> Vendor {
        match self {
            Self::Ocml | Self::Ockl | Self::Opencl | Self::Hip => Vendor::Amd,
            _ => Vendor::Nvidia,
        }
    }

    /// The name of the file, without the version of a shared library.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// What is possible with the part, as half a sentence.
    #[must_use]
    pub fn enables(self) -> &'static str {
        self.row().1
    }

    /// True for programs, which have to be executable.
    #[must_use]
    pub fn is_program(self) -> bool {
        matches!(
            self,
            Self::Ptxas | Self::Nvlink | Self::Fatbinary | Self::Cuobjdump | Self::Nvdisasm
        )
    }

    /// How to get the part, as a sentence for somebody who misses it.
    #[must_use]
    pub fn advice(self) -> String {
        // Wheels: names on PyPI, CUDA 13. Packages: Debian 12; libnvJitLink and nvFatbin are in none of them, because
        // Debian 12 has CUDA 11.8.
        let (wheel, package) = match self {
            Self::Ptxas | Self::Nvlink | Self::Fatbinary => ("nvidia-cuda-nvcc", Some("nvidia-cuda-toolkit")),
            Self::Cuobjdump => ("nvidia-cuda-cuobjdump", Some("nvidia-cuda-toolkit")),
            Self::Nvdisasm => ("nvidia-cuda-nvdisasm", Some("nvidia-cuda-toolkit")),
            Self::Libdevice => ("nvidia-nvvm", Some("nvidia-cuda-toolkit")),
            Self::NvJitLink => ("nvidia-nvjitlink", None),
            Self::NvPtxCompiler => ("nvidia-nvptxcompiler", Some("nvidia-cuda-dev")),
            Self::NvFatbin => ("nvidia-nvfatbin", None),
            Self::Cudart => ("nvidia-cuda-runtime", Some("nvidia-cuda-dev")),
            Self::Ocml | Self::Ockl | Self::Opencl | Self::Hip => {
                return "install Debian's package rocm-device-libs, or ROCm, and set ROCM_PATH to \
                        ROCm or HIP_DEVICE_LIB_PATH to the folder of the .bc files"
                    .to_owned();
            }
        };
        let package = package.map_or_else(String::new, |name| format!(", or Debian's package {name} (non-free)"));
        format!(
            "install the wheel {wheel} from PyPI into an active virtual environment{package}, or the CUDA toolkit, \
             and set CUDA_HOME to it"
        )
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// One part, and the way to it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Part {
    /// Which part.
    pub kind: PartKind,
    /// Where it is; None when it is in none of the places.
    pub found: Option<PathBuf>,
    /// What named the place where it was found.
    pub origin: Option<Origin>,
    /// The places that were looked at before, or all of them when it was not found, in order.
    pub tried: Vec<Tried>,
}

impl Part {
    /// What is possible with the part, as half a sentence.
    #[must_use]
    pub fn enables(&self) -> &'static str {
        self.kind.enables()
    }

    /// How to get the part; None when it is there.
    #[must_use]
    pub fn advice(&self) -> Option<String> {
        self.found.is_none().then(|| self.kind.advice())
    }
}

/// A place where a part is not.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tried {
    /// The file that was looked for, or the directory that would have held it.
    pub path: PathBuf,
    /// What made this a place to look.
    pub origin: Origin,
    /// Why it was passed over.
    pub why_not: WhyNot,
}

impl fmt::Display for Tried {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, origin, why_not } = self;
        write!(formatter, "{} ({origin}): {why_not}", path.display())
    }
}

/// Why a place was passed over.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum WhyNot {
    /// The directory that would hold it does not exist.
    NoSuchDirectory,
    /// What should be a directory is something else.
    NotADirectory,
    /// The directory exists, the file in it does not.
    NoSuchFile,
    /// What should be a file is something else.
    NotAFile,
    /// The file has no content.
    Empty,
    /// A program that nobody may execute; unpacking a wheel with a tool that drops permissions leads to this.
    NotExecutable,
    /// The operating system refused to look, with its message.
    Unreadable(String),
}

impl fmt::Display for WhyNot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NoSuchDirectory => "no such directory",
            Self::NotADirectory => "not a directory",
            Self::NoSuchFile => "no such file",
            Self::NotAFile => "not a file",
            Self::Empty => "an empty file",
            Self::NotExecutable => "not executable; set its permission with chmod +x",
            Self::Unreadable(message) => message,
        })
    }
}
