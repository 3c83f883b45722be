//! One module for one target, from the form it came in to the bytes asked for.

use std::{sync::Arc, time::Duration};

use melior::{
    Context,
    ir::{
        BlockLike, Module,
        attribute::ArrayAttribute,
        operation::{OperationLike, OperationPrintingFlags, OperationRefMut},
    },
};

use super::{Compiler, Emit, EmitError, InputError, InputKind, attribute, load_libraries, parse, symbol_name};
use crate::{
    bridge::{
        LlvmError,
        llvm::{DeviceContext, DeviceModule},
        mlir::{MlirDiagnostic, OwnedModule, context_of, operations, set_attribute},
    },
    container::fatbin::{self, Content, Image},
    device::{self, DeviceError, DeviceJob, DeviceOutput, LoadedLibrary, StageClock, lower},
    error::{Cause, Error},
    image::{cubin, hsaco::Hsaco, resource::KernelResources},
    options::{DebugLevel, Options, Resolved, ResolvedVendor},
    report::{Artifact, Decision, Format, KernelSignature, Warning},
    serialize::{
        amd,
        nvidia::{Outcome, PtxCompiler, SerializeError},
        nvidia_options::PtxOptions,
    },
    stage::{Checkpoint, Stage, Subject},
    target::{CudaRelease, PtxIsa, Target, Vendor},
};

/// Longest run of a vendor tool when no limit was asked for: long enough for anything that ends.
const NO_TIME_LIMIT: Duration = Duration::from_secs(7 * 24 * 3600);

/// What a request starts from.
#[derive(Debug)]
pub(crate) enum Source<'c> {
    /// A module with one `gpu.module`.
    Mlir(OwnedModule<'c>),
    /// LLVM IR, text or bitcode.
    Llvm(Arc<[u8]>),
    /// PTX.
    Ptx(Arc<str>),
}

impl<'c> Source<'c> {
    /// A second handle on the same source; MLIR is cloned.
    pub(super) fn share(&self) -> Self {
        match self {
            Self::Mlir(module) => Self::Mlir(OwnedModule::clone_whole(module.module())),
            Self::Llvm(bytes) => Self::Llvm(Arc::clone(bytes)),
            Self::Ptx(text) => Self::Ptx(Arc::clone(text)),
        }
    }

    const fn kind(&self) -> InputKind {
        match self {
            Self::Mlir(_) => InputKind::Mlir,
            Self::Llvm(_) => InputKind::Llvm,
            Self::Ptx(_) => InputKind::Ptx,
        }
    }
}

/// One module to be compiled for one target.
#[derive(Debug)]
pub(crate) struct Request<'c> {
    /// Name in results and messages.
    pub name: String,
    /// What to compile.
    pub source: Source<'c>,
    /// What for.
    pub target: Target,
    /// How.
    pub options: Options,
    /// Which of the module's target attributes asked for it, counted from 0; 0 where none did.
    pub position: usize,
}

/// Carries out one request.
pub(super) fn run(compiler: &Compiler, request: Request<'_>, emit: Emit) -> Result<Artifact, Error> {
    let _span = tracing::debug_span!("job", module = request.name, target = %request.target).entered();
    let name = request.name.clone();
    let target = request.target;
    Job::new(compiler, request, emit)
        .and_then(Job::run)
        .map_err(|error| error.in_module(&name).for_target(&target))
}

struct Job<'a, 'c> {
    compiler: &'a Compiler,
    name: String,
    source: Source<'c>,
    options: Options,
    target: Target,
    format: Format,
    resolved: Resolved,
    libraries: Vec<LoadedLibrary>,
    newest_tool_ptx: Option<PtxIsa>,
    clock: StageClock,
    decisions: Vec<Decision>,
    warnings: Vec<Warning>,
}

impl<'a, 'c> Job<'a, 'c> {
    fn new(compiler: &'a Compiler, request: Request<'c>, emit: Emit) -> Result<Self, Error> {
        let Request {
            name,
            source,
            target,
            options,
            position: _,
        } = request;
        let format = emit.format(&target).map_err(|error| Error::new(Stage::Plan, error))?;
        check_source(&source, &target, emit, format)?;
        let newest_tool_ptx = format
            .needs_ptx_compiler(&target)
            .then(|| newest_tool_ptx(compiler, options.ptx_compiler))
            .flatten();
        let resolved = options
            .resolve(&target, newest_tool_ptx)
            .map_err(|error| Error::new(Stage::Plan, error))?;
        Ok(Self {
            libraries: load_libraries(&options.libraries)?,
            compiler,
            name,
            source,
            options,
            target,
            format,
            resolved,
            newest_tool_ptx,
            clock: StageClock::default(),
            decisions: Vec::new(),
            warnings: Vec::new(),
        })
    }

