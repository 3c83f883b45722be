//! What a user may ask of a compilation, and what a target makes of it.
//!
//! The same names serve everywhere: fields here, `--kebab-case` flags of `gpulower compile`, options of the
//! `gpulower-*` passes, and entries of a target attribute's `flags` dictionary. All of them come from the rows of one table
//! (`table.rs`).

mod form;
mod resolve;
mod table;
mod text;

use std::{path::PathBuf, sync::Arc};

use crate::target::TargetError;

pub use crate::container::fatbin::Compression;

pub(crate) use self::resolve::reserved_ptxas_option;
pub use self::{
    resolve::{Resolved, ResolvedVendor},
    table::{DESCRIPTIONS, OptionDescription, Options, Rules},
};

/// How much LLVM and the vendor's compiler optimise: `-O0` to `-O3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum OptimizationLevel {
    /// None.
    O0,
    /// Little.
    O1,
    /// Most of it.
    O2,
    /// All of it.
    O3,
}

impl OptimizationLevel {
    /// 0 to 3.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// What a compilation spends time on. Options that are given win over what a speed stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum Speed {
    /// Code soon: for first runs and tests.
    Fast,
    /// What is worth its time on most kernels.
    #[default]
    Balanced,
    /// Several variants, of which a model chooses for each kernel.
    Best,
}

/// How much the output lets a debugger or profiler see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
pub enum DebugLevel {
    /// Nothing.
    #[default]
    None,
    /// Source lines, at any optimisation level: `.loc` directives for NVIDIA, a line table for AMD.
    LineTables,
    /// Everything. NVIDIA's compiler accepts that at `-O0` alone, which is then the default.
    Full,
}

/// When a multiplication and an addition may become one fused operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum FpContract {
    /// Never, whatever the IR says.
    Off,
    /// Where the IR carries the `contract` flag.
    On,
    /// Everywhere.
    Fast,
}

/// Who turns PTX into a cubin.
pub use crate::serialize::nvidia::PtxCompiler;

/// A bitcode library to link: only what is needed of it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Library {
    /// A file of bitcode or textual LLVM IR.
    File(PathBuf),
    /// Bitcode or textual LLVM IR in memory, with a name for messages.
    Memory {
        /// Name for messages.
        name: String,
        /// The library.
        #[serde(with = "shared_bytes")]
        bytes: Arc<[u8]>,
    },
}

impl Library {
    /// The name for messages: the path, or the given name.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Memory { name, .. } => name.clone(),
        }
    }
}

/// What device linking joins with the modules of the input, which may call each other then.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct DeviceLink {
    /// Compiled code: PTX, relocatable cubins, LTO-IR, fat binaries, AMDGPU objects, archives of these. What they define,
    /// the modules may declare and use, and the other way round.
    pub objects: Vec<Library>,
}

/// Where the risky part of a compilation runs: lowering, LLVM, lld and NVIDIA's compilers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Isolation {
    /// In this process. LLVM's fatal errors are contained; a crash of LLVM or of a vendor's library is not.
    #[default]
    InProcess,
    /// In a process of its own, which is reused: see [`worker`](crate::worker).
    Worker,
}

/// Bytes that are shared in memory, as bytes.
mod shared_bytes {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(bytes.iter())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
        Vec::deserialize(deserializer).map(Arc::from)
    }
}

/// An option that cannot be read, or that a target cannot honour.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
    /// What a pass says about its options.
    #[error("{0}")]
    Pass(String),
    /// No option has this name.
    #[error("unknown option '{name}'{}", did_you_mean(.nearest))]
    Unknown {
        /// The name.
        name: String,
        /// Similar names.
        nearest: Vec<String>,
    },
    /// The value is none that the option takes.
    #[error("option '{name}' cannot be '{value}': expected {expected}")]
    Value {
        /// The option.
        name: &'static str,
        /// The value.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// The target cannot do what the option asks.
    #[error("option '{name}' cannot be honoured for {target}: {reason}")]
    NotHonoured {
        /// The option.
        name: &'static str,
        /// The target.
        target: String,
        /// Why, and what to do.
        reason: String,
    },
    /// An output format that does not exist, or not for the target, or that cannot be made of the input.
    #[error("{0}")]
    Format(String),
    /// The value does not fit the target.
    #[error(transparent)]
    Target(#[from] TargetError),
}

fn did_you_mean(names: &[String]) -> String {
    if names.is_empty() {
        String::new()
    } else {
        format!(" (did you mean {}?)", names.join(", "))
    }
}
