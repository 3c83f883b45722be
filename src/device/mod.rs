//! One device module: from MLIR to LLVM IR, linked, checked, optimised, and out as PTX or an object.
//!
//! Knows nothing of containers, vendor tools or hosts.

mod atomics;
mod chip_features;
mod components;
mod constant_choices;
mod contracts;
mod control;
mod error;
mod float_power;
mod for_ptxas;
pub mod join;
mod join_ptx;
mod libraries;
mod lost_negations;
pub mod lower;
mod lower_pipeline;
mod math;
mod narrow_stores;
mod odd_parameters;
mod pass_pipeline;
mod ptx_lines;
mod repeated;
mod reserve;
mod rounding;
mod shared_alignment;
mod small_extremes;
mod split;
pub mod symbols;
mod validate;
mod wrapping_negations;

use std::{
    collections::HashSet,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    bridge::{
        LlvmError, assemble,
        llvm::{DeviceContext, DeviceModule, EmitKind, FloatingPoint},
        target_machine::TargetMachine,
    },
    error::{ErrorKind, Location},
    image::symbols::LinkInterface,
    interrupt::{Interrupt, InterruptError},
    options::{DebugLevel, FpContract, Resolved},
    report::Decision,
    stage::{Checkpoint, Stage, StageListener, StageTime, Subject},
    target::{Target, Vendor},
    toolkit::ToolkitError,
};

pub(crate) use split::Split;

pub use error::UnresolvedSymbol;
pub(crate) use error::{DeviceError, Refusal};
pub(crate) use join::{JoinInput, join};
pub(crate) use join_ptx::{FunctionText, assemble as assemble_ptx, cut as cut_ptx};
pub use libraries::{LoadedLibrary, VendorLibrary};
pub(crate) use pass_pipeline::llvm_pipeline;
use pass_pipeline::pipeline;
#[cfg(test)]
pub use split::in_turn;
pub use split::{ForEach, KeptParts};

/// What one device module is compiled with.
#[derive(Clone, Copy)]
pub struct DeviceJob<'a> {
    /// Name for messages.
    pub name: &'a str,
    /// The options for the target.
    pub resolved: &'a Resolved,
    /// The user's libraries, in order.
    pub libraries: &'a [LoadedLibrary],
    /// Gives a vendor's device library; called only when a symbol needs it.
    pub vendor_library: &'a (dyn Fn(VendorLibrary) -> Result<LoadedLibrary, ToolkitError> + Sync),
    /// The MLIR location at which a symbol is called, where there is one.
    pub locate: &'a dyn Fn(&str) -> Option<Location>,
    /// Watchers.
    pub listeners: &'a [Arc<dyn StageListener>],
    /// Carries out the parts of a large module.
    pub for_each: &'a ForEach<'a>,
    /// Keeps what the parts of a large module became.
    pub kept_parts: Option<KeptParts<'a>>,
    /// Is told of choices that a user may want to know of.
    pub decide: &'a dyn Fn(Decision),
    /// The functions of the kernels, where they must not depend on any others.
    pub own: Option<&'a HashSet<String>>,
    /// Whether the module has debug info that nobody asked for: it tells where an error is.
    pub has_places: bool,
}

impl fmt::Debug for DeviceJob<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeviceJob")
            .field("name", &self.name)
            .field("target", &self.resolved.target)
            .finish_non_exhaustive()
    }
}

/// What a device module is compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceOutput {
    /// Textual LLVM IR, linked and optimised.
    Llvm,
    /// Bitcode, linked and optimised.
    Bitcode,
    /// PTX or AMDGPU assembly.
    Assembly,
    /// A relocatable AMDGPU object.
    Object,
}

/// Is told of each stage as it begins.
pub(crate) type StageObserver = Arc<dyn Fn(Stage) + Send + Sync>;

/// Records how long each stage took, and knows what may end the work between two of them.
#[derive(Default)]
pub struct StageClock {
    times: Vec<StageTime>,
    interrupt: Interrupt,
    observer: Option<StageObserver>,
}

impl fmt::Debug for StageClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StageClock")
            .field("times", &self.times)
            .field("interrupt", &self.interrupt)
            .finish_non_exhaustive()
    }
}

impl StageClock {
    /// With something that may end the work, and somebody to be told of stages.
    pub(crate) fn new(interrupt: Interrupt, observer: Option<StageObserver>) -> Self {
        Self {
            times: Vec::new(),
            interrupt,
            observer,
        }
    }

    /// What may end the work.
    pub(crate) const fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// An error once the work is to end.
    pub(crate) fn check(&self) -> Result<(), InterruptError> {
        self.interrupt.check()
    }

