//! Large modules, compiled in parts at the same time. The text is the one that the module as a whole gives.
//!
//! A module is divided by its contents alone ([`super::components`]). Each part is optimised and emitted in an LLVM context
//! of its own, and the texts are put together ([`super::join_ptx`]). Where anything is unexpected or fails, the caller
//! compiles the whole, and so fails as it would have without parts.

use std::{
    collections::{BTreeSet, HashSet},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    DeviceError, DeviceJob, StageClock, StageResult, assembly, components,
    contracts::check_kernel_sizes,
    join_ptx::{Order, join_ptx},
    machine, pipeline, without_pass,
};
use crate::{
    bridge::{
        LlvmError,
        llvm::{DeviceContext, DeviceModule, LlvmDiagnostic},
        split::{Global, Shared},
        watch::watched,
    },
    image::symbols::LinkInterface,
    interrupt::{Interrupt, InterruptError},
    options::{DebugLevel, Resolved},
    report::Decision,
    stage::Stage,
    target::Vendor,
};

/// Carries out pieces of one job: calls the function once with each number below the first argument, from any threads, and
/// returns when all calls have.
pub type ForEach<'a> = dyn Fn(usize, &(dyn Fn(usize) + Sync)) + 'a;

/// Keeps the PTX of parts by their content: bitcode, and the passes that it gets.
#[derive(Clone, Copy)]
pub struct KeptParts<'a> {
    /// The PTX of a part that was compiled before.
    pub get: &'a (dyn Fn(&[u8]) -> Option<String> + Sync),
    /// Keeps that of another one.
    pub put: &'a (dyn Fn(&[u8], &str) + Sync),
}

#[cfg(test)]
/// One piece after the other, on this thread.
pub fn in_turn(pieces: usize, piece: &(dyn Fn(usize) + Sync)) {
    (0..pieces).for_each(piece);
}

/// A module whose kernels are to be compiled as if each was alone. Until [`Split::finish`] passes draw no conclusions from who
/// uses what several of them have: the code of a kernel is the same in a part, in the whole module, and in another module.
pub(crate) struct Split {
    parts: Option<(Vec<Vec<bool>>, Order)>,
    shared: Shared,
    /// The functions that are not inlined wherever they are called.
    functions: Vec<String>,
}

impl Split {
    /// Prepares a module that is linked and not optimised. `None` where what it consists of is not known to be independent.
    pub(crate) fn prepare(
        module: &DeviceModule<'_>,
        resolved: &Resolved,
        others: &LinkInterface,
    ) -> Result<Option<Self>, LlvmError> {
        let fits = resolved.optimization.number() > 0
            && resolved.debug == DebugLevel::None
            && *others == LinkInterface::default();
        if !fits {
            return Ok(None);
        }
        let globals = match module.globals() {
            Ok(globals) => globals,
            Err(LlvmError::Refused(reason)) => {
                tracing::debug!(reason, "the module is compiled as a whole");
                return Ok(None);
            }
            Err(fatal) => return Err(fatal),
        };
        let Some(division) = components::divide(&globals, module.count_instructions()) else {
            tracing::debug!("the module cannot be divided: it is compiled as a whole");
            return Ok(None);
        };
        let names = division.shared.iter().filter_map(|&index| globals.get(index));
        let shared = module.share(names.map(|global| global.name.clone()).collect());
        let own = |global: &&Global| global.is_function && global.is_definition && !global.is_shareable;
        Ok(Some(Self {
            // Parts of a module are joined as texts.
            parts: division
                .parts
                .filter(|_| resolved.target.vendor() == Vendor::Nvidia)
                .zip(Order::new(&globals).ok()),
            shared,
            functions: globals.iter().filter(own).map(|global| global.name.clone()).collect(),
        }))
    }

    #[cfg(test)]
    /// Whether it is compiled in parts.
    pub(crate) const fn has_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// Whether there is nothing but the functions of these names, and what is inlined in them.
    pub(super) fn is_of(&self, functions: &HashSet<String>) -> bool {
        self.functions.iter().all(|name| functions.contains(name))
    }

