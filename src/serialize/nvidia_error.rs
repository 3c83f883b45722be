//! Why PTX was not made into a cubin, and what was tried.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::ReadError;

/// One of NVIDIA's three compilers from PTX to a cubin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PtxCompiler {
    /// The library nvPTXCompiler, inside this process.
    NvPtxCompiler,
    /// The program `ptxas`.
    Ptxas,
    /// The library nvJitLink, inside this process. It compiles to relocatable code and links that, which can
    /// cost registers, so it comes last.
    NvJitLink,
}

impl PtxCompiler {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 3] = [Self::NvPtxCompiler, Self::Ptxas, Self::NvJitLink];

    /// The name that options and reports use: `nvptxcompiler`, `ptxas`, `nvjitlink`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::NvPtxCompiler => "nvptxcompiler",
            Self::Ptxas => "ptxas",
            Self::NvJitLink => "nvjitlink",
        }
    }
}

impl fmt::Display for PtxCompiler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// What became of one compiler in one compilation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// It compiled the module.
    Used,
    /// It refused the module, which ended the search.
    Failed,
    /// It is not in the toolkit, or could not be loaded or started: the reason.
    Unavailable(String),
    /// It does not know the chip, the PTX version, or what an option asks for: the reason.
    Unsupported(String),
}

/// One step of the choice of a compiler.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The compiler.
    pub compiler: PtxCompiler,
    /// Its version, when it got as far as telling it.
    pub version: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
}

impl fmt::Display for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.compiler.name())?;
        if let Some(version) = &self.version {
            write!(formatter, " {version}")?;
        }
        match &self.outcome {
            Outcome::Used => formatter.write_str(": used"),
            Outcome::Failed => formatter.write_str(": failed"),
            Outcome::Unavailable(reason) => write!(formatter, ": not available: {reason}"),
            Outcome::Unsupported(reason) => write!(formatter, ": not possible: {reason}"),
        }
    }
}