    /// Runs `work` as (part of) a stage.
    pub fn time<R>(&mut self, stage: Stage, work: impl FnOnce() -> R) -> R {
        if let Some(observer) = &self.observer {
            observer(stage);
        }
        let _span = tracing::debug_span!("stage", name = stage.name()).entered();
        let start = Instant::now();
        let result = work();
        self.add(stage, start.elapsed());
        result
    }

    /// Adds time to a stage.
    pub fn add(&mut self, stage: Stage, time: Duration) {
        match self.times.iter_mut().find(|entry| entry.stage == stage) {
            Some(entry) => entry.time += time,
            None => self.times.push(StageTime { stage, time }),
        }
    }

    /// The stages in the order in which they happened.
    pub fn into_times(self) -> Vec<StageTime> {
        self.times
    }
}

/// An error of a stage.
pub type StageResult<T> = Result<T, (Stage, DeviceError)>;

/// Compiles LLVM IR: links what it needs, checks that nothing is unresolved, optimises and emits. What `others` define, with
/// which the result will be linked, may stay undefined, and what they need stays visible.
pub(crate) fn generate_code<'c>(
    context: &'c DeviceContext,
    module: DeviceModule<'c>,
    job: &DeviceJob<'_>,
    others: &LinkInterface,
    output: DeviceOutput,
    clock: &mut StageClock,
) -> StageResult<Vec<u8>> {
    let resolved = job.resolved;
    let interrupted = |stage: Stage| move |error: InterruptError| (stage, error.into());
    clock.check().map_err(interrupted(Stage::Link))?;
    let machine = machine(resolved, &module).map_err(|error| (Stage::CodeGen, error.into()))?;
    let at = |stage: Stage| move |error: DeviceError| (stage, error);

    let mut linked_a_library = false;
    let mut own = HashSet::new();
    let module = clock
        .time(Stage::Link, || -> Result<_, DeviceError> {
            module.set_target(&machine)?;
            if resolved.target.vendor() == Vendor::Amd {
                module.leave_generic_memory()?;
            }
            if resolved.debug == DebugLevel::None && !job.has_places {
                module.strip_debug_info()?;
            } else if resolved.debug == DebugLevel::LineTables && resolved.target.vendor() == Vendor::Nvidia {
                module.keep_lines_alone()?;
            }
            if !resolved.debug_prefix_map.is_empty() {
                module.remap_files(&resolved.debug_prefix_map)?;
            }
            let module = job.show(context, module, Checkpoint::Initial)?;
            validate::no_foreign_intrinsics(&module, &resolved.target)?;
            validate::no_foreign_kernels(&module, &resolved.target)?;
            module.honour_rounding()?;
            // The user's own instructions alone: a vendor's library knows what it does.
            module.set_floating_point(FloatingPoint {
                fast: resolved.fast,
                never_contract: resolved.contract == FpContract::Off,
                approximate_division: !resolved.precise_division,
                approximate_square_root: !resolved.precise_square_root,
                flush_denormals: resolved.flush_denormals,
            })?;
            let mut visible = libraries::visible_variables(&module);
            visible.extend(libraries::offered_functions(&module, others));
            let hidden = libraries::hidden(&module);
            control::prepare(&module, resolved);
            own = chip_features::functions(&module, resolved);
            linked_a_library = libraries::link(&module, job, others)?;
            if resolved.optimization.number() > 0 {
                module.evaluate_calls()?;
            }
            control::finish(&module, resolved)?;
            chip_features::settle(&module, &machine, resolved, &own)?;
            module.internalize(&visible)?;
            // Linked with objects, everything may be theirs.
            let alone = !others.opaque && others.defined.is_empty() && others.needed.is_empty();
            if alone && !defines_anything(&module) {
                return Err(Refusal::nothing_visible(&hidden).into());
            }
            shared_alignment::align(&module, job.decide)?;
            validate::no_large_values(&module)?;
            validate::symbol_names(&module, resolved.target.vendor())?;
            contracts::check_launch_bounds(&module, &resolved.target)?;
            job.show(context, module, Checkpoint::Linked)
        })
        .map_err(at(Stage::Link))?;

    if resolved.input_optimized {
        (job.decide)(with_optimized_input(linked_a_library));
    }
    let optimizing = Resolved {
        input_optimized: resolved.input_optimized && !linked_a_library,
        ..resolved.clone()
    };
    let resolved = &optimizing;
    let job = &DeviceJob { resolved, ..*job };
    clock.check().map_err(interrupted(Stage::Optimize))?;
    let split = clock
        .time(Stage::Optimize, || match validate::has_constructors(&module) {
            true => Ok(None),
            false => Split::prepare(&module, resolved, others),
        })
        .map_err(|error| (Stage::Optimize, error.into()))?;
    if let Some(own) = job.own
        && !split.as_ref().is_some_and(|split| split.is_of(own))
    {
        let message = "the kernels call functions of a library that are not inlined";
        return Err((Stage::Link, Refusal::new(ErrorKind::Link, message).into()));
    }
    if let Some(split) = &split
        && output == Split::output(resolved)
        && job.wanting(Checkpoint::Optimized).next().is_none()
        && (output == DeviceOutput::Assembly || job.wanting(Checkpoint::Isa).next().is_none())
        && let Some(code) = split.compile(context, &module, job, &own, clock)?
    {
        return match output {
            DeviceOutput::Assembly => job.show_isa(code).map_err(at(Stage::CodeGen)),
            _ => Ok(code),
        };
    }
    let module = clock
        .time(Stage::Optimize, || -> Result<_, DeviceError> {
            for left_out in module.run_passes(&machine, &pipeline(resolved))? {
                (job.decide)(without_pass(left_out));
            }
            validate::no_constructors(&module, &resolved.target)?;
            contracts::check_kernel_sizes(&module, resolved)?;
            chip_features::check(&module, &machine, resolved, &own)?;
            if let Some(split) = &split {
                split.finish(&module);
            }
            if resolved.target.vendor() == Vendor::Amd {
                reserve::reserve(context, &module, others.registers)?;
            }
            job.show(context, module, Checkpoint::Optimized)
        })
        .map_err(at(Stage::Optimize))?;

    clock.check().map_err(interrupted(Stage::CodeGen))?;
    clock
        .time(Stage::CodeGen, || -> Result<_, DeviceError> {
            match output {
                DeviceOutput::Llvm => Ok(module.to_text()?.into_bytes()),
                DeviceOutput::Bitcode => Ok(module.to_bitcode()?),
                DeviceOutput::Assembly => {
                    if resolved.target.vendor() == Vendor::Amd {
                        // LLVM's text leaves out what cannot be encoded: an object has to come out of it, too.
                        let copy = context.parse(&module.to_bitcode()?, job.name)?;
                        copy.emit(&machine, EmitKind::Object)?;
                    }
                    job.show_isa(assembly(&module, &machine, resolved)?)
                }
                DeviceOutput::Object => {
                    if job.wanting(Checkpoint::Isa).next().is_some() {
                        // Code generation uses the module up: the listener's assembly comes from a copy.
                        let copy = context.parse(&module.to_bitcode()?, job.name)?;
                        let text = assembly(&copy, &machine, resolved)?;
                        let shown = job.show_isa(text.clone())?;
                        if shown != text {
                            return assemble(job, &shown);
                        }
                    }
                    Ok(module.emit(&machine, EmitKind::Object)?)
                }
            }
        })
        .map_err(at(Stage::CodeGen))
}

