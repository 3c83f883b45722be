//! The stages of a compilation, and the listeners that may watch and replace what passes between them.

use std::{fmt, time::Duration};

use inkwell::module::Module as LlvmModule;
use serde::{Deserialize, Serialize};

use crate::target::Target;

gpulower_image::table! {
    /// A step of a compilation, in the order in which they happen.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    #[non_exhaustive]
    pub enum Stage: &'static str {
        /// Reading and checking the input.
        Input = "input";
        /// Deciding what to compile for what.
        Plan = "plan";
        /// From the `gpu` dialect down to the dialect of the target.
        Lower = "lower";
        /// From MLIR to LLVM IR.
        Translate = "translate";
        /// Linking device libraries.
        Link = "link";
        /// LLVM's optimisation passes.
        Optimize = "optimize";
        /// LLVM's code generation: PTX, AMDGPU assembly or an object.
        CodeGen = "code-gen";
        /// From PTX to a cubin.
        PtxToCubin = "ptx-to-cubin";
        /// From an AMDGPU object to an hsaco.
        LinkObject = "link-object";
        /// Several objects into one cubin or hsaco.
        DeviceLink = "device-link";
        /// Several images into one container.
        Container = "container";
        /// Host code of a whole program, with its kernels' images.
        Export = "export";
        /// Comparing a result with what the cache has.
        Cache = "cache";
        /// Writing the result.
        Output = "output";
        /// Running a program in this process.
        Run = "run";
    }
}

impl Stage {
    /// The name in reports and messages.
    pub const fn name(self) -> &'static str {
        self.row()
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// How long a stage took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageTime {
    /// The stage.
    pub stage: Stage,
    /// Wall-clock time.
    pub time: Duration,
}

gpulower_image::table! {
    /// What a listener is shown.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Checkpoint: &'static str {
        /// MLIR in the dialect of the target.
        Lowered = "lowered";
        /// LLVM IR as translated, before any library.
        Initial = "initial";
        /// LLVM IR with libraries linked and internalised.
        Linked = "linked";
        /// LLVM IR after the optimisation passes.
        Optimized = "optimized";
        /// PTX or AMDGPU assembly.
        Isa = "isa";
    }
}

impl Checkpoint {
    /// The name in file names.
    pub const fn name(self) -> &'static str {
        self.row()
    }
}

/// Which module is being compiled for what.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The symbol of the `gpu.module`, or the name of the input.
    pub module: &'a str,
    /// The target.
    pub target: &'a Target,
}

/// Watches a compilation and may replace what a stage produced.
///
/// Every function returns `Ok(None)` to go on unchanged, `Ok(Some(text))` to go on with a replacement, or an error that
/// ends the compilation of this module for this target. Listeners are called from the compiler's threads.
pub trait StageListener: Send + Sync {
    /// The checkpoints at which it is to be called.
    ///
    /// Whoever wants one sees every compilation: results do not come from the cache then. [`Checkpoint::Optimized`] keeps
    /// large modules from being optimised in parts at the same time, since there is no optimised module then, and
    /// [`Checkpoint::Isa`] costs a second code generation for AMD's targets, whose code goes straight to an object. What
    /// comes out is the same.
    fn checkpoints(&self) -> &[Checkpoint];

    /// The module in the dialect of its target. `text` prints it.
    fn lowered(&self, subject: Subject<'_>, text: &dyn Fn() -> String) -> Result<Option<String>, String> {
        let _ = (subject, text);
        Ok(None)
    }

    /// LLVM IR at one of [`Checkpoint::Initial`], [`Checkpoint::Linked`] and [`Checkpoint::Optimized`]. The module may
    /// be changed in place through inkwell; a replacement is textual IR or bitcode.
    fn llvm(
        &self,
        subject: Subject<'_>,
        checkpoint: Checkpoint,
        module: &LlvmModule<'_>,
    ) -> Result<Option<Vec<u8>>, String> {
        let _ = (subject, checkpoint, module);
        Ok(None)
    }

    /// PTX or AMDGPU assembly.
    fn isa(&self, subject: Subject<'_>, text: &str) -> Result<Option<String>, String> {
        let _ = (subject, text);
        Ok(None)
    }
}
