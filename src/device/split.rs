//! Large modules, compiled in parts at the same time. The code is what the module as a whole gives.
//!
//! A module is divided by its contents alone ([`super::components`]). Each part is optimised and emitted in an LLVM context
//! of its own, and what comes out is put together: PTX by [`super::join_ptx`], AMDGPU objects by [`join_object`]. Where anything is unexpected or fails, the caller
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
    DeviceError, DeviceJob, DeviceOutput, StageClock, StageResult, assembly, chip_features, components,
    contracts::check_kernel_sizes,
    join_ptx::{Order, join_ptx},
    machine, pipeline, without_pass,
};
use crate::{
    bridge::{
        LlvmError,
        llvm::{DeviceContext, DeviceModule, EmitKind, LlvmDiagnostic},
        split::{Global, Shared},
        watch::watched,
    },
    image::{join_object, symbols::LinkInterface},
    interrupt::{Interrupt, InterruptError},
    options::{DebugLevel, Resolved},
    report::Decision,
    stage::Stage,
    target::Vendor,
};

/// Carries out pieces of one job: calls the function once with each number below the first argument, from any threads, and
/// returns when all calls have.
pub type ForEach<'a> = dyn Fn(usize, &(dyn Fn(usize) + Sync)) + 'a;

/// Keeps the code of parts, PTX or an object, by their content: bitcode, and the passes that it gets.
#[derive(Clone, Copy)]
pub struct KeptParts<'a> {
    /// The code of a part that was compiled before.
    pub get: &'a (dyn Fn(&[u8]) -> Option<Vec<u8>> + Sync),
    /// Keeps that of another one.
    pub put: &'a (dyn Fn(&[u8], &[u8]) + Sync),
}

/// How the code of parts becomes that of the whole.
enum Joining {
    /// As PTX.
    Ptx(Order),
    /// As objects, whose functions are in the order of the parts.
    Objects,
}

impl Joining {
    /// `None` where parts cannot be joined.
    fn of(parts: &[Vec<bool>], globals: &[Global], vendor: Vendor) -> Option<Self> {
        if vendor == Vendor::Nvidia {
            return Order::new(globals).ok().map(Self::Ptx);
        }
        let is_own = |global: &Global| global.is_function && global.is_definition && !global.is_shareable;
        let owned = |part: &Vec<bool>| {
            let kept = part.iter().zip(globals).enumerate();
            let own = kept.filter(|(_, (kept, global))| **kept && is_own(global));
            own.map(|(place, _)| place).collect::<Vec<_>>()
        };
        parts.iter().flat_map(owned).is_sorted().then_some(Self::Objects)
    }

    fn join(&self, parts: Vec<Vec<u8>>) -> Result<Vec<u8>, String> {
        match self {
            Self::Ptx(order) => {
                let texts: Result<Vec<String>, _> = parts.into_iter().map(String::from_utf8).collect();
                let texts = texts.map_err(|error| error.to_string())?;
                join_ptx(&texts, order).map(String::into_bytes)
            }
            Self::Objects => {
                let parts: Vec<_> = parts.iter().map(|part| (part.as_slice(), &[] as &[_])).collect();
                join_object::join(&parts).map_err(|error| error.to_string())
            }
        }
    }
}

#[cfg(test)]
/// One piece after the other, on this thread.
pub fn in_turn(pieces: usize, piece: &(dyn Fn(usize) + Sync)) {
    (0..pieces).for_each(piece);
}