    /// Ends what [`Split::prepare`] began, in the whole module or a part of it.
    pub(super) fn finish(&self, module: &DeviceModule<'_>) {
        module.unshare(&self.shared);
    }

    /// The PTX of all parts. `None` where the module has to be compiled as a whole.
    pub(crate) fn compile(
        &self,
        context: &DeviceContext,
        module: &DeviceModule<'_>,
        job: &DeviceJob<'_>,
        clock: &mut StageClock,
    ) -> StageResult<Option<Vec<u8>>> {
        let Some((parts, order)) = &self.parts else {
            return Ok(None);
        };
        let start = Instant::now();
        let bitcode = module
            .to_exact_bitcode()
            .map_err(|error| (Stage::Optimize, error.into()))?;
        let compiled = {
            let (interrupt, observer) = (clock.interrupt(), clock.observer.as_ref());
            let begin = |stage: Stage| {
                if let Some(observer) = observer {
                    observer(stage);
                }
                interrupt.check().map_err(|error| Failure::Interrupted(stage, error))
            };
            self.compile_parts(parts, order, &bitcode, job, interrupt, &begin)
        };
        let texts = match compiled {
            Ok(mut compiled) => {
                for stage in 0..2 {
                    for part in &mut compiled {
                        context.add_diagnostics(std::mem::take(&mut part.diagnostics[stage]));
                    }
                }
                account(clock, start.elapsed(), &compiled);
                for left_out in compiled.iter_mut().flat_map(|part| std::mem::take(&mut part.left_out)) {
                    (job.decide)(without_pass(left_out));
                }
                let known = compiled.iter().filter(|part| part.is_known).count();
                if known > 0 {
                    (job.decide)(Decision::known("PTX", known, compiled.len(), "parts"));
                }
                tracing::debug!(parts = compiled.len(), known, "the module was compiled in parts");
                compiled.into_iter().map(|part| part.text).collect::<Vec<_>>()
            }
            Err(Failure::Interrupted(stage, error)) => return Err((stage, error.into())),
            Err(Failure::Other(reason)) => {
                clock.add(Stage::Optimize, start.elapsed());
                tracing::debug!(%reason, "a part failed: the module is compiled as a whole");
                return Ok(None);
            }
        };
        let joined = clock.time(Stage::CodeGen, || join_ptx(&texts, order));
        Ok(joined
            .inspect_err(|reason| tracing::debug!(%reason, "the module is compiled as a whole"))
            .ok()
            .map(String::into_bytes))
    }

