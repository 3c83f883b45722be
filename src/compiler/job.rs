//! One module for one target, from the form it came in to the bytes asked for.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashSet},
    sync::Arc,
    time::Duration,
};

use melior::{
    Context,
    ir::{
        BlockLike, Module,
        attribute::{ArrayAttribute, StringAttribute},
        operation::{OperationLike, OperationPrintingFlags},
    },
};

use super::{
    Compiler,
    apart::{Apart, GroupWork},
    attribute, best,
    kernels::PtxCode,
    load_libraries,
    module_text::ModuleText,
    parse,
    plan::{self, Step},
    pool::Helpers,
    request::{Divided, Outcome, Part, Request, Source},
    symbol_name, worker,
};
use crate::{
    bridge::{
        LlvmError,
        edit::OwnedModule,
        llvm::{DeviceContext, DeviceModule},
        mlir::{MlirDiagnostic, capture_diagnostics, context_of, operations, set_attribute, shown},
        places,
        watch::{Ended, watched},
    },
    device::{
        self, DeviceError, DeviceJob, DeviceOutput, JoinInput, KeptParts, LoadedLibrary, StageClock, lower, symbols,
    },
    error::{Cause, Error, Location},
    image::symbols::LinkInterface,
    interrupt::{Interrupt, InterruptError},
    options::{Isolation, Options, Resolved, ResolvedVendor, Speed},
    report::{Decision, Image, KernelSignature, Warning},
    serialize::{
        device_link::{self, DeviceLinkError, LinkInput},
        nvidia::{PtxCompiler, SerializeError},
    },
    stage::{Checkpoint, Stage, StageListener, StageTime, Subject},
    target::{CudaRelease, PtxIsa, Target, Vendor},
};

/// Carries out one request, with the help of `helpers`, as long as there is a reason to: here, or in a worker process.
pub(super) fn run(compiler: &Compiler, request: Request<'_>, helpers: Helpers<'_>) -> Result<Outcome, Error> {
    if request.options.speed == Speed::Best {
        return best::run(compiler, request, helpers);
    }
    let place = request.place();
    let result = match compiler.options.isolation {
        Isolation::Worker => worker::run(compiler, &request, helpers),
        Isolation::InProcess => {
            let (name, target) = (request.name.clone(), request.target);
            let _span = tracing::debug_span!("job", module = name, %target).entered();
            let result = Job::new(compiler, request, helpers).and_then(|job| {
                let interrupt = job.clock.interrupt().clone();
                let (result, ended) = watched(&|| interrupt.check().is_err(), || job.run_steps());
                match (ended, interrupt.check()) {
                    (Some(ended), Err(reason)) => Err(interrupted(result, reason, &ended)),
                    _ => result,
                }
            });
            result.map_err(|error| error.in_module(&name).for_target(&target))
        }
    };
    result.map_err(|mut error| {
        // Options that do not fit are not in the source.
        let has_none = error.location.as_ref().is_none_or(Location::is_unknown);
        if error.stage != Stage::Plan && has_none && place.is_some() {
            error.location = place;
        }
        error
    })
}

/// The error of a job in which passes were left out: they look like success, or fail for want of what others would have done.
fn interrupted(result: Result<Outcome, Error>, reason: InterruptError, ended: &Ended) -> Error {
    /// What takes longer is named.
    const SOON: Duration = Duration::from_secs(1);
    let mut error = Error::new(result.err().map_or(Stage::CodeGen, |error| error.stage), reason);
    if ended.time > SOON && !ended.step.is_empty() {
        let (step, time) = (&ended.step, ended.time.as_secs_f64());
        error.message += &format!("; {step} cannot be interrupted, and took {time:.1} s");
    }
    error
}