    fn run(mut self) -> Result<Artifact, Error> {
        self.lower()?;
        let Some(output) = self.format.device_output(self.target.vendor()) else {
            let Source::Mlir(module) = &self.source else {
                return Err(Error::new(
                    Stage::Plan,
                    Cause::Internal("MLIR asked of another input".to_owned()),
                ));
            };
            let text = module_text(module.module());
            return Ok(self.artifact(text.into_bytes(), Vec::new(), None, String::new()));
        };
        loop {
            let raised = match self.device(output).and_then(|code| self.machine_code(code)) {
                Ok((bytes, kernels, tool, log)) => {
                    self.warn_about_spills(&kernels);
                    return Ok(self.artifact(bytes, kernels, tool, log));
                }
                Err(error) => self.raised_ptx(&error, output).ok_or(error)?,
            };
            self.set_ptx(raised);
        }
    }

    /// Brings MLIR into the dialect of the target.
    fn lower(&mut self) -> Result<(), Error> {
        let Source::Mlir(module) = &mut self.source else {
            return Ok(());
        };
        let resolved = &self.resolved;
        // With its target attached, MLIR's verifier refuses operations that the chip does not have.
        let shown = module.module();
        let context: &Context = context_of(shown.context());
        let attribute =
            attribute::make(context, &self.target, &self.options).map_err(|cause| Error::new(Stage::Plan, cause))?;
        if let Some(inner) = shown.body().first_operation() {
            set_attribute(inner, "targets", ArrayAttribute::new(context, &[attribute]).into());
        }
        let warnings = self
            .clock
            .time(Stage::Lower, || lower::lower(module.module_mut(), resolved))
            .map_err(|error| Error::new(Stage::Lower, error))?;
        for listener in &self.compiler.listeners {
            let subject = Subject {
                module: &self.name,
                target: &self.target,
            };
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
                let replacement =
                    parse(context, &self.name, text.as_bytes()).map_err(|error| refused(error.to_string()))?;
                *module = OwnedModule::adopt(replacement);
            }
        }
        self.warnings.extend(warnings.into_iter().map(|diagnostic| Warning {
            stage: Stage::Lower,
            module: Some(self.name.clone()),
            target: Some(self.target),
            location: Some(diagnostic.location),
            message: diagnostic.message,
        }));
        Ok(())
    }

    /// Runs the device stage in an LLVM context of its own; PTX input passes through.
    fn device(&mut self, output: DeviceOutput) -> Result<Vec<u8>, Error> {
        let context = DeviceContext::new();
        let clock = &mut self.clock;
        let (module, lowered): (DeviceModule<'_>, Option<&Module<'_>>) = match &mut self.source {
            Source::Ptx(text) => return Ok(text.as_bytes().to_vec()),
            Source::Llvm(bytes) => {
                let module = clock
                    .time(Stage::Input, || context.parse(bytes, &self.name))
                    .map_err(|error| Error::new(Stage::Input, error))?;
                (module, None)
            }
            Source::Mlir(source) => {
                let module = clock.time(Stage::Translate, || translate(&context, source))?;
                (module, Some(source.module()))
            }
        };
        if !has_kernel(&module) {
            return Err(Error::new(Stage::Translate, DeviceError::NoKernel));
        }
        let locate = |symbol: &str| lowered.and_then(|module| lower::location_of_use(module, symbol));
        let job = DeviceJob {
            name: &self.name,
            resolved: &self.resolved,
            libraries: &self.libraries,
            vendor_library: &|which| self.compiler.vendor_library(which),
            locate: &locate,
            listeners: &self.compiler.listeners,
        };
        let code = device::compile(&context, module, &job, output, clock)
            .map_err(|(stage, error)| Error::new(stage, error))?;
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

    /// From what LLVM emitted to the format asked for.
    #[allow(clippy::type_complexity, reason = "the parts of an artifact, used once")]
    fn machine_code(
        &mut self,
        code: Vec<u8>,
    ) -> Result<(Vec<u8>, Vec<KernelResources>, Option<String>, String), Error> {
        match (self.format, self.target) {
            (Format::Cubin | Format::Object, Target::Nvidia(_)) => self.cubin(&text(code)?),
            (Format::Fatbin, Target::Nvidia(chip)) => {
                let ptx = text(code)?;
                let (cubin, kernels, tool, log) = if chip.is_virtual() {
                    (None, Vec::new(), None, String::new())
                } else {
                    let (cubin, kernels, tool, log) = self.cubin(&ptx)?;
                    (Some(cubin), kernels, tool, log)
                };
                let bytes = self
                    .clock
                    .time(Stage::Container, || fat_binary(chip.chip(), cubin.as_deref(), &ptx))
                    .map_err(|error| Error::new(Stage::Container, error))?;
                Ok((bytes, kernels, tool, log))
            }
            (Format::Hsaco, _) => {
                let name = &self.name;
                let linked = self
                    .clock
                    .time(Stage::LinkObject, || amd::link_object(name, &code))
                    .map_err(|error| Error::new(Stage::LinkObject, error))?;
                let kernels = hsaco_kernels(&linked.bytes)?;
                Ok((
                    linked.bytes,
                    kernels,
                    Some(llvm_tool("lld")),
                    linked.warnings.join("\n"),
                ))
            }
            (Format::Object, Target::Amd(_)) => {
                let kernels = hsaco_kernels(&code)?;
                Ok((code, kernels, Some(llvm_tool("LLVM")), String::new()))
            }
            _ => Ok((code, Vec::new(), None, String::new())),
        }
    }

    #[allow(clippy::type_complexity, reason = "the parts of an artifact, used once")]
    fn cubin(&mut self, ptx: &str) -> Result<(Vec<u8>, Vec<KernelResources>, Option<String>, String), Error> {
        let options = PtxOptions {
            opt_level: self.resolved.optimization.number(),
            // The kernels carry the limit themselves; given here too, it is checked on the result.
            max_registers: self.resolved.max_registers,
            line_info: self.resolved.debug == DebugLevel::LineTables,
            device_debug: self.resolved.debug == DebugLevel::Full,
            relocatable: self.format == Format::Object,
            extra: self.options.ptxas_options.clone(),
        };
        let limit = self.options.time_limit.unwrap_or(NO_TIME_LIMIT);
        let chip = self.target.chip();
        let choice = self.options.ptx_compiler;
        let compiler = &self.compiler.ptx_to_cubin;
        let outcome = self.clock.time(Stage::PtxToCubin, || {
            compiler.compile(ptx, chip, &options, choice, limit)
        });
        let cubin = outcome.map_err(|error| Error::new(Stage::PtxToCubin, error))?;
        self.decisions.extend(cubin.decisions.iter().map(|decision| Decision {
            stage: Stage::PtxToCubin,
            choice: match &decision.version {
                Some(version) => format!("{} {version}", decision.compiler.name()),
                None => decision.compiler.name().to_owned(),
            },
            outcome: match &decision.outcome {
                Outcome::Used => "used".to_owned(),
                Outcome::Failed => "failed".to_owned(),
                Outcome::Unavailable(reason) => format!("not available: {reason}"),
                Outcome::Unsupported(reason) => format!("not possible: {reason}"),
            },
        }));
        if cubin.compiler == PtxCompiler::NvJitLink && choice.is_none() {
            self.warn(
                Stage::PtxToCubin,
                "compiled by nvJitLink, which makes relocatable code and may use more registers than ptxas; \
                 install ptxas or nvPTXCompiler"
                    .to_owned(),
            );
        }
        let unreadable = |error: cubin::CubinError| Error::new(Stage::PtxToCubin, error);
        let info = cubin.info().map_err(unreadable)?;
        for warning in crate::image::ptx_log::parse(&cubin.log).warnings {
            self.warn(Stage::PtxToCubin, warning);
        }
        let tool = format!("{} {}", cubin.compiler.name(), cubin.version);
        Ok((cubin.bytes, info.kernels, Some(tool), cubin.log))
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
            job.device(output).is_ok()
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
        let (needed, reason) = match error.cause.as_ref() {
            Cause::Device(DeviceError::Llvm(LlvmError::Fatal(text))) if text.contains("Cannot select") => {
                let reason = text.lines().next().unwrap_or_default().to_owned();
                (self.oldest_sufficient_ptx(ptx, newest, output)?, reason)
            }
            Cause::Serialize(SerializeError::Compile { log, .. }) => {
                let needed = required_ptx(log)?;
                (needed, format!("the PTX compiler asks for PTX ISA {needed}"))
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

    fn warn(&mut self, stage: Stage, message: String) {
        self.warnings.push(Warning {
            stage,
            module: Some(self.name.clone()),
            target: Some(self.target),
            location: None,
            message,
        });
    }

    fn warn_about_spills(&mut self, kernels: &[KernelResources]) {
        let threshold = self.options.spill_warning;
        for kernel in kernels {
            let bytes = kernel
                .spill_store_bytes
                .unwrap_or(0)
                .max(kernel.spill_load_bytes.unwrap_or(0));
            let registers = kernel.spilled_sgprs.unwrap_or(0) + kernel.spilled_vgprs.unwrap_or(0);
            let what = match self.target.vendor() {
                Vendor::Nvidia if bytes > threshold => format!("{bytes} bytes"),
                Vendor::Amd if registers > threshold => format!("{registers} registers"),
                _ => continue,
            };
            self.warn(
                Stage::CodeGen,
                format!(
                    "kernel {} spills {what}; raise max-registers, use a smaller block, or hold fewer values at once",
                    kernel.name
                ),
            );
        }
    }

    /// The kernels of a lowered module.
    fn signatures(&self) -> Vec<KernelSignature> {
        let Source::Mlir(module) = &self.source else {
            return Vec::new();
        };
        operations(module.module())
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
                    function_type: operation.attribute("function_type").ok()?.to_string(),
                    argument_attributes: operation
                        .attribute("arg_attrs")
                        .ok()
                        .map(|attributes| attributes.to_string()),
                })
            })
            .collect()
    }

    fn artifact(self, bytes: Vec<u8>, kernels: Vec<KernelResources>, tool: Option<String>, log: String) -> Artifact {
        Artifact {
            signatures: self.signatures(),
            optimization: self.resolved.optimization,
            module: self.name,
            target: self.target,
            format: self.format,
            bytes,
            kernels,
            tool,
            log,
            decisions: self.decisions,
            warnings: self.warnings,
            stages: self.clock.into_times(),
        }
    }
}

