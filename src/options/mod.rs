//! What a user may ask of a compilation, and what a target makes of it.
//!
//! The same names serve everywhere: fields here, `--kebab-case` flags of `gpulower compile`, options of the
//! `gpulower-*` passes, and entries of a target attribute's `flags` dictionary.

mod resolve;
mod text;

use std::{path::PathBuf, sync::Arc, time::Duration};

use crate::target::{CodeObjectVersion, PtxIsa, PtxPolicy, TargetError};

pub use crate::container::fatbin::Compression;

pub use self::{
    resolve::{Resolved, ResolvedVendor},
    text::{DESCRIPTIONS, OptionDescription},
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

/// What is asked of a compilation. [`Options::default`] asks for `-O3` and code that computes what the IR says.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Options {
    /// Optimisation level; `None` means 3, or 0 where full debug info asks for it.
    pub optimization: Option<OptimizationLevel>,
    /// Permits everything that loses precision for speed: all fast-math flags, flushed denormals, approximate division
    /// and square root, contraction. A more specific option wins over it.
    pub fast: bool,
    /// Flushes f32 denormals to zero (`ftz`, also called `daz`). `None` follows `fast`.
    pub ftz: Option<bool>,
    /// Correctly rounded f32 square roots. `None` means yes, unless `fast`.
    pub prec_sqrt: Option<bool>,
    /// Correctly rounded f32 divisions. `None` means yes, unless `fast`.
    pub prec_div: Option<bool>,
    /// Fused multiply-add. `None` means on, or fast with `fast`.
    pub fp_contract: Option<FpContract>,
    /// Upper bound of registers a thread may use (NVIDIA: registers, AMD: VGPRs).
    pub max_registers: Option<u32>,
    /// Lanes in a wave, 32 or 64 (AMD). `None` means the chip's own.
    pub wave_size: Option<u32>,
    /// Code object version (AMD). `None` means 5, or 6 for generic targets.
    pub code_object_version: Option<CodeObjectVersion>,
    /// Debug info.
    pub debug: DebugLevel,
    /// What paths in debug info begin with, and what is written instead. The last that fits a path counts.
    pub debug_prefix_map: Vec<(String, String)>,
    /// PTX ISA (NVIDIA). `None` means the chip's minimum, raised when an instruction needs more.
    pub ptx: Option<PtxIsa>,
    /// Who turns PTX into a cubin (NVIDIA). `None` means the first that can.
    pub ptx_compiler: Option<PtxCompiler>,
    /// Further options for NVIDIA's PTX compiler, one per word.
    pub ptxas_options: Vec<String>,
    /// Which PTX a container holds beside the machine code (NVIDIA). `None` is [`PtxPolicy::default`].
    pub include_ptx: Option<PtxPolicy>,
    /// How a container stores its images. `None` means as they are, which every driver reads.
    pub compression: Option<Compression>,
    /// Joins the modules of one input into one image for each target, and links objects into it. `None` makes an image of
    /// each module.
    pub device_link: Option<DeviceLink>,
    /// Libraries to link before the vendor's.
    pub libraries: Vec<Library>,
    /// Bits of `index` on the device, 32 or 64.
    pub index_bitwidth: u32,
    /// Passes memrefs of static shape to kernels as bare pointers.
    pub bare_pointers: bool,
    /// How many iterations of a loop run at once, with their loads first: 1, 2, 4 or 8. `None` means 4 for NVIDIA from
    /// optimisation level 2 on, and 1 otherwise.
    pub interleave: Option<u32>,
    /// A warning is given for each kernel that spills more bytes (NVIDIA) or registers (AMD) than this.
    pub spill_warning: u32,
    /// Longest time for a module and a target. A worker process is killed then; in this process it is looked at between
    /// stages, and `ptxas` is killed. `None` means no limit.
    pub time_limit: Option<Duration>,
    /// Most memory that a worker process may use, in bytes. `None` means no limit.
    pub memory_limit: Option<u64>,
    /// Where the risky part runs. What comes out is the same.
    pub isolation: Isolation,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            optimization: None,
            fast: false,
            ftz: None,
            prec_sqrt: None,
            prec_div: None,
            fp_contract: None,
            max_registers: None,
            wave_size: None,
            code_object_version: None,
            debug: DebugLevel::None,
            debug_prefix_map: Vec::new(),
            ptx: None,
            ptx_compiler: None,
            ptxas_options: Vec::new(),
            include_ptx: None,
            compression: None,
            device_link: None,
            libraries: Vec::new(),
            index_bitwidth: 64,
            bare_pointers: false,
            interleave: None,
            spill_warning: 0,
            time_limit: None,
            memory_limit: None,
            isolation: Isolation::InProcess,
        }
    }
}

/// An option that cannot be read, or that a target cannot honour.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionError {
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