pub(super) struct Job<'a, 'c> {
    pub(super) compiler: &'a Compiler,
    pub(super) helpers: Helpers<'a>,
    pub(super) name: String,
    pub(super) parts: Vec<Part<OwnedModule<'c>>>,
    /// The kernels of the first part.
    pub(super) divided: Divided,
    /// The text that the first part was read from, if it was divided.
    pub(super) text: Option<Arc<ModuleText>>,
    steps: Vec<Step>,
    pub(super) options: Options,
    pub(super) target: Target,
    pub(super) objects: Vec<LoadedLibrary>,
    /// What the objects define and need.
    interface: LinkInterface,
    pub(super) resolved: Resolved,
    pub(super) libraries: Vec<LoadedLibrary>,
    newest_tool_ptx: Option<PtxIsa>,
    pub(super) clock: StageClock,
    pub(super) decisions: Vec<Decision>,
    warnings: Vec<Warning>,
    /// The functions of its kernels, where these are to be compiled as if each was alone.
    pub(super) own: Option<HashSet<String>>,
}

impl<'a, 'c> Job<'a, 'c> {
    fn new(compiler: &'a Compiler, request: Request<'c>, helpers: Helpers<'a>) -> Result<Self, Error> {
        let interrupt = Interrupt::new(&compiler.cancellation, request.options.time_limit);
        let clock = StageClock::new(interrupt, compiler.observer_of(&request.name, &request.target));
        clock.check().map_err(|error| Error::new(Stage::Plan, error))?;
        let steps = plan::steps(&request).map_err(|error| Error::new(Stage::Plan, error))?;
        let Request {
            name,
            module: _,
            parts,
            target,
            products,
            options,
            include_ptx: _,
            notes,
            position: _,
        } = request;
        let newest_tool_ptx = products
            .iter()
            .any(|product| product.needs_ptx_compiler())
            .then(|| newest_tool_ptx(compiler, options.ptx_compiler))
            .flatten();
        let resolved = options
            .resolve(&target, newest_tool_ptx)
            .map_err(|error| Error::new(Stage::Plan, error))?;
        let of_speed = resolved.meaning_of_speed(&options).map(|meaning| Decision {
            stage: Stage::Plan,
            choice: "speed=fast".to_owned(),
            outcome: meaning,
        });
        let objects = match &options.device_link {
            Some(link) => load_libraries(&link.objects, Stage::DeviceLink)?,
            None => Vec::new(),
        };
        // What a virtual architecture is compiled for in the end tells which images of the objects take part.
        let linked_for = products.first().map_or(target, |product| product.target);
        let interface = interface(&objects, &linked_for)?;
        let (divided, text) = match parts.first().map(|part| &part.source) {
            Some(Source::Mlir(module)) => module.divided(),
            _ => (Divided::default(), None),
        };
        let parts = parts
            .into_iter()
            .map(|Part { name, source }| {
                Ok(Part {
                    name,
                    source: source.take()?,
                })
            })
            .collect::<Result<_, LlvmError>>()
            .map_err(|error| Error::new(Stage::Lower, error))?;
        Ok(Self {
            libraries: load_libraries(&options.libraries, Stage::Link)?,
            compiler,
            helpers,
            name,
            parts,
            divided,
            text,
            steps,
            options,
            target,
            objects,
            interface,
            resolved,
            newest_tool_ptx,
            clock,
            decisions: notes.into_iter().map(Decision::of_plan).chain(of_speed).collect(),
            warnings: Vec::new(),
            own: None,
        })
    }

    /// For a module of kernels that others have, too: these are all of its functions.
    pub(super) fn of_kernels(work: &GroupWork<'a>, module: OwnedModule<'c>, own: HashSet<String>) -> Self {
        let part = Part {
            name: work.name.to_owned(),
            source: Source::Mlir(module),
        };
        Self {
            compiler: work.compiler,
            helpers: Helpers::None,
            name: work.name.to_owned(),
            parts: vec![part],
            divided: Divided::default(),
            text: None,
            steps: Vec::new(),
            options: work.options.clone(),
            target: work.target,
            objects: Vec::new(),
            interface: LinkInterface::default(),
            resolved: work.resolved.clone(),
            libraries: work.libraries.to_vec(),
            newest_tool_ptx: None,
            clock: StageClock::new(
                work.interrupt.clone(),
                work.compiler.observer_of(work.name, &work.target),
            ),
            decisions: Vec::new(),
            warnings: Vec::new(),
            own: Some(own),
        }
    }