/// Whether one of a module's functions is a kernel.
pub(crate) fn has_kernel(module: &DeviceModule<'_>) -> bool {
    // Calling conventions of LLVM (`llvm/include/llvm/IR/CallingConv.h`): PTX_Kernel 71, AMDGPU_KERNEL 91.
    module
        .inkwell()
        .get_functions()
        .any(|function| matches!(function.get_call_conventions(), 71 | 91))
}

/// Whether there is anything in a module to generate code or data of.
pub(crate) fn defines_anything(module: &DeviceModule<'_>) -> bool {
    let module = module.inkwell();
    module.get_functions().any(|function| function.count_basic_blocks() > 0)
        || module.get_globals().any(|global| !global.is_declaration())
}

/// An object from assembly that a listener replaced.
fn assemble(job: &DeviceJob<'_>, text: &[u8]) -> Result<Vec<u8>, DeviceError> {
    let resolved = job.resolved;
    let object = assemble::assemble(
        resolved.target.triple(),
        &llvm_chip(&resolved.target),
        &resolved.llvm_features(),
        &format!("{}.s", job.name),
        &String::from_utf8_lossy(text),
    )?;
    Ok(object)
}

/// Assembly text as it is to be assembled. Code generation changes the module: it is of no further use.
fn assembly(module: &DeviceModule<'_>, machine: &TargetMachine, resolved: &Resolved) -> Result<Vec<u8>, DeviceError> {
    let text = module.emit(machine, EmitKind::Assembly)?;
    if resolved.target.vendor() == Vendor::Amd {
        return Ok(text);
    }
    Ok(match String::from_utf8(text) {
        Ok(text) => for_ptxas::rewritten(text).into_bytes(),
        Err(error) => error.into_bytes(),
    })
}

/// The data layout of the target's modules, in LLVM's syntax.
pub(crate) fn data_layout(resolved: &Resolved) -> Result<String, DeviceError> {
    Ok(machine_with(resolved, false)?.data_layout())
}

