//! Why PTX was not made into a cubin, and what was tried.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::ErrorKind;

gpulower_image::table! {
    /// One of NVIDIA's three compilers from PTX to a cubin.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum PtxCompiler: &'static str {
        /// The library nvPTXCompiler, inside this process.
        NvPtxCompiler = "nvptxcompiler";
        /// The program `ptxas`.
        Ptxas = "ptxas";
        /// The library nvJitLink, inside this process. It compiles to relocatable code and links that, which can
        /// cost registers, so it comes last.
        NvJitLink = "nvjitlink";
    }
}

impl PtxCompiler {
    /// The name that options and reports use: `nvptxcompiler`, `ptxas`, `nvjitlink`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row()
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

/// Why PTX was not made into a cubin, with what was tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SerializeError {
    /// An option is not possible, no compiler at hand can do it, or what it made is not as it has to be.
    #[error("{message}")]
    Refused {
        /// What kind of failure it is.
        kind: ErrorKind,
        /// What is wrong, and what to do.
        message: String,
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
            Self::Refused { decisions, .. }
            | Self::Compile { decisions, .. }
            | Self::Timeout { decisions, .. }
            | Self::Cancelled { decisions, .. } => decisions,
        }
    }

    /// An option that cannot be honoured. Nothing was tried.
    pub(super) fn option(option: &str, reason: &str) -> Self {
        Self::Refused {
            kind: ErrorKind::Option,
            message: format!("the PTX compiler option {option} is not possible: {reason}"),
            decisions: Vec::new(),
        }
    }

    /// No compiler is at hand.
    pub(super) fn no_compiler(chip: &str, decisions: Vec<Decision>) -> Self {
        let tried = tried(&decisions);
        let message = format!(
            "no PTX compiler could be used for {chip}: {tried}. Install a CUDA toolkit (or NVIDIA's wheels nvidia-cuda-nvcc and \
             nvidia-nvptxcompiler) and name its directory, or emit PTX, which the driver compiles"
        );
        Self::toolkit(message, decisions)
    }

    /// No compiler at hand knows the chip.
    pub(super) fn unknown_arch(chip: &str, decisions: Vec<Decision>) -> Self {
        let (tried, advice) = (tried(&decisions), arch_advice(chip));
        Self::toolkit(
            format!("no PTX compiler at hand knows {chip}: {tried}. {advice}"),
            decisions,
        )
    }

    /// The PTX is in a newer version of the language than any compiler at hand reads; `newest`, if they said.
    pub(super) fn unknown_ptx(
        chip: &str,
        (major, minor): (u32, u32),
        newest: Option<(u32, u32)>,
        decisions: Vec<Decision>,
    ) -> Self {
        let newest = newest.map_or_else(String::new, |(major, minor)| format!(" (newest: {major}.{minor})"));
        let tried = tried(&decisions);
        let message = format!(
            "the PTX for {chip} is version {major}.{minor}, and no PTX compiler at hand reads it{newest}: {tried}. Use a newer \
             CUDA toolkit, or lower the PTX version"
        );
        Self::toolkit(message, decisions)
    }

    fn toolkit(message: String, decisions: Vec<Decision>) -> Self {
        let kind = ErrorKind::Toolkit;
        Self::Refused {
            kind,
            message,
            decisions,
        }
    }

    /// The compilers at hand cannot do what the options ask.
    pub(super) fn impossible(chip: &str, decisions: Vec<Decision>) -> Self {
        let tried = tried(&decisions);
        Self::Refused {
            kind: ErrorKind::Option,
            message: format!("no PTX compiler at hand can do what is asked for {chip}: {tried}"),
            decisions,
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
        Ok(101) => {
            "CUDA 13 calls this chip sm_110, with the same letter: name that, use CUDA 12.8 or 12.9, or emit PTX, which the \
             driver compiles"
        }
        _ => "Use a newer CUDA toolkit, or emit PTX for an older chip, which the driver compiles",
    }
}