/// Whether the input can still become what is asked for.
fn check_source(source: &Source<'_>, target: &Target, emit: Emit, format: Format) -> Result<(), Error> {
    let not_from = |advice| {
        Err(Error::new(
            Stage::Plan,
            EmitError::NotFromInput {
                emit: emit.name(),
                input: source.kind().name(),
                advice,
            },
        ))
    };
    match (source, format) {
        (Source::Ptx(_), _) if target.vendor() == Vendor::Amd => Err(Error::new(
            Stage::Plan,
            InputError::PtxForAmd {
                target: target.to_string(),
            },
        )),
        (Source::Ptx(_), Format::Mlir | Format::Llvm | Format::Bitcode) => {
            not_from("PTX is already past it; start from MLIR or LLVM IR")
        }
        (Source::Llvm(_), Format::Mlir) => not_from("LLVM IR is already past it; start from MLIR"),
        _ => Ok(()),
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

fn translate<'d>(context: &'d DeviceContext, source: &mut OwnedModule<'_>) -> Result<DeviceModule<'d>, Error> {
    let failed = |cause: Cause| Error::new(Stage::Translate, cause);
    let module = source.module_mut();
    let mlir = context_of(module.context());
    let operation = module
        .body()
        .first_operation_mut()
        .ok_or_else(|| failed(Cause::Internal("the module to translate is empty".to_owned())))?;
    let mut operation: OperationRefMut<'_, '_> = operation;
    let (result, diagnostics) = crate::bridge::mlir::capture_diagnostics(mlir, || context.translate(&mut operation));
    result.map_err(|error| {
        let errors: Vec<MlirDiagnostic> = diagnostics
            .into_iter()
            .filter(|diagnostic| diagnostic.is_error)
            .collect();
        match error {
            LlvmError::Refused(_) if !errors.is_empty() => failed(lower::LowerError::Refused(errors).into()),
            error => failed(error.into()),
        }
    })
}

fn has_kernel(module: &DeviceModule<'_>) -> bool {
    // Calling conventions of LLVM (`llvm/include/llvm/IR/CallingConv.h`): PTX_Kernel 71, AMDGPU_KERNEL 91.
    module
        .inkwell()
        .get_functions()
        .any(|function| matches!(function.get_call_conventions(), 71 | 91))
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

fn text(code: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(code).map_err(|_| {
        Error::new(
            Stage::CodeGen,
            LlvmError::Refused("LLVM emitted PTX that is not UTF-8; rename the symbols concerned".to_owned()),
        )
    })
}

fn fat_binary(chip: &str, cubin: Option<&[u8]>, ptx: &str) -> Result<Vec<u8>, fatbin::FatbinWriteError> {
    let mut images = Vec::new();
    if let Some(cubin) = cubin {
        images.push(Image::new(Content::Cubin(cubin), chip)?);
    }
    images.push(Image::new(Content::Ptx(ptx), chip)?);
    fatbin::write(&images)
}

fn hsaco_kernels(bytes: &[u8]) -> Result<Vec<KernelResources>, Error> {
    let hsaco = Hsaco::read(bytes).map_err(|error| Error::new(Stage::LinkObject, error))?;
    Ok(hsaco.resources().cloned().collect())
}

/// A part of LLVM that is linked into this library.
fn llvm_tool(name: &str) -> String {
    let (major, minor, patch) = inkwell::support::get_llvm_version();
    format!("{name} {major}.{minor}.{patch}")
}

/// A module as MLIR prints it, locations included where they are known.
fn module_text(module: &Module<'_>) -> String {
    module
        .as_operation()
        .to_string_with_flags(OperationPrintingFlags::new())
        .unwrap_or_default()
}