    /// The code of kernels. An error where there is anything to report.
    pub(super) fn code_of_kernels(mut self, output: DeviceOutput) -> Result<CodeOfKernels, Option<Error>> {
        let interrupt = self.clock.interrupt().clone();
        let (code, ended) = watched(&|| interrupt.check().is_err(), || {
            self.lower()?;
            self.device_stage(output, false)
        });
        // Whoever compiles the whole finds out why.
        if ended.is_some() {
            return Err(None);
        }
        let code = code?;
        if !self.decisions.is_empty() || !self.warnings.is_empty() {
            return Err(None);
        }
        Ok(CodeOfKernels {
            code,
            signatures: self.signatures(),
            times: self.clock.into_times(),
        })
    }

    /// Carries out the steps of the plan: kernel by kernel, or for the whole, which tells what is wrong, too. What follows
    /// lowering is repeated with a newer PTX ISA where an instruction needs one.
    fn run_steps(mut self) -> Result<Outcome, Error> {
        let steps = std::mem::take(&mut self.steps);
        let (decisions, warnings) = (self.decisions.len(), self.warnings.len());
        if let Some(apart) = self.apart(&steps)
            && let Ok(images) = self.make_images(&steps, Some(&apart), Vec::new())
        {
            return Ok(self.outcome(images, apart.signatures()));
        }
        self.decisions.truncate(decisions);
        self.warnings.truncate(warnings);
        self.complete()?;
        if steps.contains(&Step::Lower) {
            self.lower()?;
        }
        let output = steps.iter().find_map(|step| match step {
            Step::Device(output) => Some(*output),
            _ => None,
        });
        loop {
            let interrupted = |error| Error::new(Stage::Translate, error);
            let code = match output {
                Some(output) => {
                    (self.clock.check().map_err(interrupted)).and_then(|()| self.device_stage(output, false))
                }
                None => Ok(Vec::new()),
            };
            let raised = match code.and_then(|code| self.make_images(&steps, None, code)) {
                Ok(images) => {
                    let signatures = self.signatures();
                    return Ok(self.outcome(images, signatures));
                }
                Err(error) => match output.and_then(|output| self.raised_ptx(&error, output)) {
                    Some(raised) => raised,
                    None => return Err(self.with_place(error, output)),
                },
            };
            self.set_ptx(raised);
        }
    }

    /// Reads what was left out of the text of the module, if something was.
    pub(super) fn complete(&mut self) -> Result<bool, Error> {
        let Some(text) = self.text.as_ref().filter(|text| text.is_partial()) else {
            return Ok(false);
        };
        for part in &mut self.parts {
            if let Source::Mlir(module) = &mut part.source {
                *module = text.parse(context_of(module.module().context()))?;
            }
        }
        self.text = None;
        self.divided = Divided::default();
        Ok(true)
    }

    /// The steps after the device stage. `apart` is what was generated kernel by kernel; else it is `code`.
    fn make_images(
        &mut self,
        steps: &[Step],
        apart: Option<&Apart>,
        mut code: Vec<u8>,
    ) -> Result<Vec<(Image, Vec<u8>)>, Error> {
        let mut images = Vec::new();
        for step in steps {
            if matches!(step, Step::Lower | Step::Device(_)) {
                continue;
            }
            self.clock
                .check()
                .map_err(|error| Error::new(step.first_stage(), error))?;
            match step {
                Step::Lower | Step::Device(_) => {}
                Step::Print => code = self.text().into_bytes(),
                Step::PtxToCubin(product) => {
                    let ptx = match apart {
                        Some(apart) => PtxCode::Apart(apart),
                        None => PtxCode::Text(ptx_text(&code)?),
                    };
                    images.push(self.cubin(product, ptx)?);
                }
                Step::LinkObject(product) => {
                    let object = apart.map(Apart::code).transpose()?;
                    images.push(self.hsaco(product, object.as_ref().unwrap_or(&code))?);
                }
                Step::DeviceLink(product) => images.push(self.device_link(product, &code)?),
                Step::Keep(product) => {
                    let code = match apart {
                        Some(apart) => apart.code()?,
                        None => code.clone(),
                    };
                    images.push(self.keep(product, code)?);
                }
            }
        }
        Ok(images)
    }