    fn compile_parts(
        &self,
        parts: &[Vec<bool>],
        order: &Order,
        bitcode: &[u8],
        job: &DeviceJob<'_>,
        interrupt: &Interrupt,
        begin: &Begin<'_>,
    ) -> Result<Vec<Compiled>, Failure> {
        let slots: Vec<Mutex<Option<Result<Compiled, Failure>>>> = parts.iter().map(|_| Mutex::new(None)).collect();
        let failed = AtomicBool::new(false);
        let kept_parts = job.kept_parts;
        let work = (job.name, job.resolved, kept_parts);
        (job.for_each)(slots.len(), &|index| {
            let (Some(kept), Some(slot)) = (parts.get(index), slots.get(index)) else {
                return;
            };
            if failed.load(Ordering::Relaxed) {
                return;
            }
            let (mut result, ended) = watched(&|| interrupt.check().is_err(), || {
                self.compile_part(bitcode, kept, order, work, begin)
            });
            match (ended, interrupt.check()) {
                // It looks like a success, but passes were left out.
                (Some(_), Err(error)) => result = Err(Failure::Interrupted(Stage::CodeGen, error)),
                (None, _) => {
                    if let Ok(compiled) = &result {
                        compiled.keep(kept_parts);
                    }
                }
                (Some(_), Ok(())) => {}
            }
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        });
        let mut results = Vec::new();
        let mut failure = None;
        for slot in slots {
            match slot.into_inner().unwrap_or_else(PoisonError::into_inner) {
                Some(Ok(compiled)) => results.push(compiled),
                Some(Err(interrupted @ Failure::Interrupted(..))) => return Err(interrupted),
                Some(Err(other)) => failure = Some(other),
                None => {}
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None if results.len() < parts.len() => Err(Failure::Other("a part was left out".to_owned())),
            None => Ok(results),
        }
    }

    fn compile_part(
        &self,
        bitcode: &[u8],
        kept: &[bool],
        order: &Order,
        (name, resolved, kept_parts): (&str, &Resolved, Option<KeptParts<'_>>),
        begin: &Begin<'_>,
    ) -> Result<Compiled, Failure> {
        let _span = tracing::debug_span!("part", name).entered();
        begin(Stage::Optimize)?;
        let start = Instant::now();
        let context = DeviceContext::new();
        let module = context.take_part(bitcode, name, kept).map_err(DeviceError::from)?;
        let passes = pipeline(resolved);
        let mut content = Vec::new();
        if let Some(parts) = kept_parts {
            content = module.to_exact_bitcode().map_err(DeviceError::from)?;
            content.extend_from_slice(passes.as_bytes());
            if let Some(text) = (parts.get)(&content) {
                return Ok(Compiled {
                    text,
                    times: [start.elapsed(), Duration::ZERO],
                    is_known: true,
                    ..Compiled::default()
                });
            }
        }
        let machine = machine(resolved, &module).map_err(|error| Failure::from(DeviceError::from(error)))?;
        let left_out = module.run_passes(&machine, &passes).map_err(DeviceError::from)?;
        check_kernel_sizes(&module, resolved)?;
        self.finish(&module);
        for variable in module.inkwell().get_globals() {
            // Sooner than when the texts are put together: other parts need not begin.
            order.of(&variable.get_name().to_string_lossy())?;
        }
        let optimized = context.take_diagnostics();
        let optimize = start.elapsed();
        begin(Stage::CodeGen)?;
        let text = assembly(&module, &machine, resolved)?;
        Ok(Compiled {
            text: String::from_utf8(text).map_err(|error| Failure::Other(error.to_string()))?,
            diagnostics: [optimized, context.take_diagnostics()],
            times: [optimize, start.elapsed() - optimize],
            left_out,
            content,
            is_known: false,
        })
    }
}

/// Tells that a stage begins in a part, or that it is not to begin.
type Begin<'a> = dyn Fn(Stage) -> Result<(), Failure> + Sync + 'a;

/// What came of a part: optimisation, and then code generation.
#[derive(Default)]
struct Compiled {
    text: String,
    diagnostics: [Vec<LlvmDiagnostic>; 2],
    times: [Duration; 2],
    left_out: BTreeSet<(String, String)>,
    /// What it is kept by.
    content: Vec<u8>,
    /// Whether it was compiled before.
    is_known: bool,
}

impl Compiled {
    /// Keeps it, unless it is known, or there is something to report, which is not kept with it.
    fn keep(&self, parts: Option<KeptParts<'_>>) {
        let has_nothing_to_report = self.left_out.is_empty() && self.diagnostics.iter().all(Vec::is_empty);
        if let Some(parts) = parts.filter(|_| has_nothing_to_report && !self.is_known) {
            (parts.put)(&self.content, &self.text);
        }
    }
}

enum Failure {
    Interrupted(Stage, InterruptError),
    Other(String),
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Self::Other(error.to_string())
    }
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Self::Other(reason)
    }
}

/// Divides the time that passed among the two stages as the parts did.
fn account(clock: &mut StageClock, passed: Duration, compiled: &[Compiled]) {
    let [optimize, code_gen] = [0, 1].map(|stage| compiled.iter().map(|part| part.times[stage]).sum::<Duration>());
    let all = (optimize + code_gen).as_secs_f64();
    let optimize = passed.mul_f64(if all > 0.0 { optimize.as_secs_f64() / all } else { 1.0 });
    clock.add(Stage::Optimize, optimize);
    clock.add(Stage::CodeGen, passed.saturating_sub(optimize));
}