/// The code generator for a module: pointers have the size that the module was made for.
fn machine(resolved: &Resolved, module: &DeviceModule<'_>) -> Result<TargetMachine, LlvmError> {
    let layout = module.data_layout();
    let short = resolved.target.vendor() == Vendor::Nvidia && layout.split('-').any(|part| part == "p3:32:32");
    machine_with(resolved, short)
}

fn machine_with(resolved: &Resolved, short_pointers: bool) -> Result<TargetMachine, LlvmError> {
    TargetMachine::with_pointers(
        resolved.target.triple(),
        // A virtual architecture such as compute_90 is LLVM's sm_90 whose PTX is not compiled further.
        &llvm_chip(&resolved.target),
        &resolved.llvm_features(),
        code_generation_level(resolved),
        resolved.contract == FpContract::Fast,
        short_pointers,
    )
}

/// With little time, PTX is written as it comes: the PTX compiler finds what LLVM's selection would have.
///
/// For PTX the third level is the second with another search for common subexpressions (`addEarlyCSEOrGVNPass` in LLVM's
/// NVPTXTargetMachine.cpp), which takes a tenth of the time and leaves nothing that the PTX compiler does not find.
fn code_generation_level(resolved: &Resolved) -> u8 {
    let level = resolved.optimization.number();
    match resolved.target.vendor() {
        Vendor::Nvidia if resolved.fast_compile => 0,
        Vendor::Nvidia => level.min(2),
        Vendor::Amd => level,
    }
}

/// The name LLVM has for the chip.
fn llvm_chip(target: &Target) -> String {
    target.chip().replace("compute_", "sm_")
}

/// `allButSimplePasses` of `pass_limits.cpp`.
const ALL_BUT_SIMPLE_PASSES: &str = "passes but the simplest";

/// What a user is told of a pass that a function does without.
fn without_pass((pass, function): (String, String)) -> Decision {
    Decision {
        stage: Stage::Optimize,
        choice: format!("LLVM's {pass} for {function}"),
        outcome: if pass == ALL_BUT_SIMPLE_PASSES {
            "left out: their time grows with the square of how many loops are inside of each other, and here are more than 64"
        } else {
            "left out: its time grows with the square of the instructions in a block, and here are more than 4000"
        }
        .to_owned(),
    }
}

/// What a user is told of LLVM's passes where the input is said to be optimised.
fn with_optimized_input(linked_a_library: bool) -> Decision {
    Decision {
        stage: Stage::Optimize,
        choice: "LLVM's passes for input that is optimised".to_owned(),
        outcome: if linked_a_library {
            "run: a library was linked into it, which is not"
        } else {
            "left out"
        }
        .to_owned(),
    }
}

impl DeviceJob<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject {
            module: self.name,
            target: &self.resolved.target,
        }
    }

    /// The listeners that want to be called at a checkpoint.
    fn wanting(&self, checkpoint: Checkpoint) -> impl Iterator<Item = &dyn StageListener> {
        let listeners = self.listeners.iter().map(|listener| &**listener);
        listeners.filter(move |listener| listener.checkpoints().contains(&checkpoint))
    }

    /// Shows a module to the listeners, and takes their replacement.
    fn show<'c>(
        &self,
        context: &'c DeviceContext,
        mut module: DeviceModule<'c>,
        checkpoint: Checkpoint,
    ) -> Result<DeviceModule<'c>, DeviceError> {
        for listener in self.wanting(checkpoint) {
            let replacement = listener
                .llvm(self.subject(), checkpoint, module.inkwell())
                .map_err(|reason| refused(checkpoint, reason))?;
            if let Some(bytes) = replacement {
                module = context
                    .parse(&bytes, self.name)
                    .map_err(|error| refused(checkpoint, error.to_string()))?;
            }
        }
        Ok(module)
    }

    fn show_isa(&self, bytes: Vec<u8>) -> Result<Vec<u8>, DeviceError> {
        if self.wanting(Checkpoint::Isa).next().is_none() {
            return Ok(bytes);
        }
        let mut text = String::from_utf8(bytes)
            .map_err(|error| LlvmError::Refused(format!("LLVM emitted assembly that is not UTF-8: {error}")))?;
        for listener in self.wanting(Checkpoint::Isa) {
            if let Some(replacement) = listener
                .isa(self.subject(), &text)
                .map_err(|reason| refused(Checkpoint::Isa, reason))?
            {
                text = replacement;
            }
        }
        Ok(text.into_bytes())
    }
}

fn refused(checkpoint: Checkpoint, reason: String) -> DeviceError {
    DeviceError::Listener {
        checkpoint: checkpoint.name(),
        reason,
    }
}