/// A module whose kernels are to be compiled as if each was alone. Until [`Split::finish`] passes draw no conclusions from who
/// uses what several of them have: the code of a kernel is the same in a part, in the whole module, and in another module.
pub(crate) struct Split {
    parts: Option<(Vec<Vec<bool>>, Joining)>,
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
        let vendor = resolved.target.vendor();
        let shared = module.share(names.map(|global| global.name.clone()).collect());
        let own = |global: &&Global| global.is_function && global.is_definition && !global.is_shareable;
        Ok(Some(Self {
            parts: division.parts.and_then(|parts| {
                let joining = Joining::of(&parts, &globals, vendor)?;
                Some((parts, joining))
            }),
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

    /// What parts are compiled to.
    pub(super) const fn output(resolved: &Resolved) -> DeviceOutput {
        match resolved.target.vendor() {
            Vendor::Nvidia => DeviceOutput::Assembly,
            Vendor::Amd => DeviceOutput::Object,
        }
    }

    /// The code of all parts, joined. `own` are the functions that come from no library. `None` where the module has to be
    /// compiled as a whole.
    pub(crate) fn compile(
        &self,
        context: &DeviceContext,
        module: &DeviceModule<'_>,
        job: &DeviceJob<'_>,
        own: &HashSet<Vec<u8>>,
        clock: &mut StageClock,
    ) -> StageResult<Option<Vec<u8>>> {
        let Some((parts, joining)) = &self.parts else {
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
            let work = PartWork {
                split: self,
                name: job.name,
                resolved: job.resolved,
                kept_parts: job.kept_parts,
                own,
                joining,
                bitcode: &bitcode,
                begin: &begin,
            };
            work.compile_all(parts, job.for_each, interrupt)
        };
        let mut compiled = match compiled {
            Ok(compiled) => compiled,
            Err(Failure::Interrupted(stage, error)) => return Err((stage, error.into())),
            Err(Failure::Other(reason)) => {
                clock.add(Stage::Optimize, start.elapsed());
                tracing::debug!(%reason, "a part failed: the module is compiled as a whole");
                return Ok(None);
            }
        };
        account(clock, start.elapsed(), &compiled);
        let code = compiled.iter_mut().map(|part| std::mem::take(&mut part.code)).collect();
        let code = match clock.time(Stage::CodeGen, || joining.join(code)) {
            Ok(code) => code,
            Err(reason) => {
                tracing::debug!(%reason, "the module is compiled as a whole");
                return Ok(None);
            }
        };
        for stage in 0..2 {
            for part in &mut compiled {
                context.add_diagnostics(std::mem::take(&mut part.diagnostics[stage]));
            }
        }
        for left_out in compiled.iter_mut().flat_map(|part| std::mem::take(&mut part.left_out)) {
            (job.decide)(without_pass(left_out));
        }
        let known = compiled.iter().filter(|part| part.is_known).count();
        if known > 0 {
            let what = match joining {
                Joining::Ptx(_) => "PTX",
                Joining::Objects => "object",
            };
            (job.decide)(Decision::known(what, known, compiled.len(), "parts"));
        }
        tracing::debug!(parts = compiled.len(), known, "the module was compiled in parts");
        Ok(Some(code))
    }
}

/// What parts are compiled with, on any thread.
struct PartWork<'a> {
    split: &'a Split,
    name: &'a str,
    resolved: &'a Resolved,
    kept_parts: Option<KeptParts<'a>>,
    own: &'a HashSet<Vec<u8>>,
    joining: &'a Joining,
    bitcode: &'a [u8],
    begin: &'a Begin<'a>,
}

impl PartWork<'_> {
    fn compile_all(
        &self,
        parts: &[Vec<bool>],
        for_each: &ForEach<'_>,
        interrupt: &Interrupt,
    ) -> Result<Vec<Compiled>, Failure> {
        let slots: Vec<Mutex<Option<Result<Compiled, Failure>>>> = parts.iter().map(|_| Mutex::new(None)).collect();
        let failed = AtomicBool::new(false);
        for_each(slots.len(), &|index| {
            let (Some(kept), Some(slot)) = (parts.get(index), slots.get(index)) else {
                return;
            };
            if failed.load(Ordering::Relaxed) {
                return;
            }
            let (mut result, ended) = watched(&|| interrupt.check().is_err(), || self.compile(kept));
            match (ended, interrupt.check()) {
                // It looks like a success, but passes were left out.
                (Some(_), Err(error)) => result = Err(Failure::Interrupted(Stage::CodeGen, error)),
                (None, _) => {
                    if let Ok(compiled) = &result {
                        compiled.keep(self.kept_parts);
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

    fn compile(&self, kept: &[bool]) -> Result<Compiled, Failure> {
        let (name, resolved) = (self.name, self.resolved);
        let _span = tracing::debug_span!("part", name).entered();
        (self.begin)(Stage::Optimize)?;
        let start = Instant::now();
        let context = DeviceContext::new();
        let module = context.take_part(self.bitcode, name, kept).map_err(DeviceError::from)?;
        let passes = pipeline(resolved);
        let mut content = Vec::new();
        if let Some(parts) = self.kept_parts {
            content = module.to_exact_bitcode().map_err(DeviceError::from)?;
            content.extend_from_slice(passes.as_bytes());
            if let Some(code) = (parts.get)(&content) {
                return Ok(Compiled {
                    code,
                    times: [start.elapsed(), Duration::ZERO],
                    is_known: true,
                    ..Compiled::default()
                });
            }
        }
        let machine = machine(resolved, &module).map_err(|error| Failure::from(DeviceError::from(error)))?;
        let left_out = module.run_passes(&machine, &passes).map_err(DeviceError::from)?;
        check_kernel_sizes(&module, resolved)?;
        chip_features::check(&module, &machine, resolved, self.own)?;
        self.split.finish(&module);
        if let Joining::Ptx(order) = self.joining {
            for variable in module.inkwell().get_globals() {
                // Sooner than when the texts are put together: other parts need not begin.
                order.of(&variable.get_name().to_string_lossy())?;
            }
        }
        let optimized = context.take_diagnostics();
        let optimize = start.elapsed();
        (self.begin)(Stage::CodeGen)?;
        let code = match self.joining {
            Joining::Ptx(_) => assembly(&module, &machine, resolved)?,
            Joining::Objects => module.emit(&machine, EmitKind::Object).map_err(DeviceError::from)?,
        };
        if let Joining::Objects = self.joining {
            // Sooner, as above: functions that are no kernels, and variables that code refers to, are not joined.
            join_object::join(&[(&code, &[])]).map_err(|error| error.to_string())?;
        }
        Ok(Compiled {
            code,
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
    code: Vec<u8>,
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
            (parts.put)(&self.content, &self.code);
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