    /// The lowered modules, one after the other.
    fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match &part.source {
            Source::Mlir(module) => Some(module_text(module.module())),
            _ => None,
        });
        texts.collect()
    }

    /// Brings MLIR into the dialect of the target.
    fn lower(&mut self) -> Result<(), Error> {
        for part in &mut self.parts {
            let Source::Mlir(module) = &mut part.source else {
                continue;
            };
            self.clock.check().map_err(|error| Error::new(Stage::Lower, error))?;
            let lowered = lower_part(
                module,
                &part.name,
                &self.target,
                &self.options,
                &self.resolved,
                &self.compiler.listeners,
                &mut self.clock,
            );
            let warnings = lowered.map_err(|error| error.in_module(&part.name))?;
            self.warnings.extend(warnings.into_iter().map(|diagnostic| Warning {
                stage: Stage::Lower,
                module: Some(part.name.clone()),
                target: Some(self.target),
                location: Some(diagnostic.location),
                message: diagnostic.message,
            }));
        }
        Ok(())
    }

    /// Gives MLIR what debug info is made of; whether there is any MLIR.
    fn add_places(&mut self) -> bool {
        let mut any = false;
        for part in &mut self.parts {
            if let Source::Mlir(module) = &mut part.source {
                any |= lower::add_places(module.module_mut()).is_ok();
            }
        }
        any
    }

    /// Runs the device stage, in an LLVM context of its own; PTX input passes through. `has_places`: whether there is debug info
    /// that is not asked for.
    fn device_stage(&mut self, output: DeviceOutput, has_places: bool) -> Result<Vec<u8>, Error> {
        if let [
            Part {
                source: Source::Ptx(text),
                ..
            },
        ] = self.parts.as_slice()
        {
            return Ok(text.as_bytes().to_vec());
        }
        // Groups of kernels are kept by the kernel.
        let cache = self
            .compiler
            .cache()
            .filter(|cache| !cache.verifies() && self.own.is_none());
        let base = cache.and_then(|_| self.key_of_piece("part"));
        let context = DeviceContext::new();
        let clock = &mut self.clock;
        let mut modules = Vec::new();
        for part in &mut self.parts {
            let module = match &mut part.source {
                // Joined with others, PTX is an object.
                Source::Ptx(_) => continue,
                Source::Llvm(bytes) => clock
                    .time(Stage::Input, || context.parse(bytes, &part.name))
                    .map_err(|error| Error::new(Stage::Input, error)),
                Source::Mlir(source) => clock.time(Stage::Translate, || translate(&context, source, &self.resolved)),
            };
            modules.push(module.map_err(|error| error.in_module(&part.name))?);
        }
        let lowered: Vec<(&str, Option<&Module<'_>>)> = self
            .parts
            .iter()
            .filter_map(|part| match &part.source {
                Source::Ptx(_) => None,
                Source::Llvm(_) => Some((part.name.as_str(), None)),
                Source::Mlir(source) => Some((part.name.as_str(), Some(source.module()))),
            })
            .collect();
        let module = clock.time(Stage::Link, || join(&context, modules, &lowered))?;
        // Linked with objects, everything may be theirs.
        if self.objects.is_empty() && !device::defines_anything(&module) {
            return Err(Error::new(
                Stage::Translate,
                DeviceError::from(device::Refusal::empty()),
            ));
        }
        let locate = |symbol: &str| {
            lowered
                .iter()
                .find_map(|(_, module)| symbols::location_of_use((*module)?, symbol))
        };
        let intrinsics = match has_places {
            true => places::of_intrinsics(&module),
            false => BTreeMap::new(),
        };
        let decisions = RefCell::new(Vec::new());
        let key_of_part = |bitcode: &[u8]| Some(base.clone()?.field("bitcode", bitcode).finish());
        let get = |bitcode: &[u8]| {
            let (code, _) = cache?.get(&key_of_part(bitcode)?)?;
            Some(code.to_vec())
        };
        let put = |bitcode: &[u8], code: &[u8]| {
            if let Some((cache, key)) = cache.zip(key_of_part(bitcode)) {
                cache.put(&key, code.into());
            }
        };
        let job = DeviceJob {
            name: &self.name,
            resolved: &self.resolved,
            libraries: &self.libraries,
            vendor_library: &|which| self.compiler.vendor_library(which),
            locate: &locate,
            listeners: &self.compiler.listeners,
            for_each: &|pieces, piece| self.helpers.for_each(pieces, piece),
            kept_parts: base.is_some().then_some(KeptParts { get: &get, put: &put }),
            decide: &|decision| decisions.borrow_mut().push(decision),
            own: self.own.as_ref(),
            has_places,
        };
        let code = device::generate_code(&context, module, &job, &self.interface, output, clock).map_err(
            |(stage, error)| match error {
                DeviceError::Interrupted(reason) => Error::new(stage, reason),
                error => {
                    let defined = error.symbol().and_then(|symbol| {
                        let mut modules = lowered.iter().filter_map(|(_, module)| *module);
                        modules.find_map(|module| symbols::location_of_symbol(module, symbol))
                    });
                    let mut error = Error::new(stage, error);
                    // LLVM names an intrinsic without the types in the name of its function.
                    let is_called = |name: &str, function: &str| {
                        let rest = function.strip_prefix(name);
                        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
                    };
                    let called = unselected(&error).and_then(|name| {
                        let mut places = intrinsics.iter();
                        Some(places.find(|(function, _)| is_called(name, function))?.1)
                    });
                    let place = called.or(defined.as_ref()).cloned();
                    error.location = error.location.or(place);
                    error
                }
            },
        )?;
        for decision in decisions.into_inner() {
            // What a newer PTX ISA makes necessary is done anew.
            if !self.decisions.contains(&decision) {
                self.decisions.push(decision);
            }
        }
        self.warnings
            .extend(context.take_diagnostics().into_iter().map(|diagnostic| Warning {
                stage: Stage::CodeGen,
                module: Some(self.name.clone()),
                target: Some(self.target),
                location: None,
                message: diagnostic.message,
            }));
        Ok(code)
    }

    /// An error about an instruction of which it is not known where it came from, or about an intrinsic that LLVM has no
    /// instruction for, with its place. Places in MLIR cross over to LLVM IR as debug info, which costs time: it is made where an
    /// error needs it.
    fn with_place(&mut self, error: Error, output: Option<DeviceOutput>) -> Error {
        let needs_a_place = needs_a_place(&error) || unselected(&error).is_some();
        match output {
            Some(output) if needs_a_place && self.add_places() => {
                self.device_stage(output, true).err().unwrap_or(error)
            }
            _ => error,
        }
    }

    fn set_ptx(&mut self, isa: PtxIsa) {
        if let ResolvedVendor::Nvidia { ptx, .. } = &mut self.resolved.vendor {
            *ptx = isa;
        }
    }

    /// The oldest PTX ISA after `failed` in which LLVM can express the module, up to `newest`.
    fn oldest_sufficient_ptx(&mut self, failed: PtxIsa, newest: PtxIsa, output: DeviceOutput) -> Option<PtxIsa> {
        let candidates: Vec<PtxIsa> = PtxIsa::all_of_llvm()
            .iter()
            .copied()
            .filter(|isa| *isa > failed && *isa <= newest)
            .collect();
        let suffices = |job: &mut Self, isa| {
            job.set_ptx(isa);
            job.device_stage(output, false).is_ok()
        };
        // The newest first: where it fails as well, it is not for lack of a newer ISA, and one attempt has told.
        let last = *candidates.last()?;
        if !suffices(self, last) {
            self.set_ptx(failed);
            return None;
        }
        let (mut low, mut high) = (0, candidates.len() - 1);
        while low < high {
            let middle = usize::midpoint(low, high);
            if suffices(self, candidates[middle]) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Some(candidates[high])
    }

    /// A newer PTX ISA to try, when an error says that an instruction needs one and the user fixed none.
    fn raised_ptx(&mut self, error: &Error, output: DeviceOutput) -> Option<PtxIsa> {
        let ResolvedVendor::Nvidia {
            ptx,
            ptx_is_fixed: false,
        } = self.resolved.vendor
        else {
            return None;
        };
        let newest = self
            .newest_tool_ptx
            .map_or(PtxIsa::newest_llvm(), |tool| tool.min(PtxIsa::newest_llvm()));
        let (needed, reason) = match error.cause()? {
            Cause::Device(DeviceError::Llvm(LlvmError::Fatal(text))) if text.contains("Cannot select") => {
                let reason = text.lines().next().unwrap_or_default().to_owned();
                (self.oldest_sufficient_ptx(ptx, newest, output)?, reason)
            }
            Cause::Serialize(SerializeError::Compile { log, .. }) => {
                let needed = required_ptx(log)?;
                (needed, format!("the PTX compiler asks for PTX ISA {needed}"))
            }
            // The log names the input that asks: only our own can be generated anew.
            Cause::DeviceLink(DeviceLinkError::Tool { log, .. }) if log.contains(&self.name) => {
                let needed = required_ptx(log)?;
                (needed, format!("nvJitLink asks for PTX ISA {needed}"))
            }
            _ => return None,
        };
        if needed <= ptx || needed > newest || needed.check_llvm().is_err() {
            return None;
        }
        self.decisions.push(Decision {
            stage: Stage::CodeGen,
            choice: format!("PTX ISA {needed} instead of {ptx}"),
            outcome: reason,
        });
        Some(needed)
    }

    pub(super) fn warn_for(&mut self, target: Target, stage: Stage, message: String) {
        self.warnings.push(Warning {
            stage,
            module: Some(self.name.clone()),
            target: Some(target),
            location: None,
            message,
        });
    }

    fn warn_about_spills(&mut self, image: &Image) {
        let threshold = self.options.spill_warning;
        for kernel in &image.kernels {
            let bytes = kernel
                .spill_store_bytes
                .unwrap_or(0)
                .max(kernel.spill_load_bytes.unwrap_or(0));
            let registers = kernel.spilled_sgprs.unwrap_or(0) + kernel.spilled_vgprs.unwrap_or(0);
            let what = match image.target.vendor() {
                Vendor::Nvidia if bytes > threshold => format!("{bytes} bytes"),
                Vendor::Amd if registers > threshold => format!("{registers} registers"),
                _ => continue,
            };
            // Without a limit of the user's the hardware has the last word.
            let raise = match self.resolved.max_registers {
                Some(limit) => format!("raise max-registers ({limit}), "),
                None => String::new(),
            };
            self.warn_for(
                image.target,
                Stage::CodeGen,
                format!(
                    "kernel {} spills {what}; {raise}use a smaller block, or hold fewer values at once",
                    kernel.name
                ),
            );
        }
    }

    /// The kernels of the lowered modules.
    fn signatures(&self) -> Vec<KernelSignature> {
        self.parts
            .iter()
            .filter_map(|part| match &part.source {
                Source::Mlir(module) => Some(signatures_of(module.module())),
                _ => None,
            })
            .flatten()
            .collect()
    }

    fn outcome(mut self, images: Vec<(Image, Vec<u8>)>, signatures: Vec<KernelSignature>) -> Outcome {
        for (image, _) in &images {
            self.warn_about_spills(image);
        }
        Outcome {
            signatures,
            optimization: self.resolved.optimization,
            images,
            decisions: self.decisions,
            warnings: self.warnings,
            stages: self.clock.into_times(),
            kept: None,
        }
    }
}

/// The newest PTX ISA that the compiler that will be used reads.
fn newest_tool_ptx(compiler: &Compiler, choice: Option<PtxCompiler>) -> Option<PtxIsa> {
    let candidates = choice.map_or(PtxCompiler::ALL.to_vec(), |choice| vec![choice]);
    candidates
        .into_iter()
        .find_map(|candidate| compiler.ptx_to_cubin.version(candidate).ok())
        .and_then(|version| version.parse::<CudaRelease>().ok())
        .and_then(CudaRelease::newest_ptx)
}

fn signatures_of(module: &Module<'_>) -> Vec<KernelSignature> {
    operations(module)
        .into_iter()
        .filter(|operation| {
            lower::name_of(operation) == "llvm.func"
                && ["gpu.kernel", "nvvm.kernel", "rocdl.kernel"]
                    .iter()
                    .any(|name| operation.has_attribute(name))
        })
        .filter_map(|operation| {
            Some(KernelSignature {
                name: symbol_name(operation),
                function_type: shown(&operation.attribute("function_type").ok()?),
                argument_attributes: operation
                    .attribute("arg_attrs")
                    .ok()
                    .map(|attributes| shown(&attributes)),
            })
        })
        .collect()
}

/// Lowers one module and shows it to the listeners; returns the warnings.
fn lower_part(
    module: &mut OwnedModule<'_>,
    name: &str,
    target: &Target,
    options: &Options,
    resolved: &Resolved,
    listeners: &[Arc<dyn StageListener>],
    clock: &mut StageClock,
) -> Result<Vec<MlirDiagnostic>, Error> {
    // With its target attached, MLIR's verifier refuses operations that the chip does not have.
    let shown = module.module();
    let context: &Context = context_of(shown.context());
    // A limit of time says nothing about the result, which the cache may have from a compilation without one.
    let lasting = Options {
        time_limit: None,
        ..options.clone()
    };
    let attribute =
        attribute::make(context, target, &lasting, false).map_err(|cause| Error::new(Stage::Plan, cause))?;
    if let Some(inner) = shown.body().first_operation() {
        set_attribute(inner, "targets", ArrayAttribute::new(context, &[attribute]).into());
    }
    let warnings = clock
        .time(Stage::Lower, || lower::lower(module.module_mut(), resolved))
        .map_err(|error| Error::new(Stage::Lower, error))?;
    let wants = |listener: &&Arc<dyn StageListener>| listener.checkpoints().contains(&Checkpoint::Lowered);
    for listener in listeners.iter().filter(wants) {
        let subject = Subject { module: name, target };
        let refused = |reason| {
            Error::new(
                Stage::Lower,
                Cause::Listener {
                    checkpoint: Checkpoint::Lowered.name(),
                    reason,
                },
            )
        };
        let shown = module.module();
        if let Some(text) = listener.lowered(subject, &|| module_text(shown)).map_err(refused)? {
            let replacement = parse(context, name, text.as_bytes()).map_err(|error| refused(error.to_string()))?;
            *module = OwnedModule::new(replacement).map_err(|open| refused(open.message))?;
        }
    }
    Ok(warnings)
}

/// The modules of a request as one. `lowered` has their names, and where they come from MLIR.
fn join<'d>(
    context: &'d DeviceContext,
    mut modules: Vec<DeviceModule<'d>>,
    lowered: &[(&str, Option<&Module<'_>>)],
) -> Result<DeviceModule<'d>, Error> {
    if modules.len() == 1
        && let Some(module) = modules.pop()
    {
        return Ok(module);
    }
    let locate: Vec<_> = lowered
        .iter()
        .map(|(_, mlir)| move |symbol: &str| symbols::location_of_symbol((*mlir)?, symbol))
        .collect();
    let inputs = modules
        .into_iter()
        .zip(lowered)
        .zip(&locate)
        .map(|((module, (name, mlir)), locate)| JoinInput {
            name,
            module,
            private: mlir.map(symbols::private_definitions).unwrap_or_default(),
            locate,
        })
        .collect();
    device::join(context, inputs).map_err(|error| Error::new(Stage::Link, error))
}

/// What objects define and need.
fn interface(objects: &[LoadedLibrary], target: &Target) -> Result<LinkInterface, Error> {
    if objects.is_empty() {
        return Ok(LinkInterface::default());
    }
    let failed = |error| Error::new(Stage::DeviceLink, error);
    let inputs = objects
        .iter()
        .map(|object| LinkInput::detect(&object.name, &object.bytes))
        .collect::<Result<Vec<_>, _>>()
        .map_err(failed)?;
    device_link::interface(&inputs, target).map_err(failed)
}

/// What comes of kernels that are compiled apart from others.
pub(super) struct CodeOfKernels {
    pub(super) code: Vec<u8>,
    /// What MLIR says of them.
    pub(super) signatures: Vec<KernelSignature>,
    /// How long it took.
    pub(super) times: Vec<StageTime>,
}

fn translate<'d>(
    context: &'d DeviceContext,
    source: &mut OwnedModule<'_>,
    resolved: &Resolved,
) -> Result<DeviceModule<'d>, Error> {
    let failed = |cause: Cause| Error::new(Stage::Translate, cause);
    let module = source.module_mut();
    let mlir = context_of(module.context());
    if let Some(device_module) = module.body().first_operation() {
        // Without it MLIR gives accesses the alignments of LLVM's default layout: 4 bytes for an i64.
        let layout = device::data_layout(resolved).map_err(|error| failed(error.into()))?;
        set_attribute(
            device_module,
            "llvm.data_layout",
            StringAttribute::new(mlir, &layout).into(),
        );
    }
    let (result, diagnostics) = capture_diagnostics(mlir, || context.translate_first(module));
    result.map_err(|error| {
        let errors: Vec<MlirDiagnostic> = diagnostics
            .into_iter()
            .filter(|diagnostic| diagnostic.is_error)
            .collect();
        match error {
            LlvmError::Refused(_) if !errors.is_empty() => failed(DeviceError::Mlir(errors).into()),
            error => failed(error.into()),
        }
    })
}