/// Why PTX was not made into a cubin. Every variant but the first carries what was tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SerializeError {
    /// An option that cannot be honoured. Nothing was tried.
    #[error("the PTX compiler option {option} is not possible: {reason}")]
    InvalidOption {
        /// The option.
        option: String,
        /// Why not, and what to do instead.
        reason: String,
    },
    /// No compiler is at hand.
    #[error(
        "no PTX compiler could be used for {chip}: {}. Install a CUDA toolkit (or NVIDIA's wheels nvidia-cuda-nvcc \
         and nvidia-nvptxcompiler) and name its directory, or emit PTX, which the driver compiles", tried(.decisions)
    )]
    NoCompiler {
        /// The chip.
        chip: String,
        /// What was tried.
        decisions: Vec<Decision>,
    },
    /// No compiler at hand knows the chip.
    #[error("no PTX compiler at hand knows {chip}: {}. {}", tried(.decisions), arch_advice(.chip))]
    UnsupportedArch {
        /// The chip.
        chip: String,
        /// What was tried.
        decisions: Vec<Decision>,
    },
    /// The PTX is in a newer version of the language than any compiler at hand reads.
    #[error(
        "the PTX for {chip} is version {found}, and no PTX compiler at hand reads it{}: {}. Use a newer CUDA \
         toolkit, or lower the PTX version", newest.as_ref().map_or_else(String::new, |newest| format!(" (newest: {newest})")), tried(.decisions)
    )]
    UnsupportedPtxVersion {
        /// The chip.
        chip: String,
        /// Version of the PTX, "9.1".
        found: String,
        /// Newest version that any of them reads, if they said.
        newest: Option<String>,
        /// What was tried.
        decisions: Vec<Decision>,
    },
    /// The compilers at hand cannot do what the options ask.
    #[error("no PTX compiler at hand can do what is asked for {chip}: {}", tried(.decisions))]
    UnsupportedOptions {
        /// The chip.
        chip: String,
        /// What was tried.
        decisions: Vec<Decision>,
    },
    /// A kernel uses more registers than were allowed. ptxas silently ignores `--maxrregcount` for a kernel
    /// that states `.maxntid` or `.reqntid`, and raises limits that are too low for the hardware (observed
    /// with 13.0.88).
    #[error(
        "{compiler} {version} gave kernel {kernel:?} {registers} registers on {chip}, above the limit of {limit}: \
         the limit does not act on kernels that state their block size (.maxntid, .reqntid), nor below the chip's \
         minimum. State .maxnreg in the kernel (the LLVM function attribute nvvm.maxnreg), or raise the limit"
    )]
    RegisterLimit {
        /// The chip.
        chip: String,
        /// The compiler.
        compiler: PtxCompiler,
        /// Its version.
        version: String,
        /// The kernel.
        kernel: String,
        /// Registers per thread that it uses.
        registers: u32,
        /// Registers per thread that were allowed.
        limit: u32,
        /// What was tried.
        decisions: Vec<Decision>,
    },
    /// A compiler wrote a cubin that cannot be read.
    #[error("{compiler} {version} wrote a cubin for {chip} that cannot be read: {source}")]
    Unreadable {
        /// The chip.
        chip: String,
        /// The compiler.
        compiler: PtxCompiler,
        /// Its version.
        version: String,
        /// What is wrong with it.
        source: Box<ReadError>,
        /// What was tried.
        decisions: Vec<Decision>,
    },
    /// A compiler refused the PTX.
    #[error("{compiler} {version} could not compile the PTX for {chip}: {}", log.trim_end())]
    Compile {
        /// The chip.
        chip: String,
        /// The compiler.
        compiler: PtxCompiler,
        /// Its version.
        version: String,
        /// What it said.
        log: String,
        /// What was tried.
        decisions: Vec<Decision>,
    },
    /// A compiler did not finish in time.
    #[error("{compiler} {version} did not compile the PTX for {chip} within {limit:?}; raise the time limit")]
    Timeout {
        /// The chip.
        chip: String,
        /// The compiler.
        compiler: PtxCompiler,
        /// Its version.
        version: String,
        /// The limit.
        limit: Duration,
        /// What was tried.
        decisions: Vec<Decision>,
    },
    /// The compilation was cancelled while a compiler ran.
    #[error("{compiler} {version} was stopped: the compilation for {chip} was cancelled")]
    Cancelled {
        /// The chip.
        chip: String,
        /// The compiler.
        compiler: PtxCompiler,
        /// Its version.
        version: String,
        /// What was tried.
        decisions: Vec<Decision>,
    },
}

impl SerializeError {
    /// What was tried, in order.
    #[must_use]
    pub fn decisions(&self) -> &[Decision] {
        match self {
            Self::InvalidOption { .. } => &[],
            Self::NoCompiler { decisions, .. }
            | Self::UnsupportedArch { decisions, .. }
            | Self::UnsupportedPtxVersion { decisions, .. }
            | Self::UnsupportedOptions { decisions, .. }
            | Self::RegisterLimit { decisions, .. }
            | Self::Unreadable { decisions, .. }
            | Self::Compile { decisions, .. }
            | Self::Timeout { decisions, .. }
            | Self::Cancelled { decisions, .. } => decisions,
        }
    }
}

fn tried(decisions: &[Decision]) -> String {
    if decisions.is_empty() {
        return "nothing to try".to_owned();
    }
    let decisions: Vec<String> = decisions.iter().map(ToString::to_string).collect();
    decisions.join("; ")
}

/// CUDA 13.0 dropped everything before sm_75 (help text of ptxas 12.9.86 and 13.0.88).
fn arch_advice(chip: &str) -> &'static str {
    let number = chip
        .trim_start_matches("sm_")
        .trim_end_matches(['a', 'f'])
        .parse::<u32>();
    match number {
        Ok(number) if number < 75 => {
            "CUDA 13 dropped the chips before sm_75: use a CUDA 12 toolkit, or emit PTX, which the driver compiles"
        }
        _ => "Use a newer CUDA toolkit, or emit PTX for an older chip, which the driver compiles",
    }
}