fn ptx_text(code: &[u8]) -> Result<&str, Error> {
    std::str::from_utf8(code).map_err(|_| {
        Error::new(
            Stage::CodeGen,
            LlvmError::Refused("LLVM emitted PTX that is not UTF-8; rename the symbols concerned".to_owned()),
        )
    })
}

/// Whether an error is about an instruction of which it is not known where it came from.
fn needs_a_place(error: &Error) -> bool {
    matches!(
        error.cause(),
        Some(Cause::Device(DeviceError::Misaligned { location: None, .. }))
    )
}

/// The intrinsic that an error says LLVM has no instruction for.
fn unselected(error: &Error) -> Option<&str> {
    match error.cause()? {
        Cause::Device(DeviceError::Llvm(LlvmError::Fatal(text))) => {
            let (_, name) = text.split_once("Cannot select: intrinsic %")?;
            name.split_whitespace().next()
        }
        _ => None,
    }
}

/// The PTX ISA that a PTX compiler asks for, as in "Feature 'x' requires PTX ISA .version 8.0 or later".
fn required_ptx(log: &str) -> Option<PtxIsa> {
    let (_, rest) = log.split_once("requires PTX ISA .version ")?;
    rest.split_whitespace()
        .next()?
        .trim_end_matches(['.', ','])
        .parse()
        .ok()
}

/// A module as MLIR prints it, locations included where they are known.
fn module_text(module: &Module<'_>) -> String {
    module
        .as_operation()
        .to_string_with_flags(OperationPrintingFlags::new())
        .unwrap_or_default()
}
