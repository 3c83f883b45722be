//! Whole programs in this process: host code and kernels from one MLIR module, compiled, linked by LLVM's ORC, and run.
//!
//! ```no_run
//! use gpulower::{Compiler, jit::{Program, ProgramOptions, Returned}};
//!
//! let compiler = Compiler::builder().build();
//! let source = std::fs::read("app.mlir")?;
//! let mut program = Program::build_source(&compiler, "app.mlir", &source, &ProgramOptions::default())?;
//! // SAFETY: the program stays within its own memory.
//! let returned = unsafe { program.run()? };
//! assert_eq!(returned, Returned::I32(0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | the module | what happens |
//! |---|---|
//! | has `gpu.launch`, or `gpu.launch_func` of a `gpu.module` | kernels are compiled for the device, host code is lowered; launches find their kernel by its stub |
//! | was lowered by MLIR's passes (LLVM dialect, `gpu.binary`, calls of `mgpu*`) | it is translated as `mlir-translate` does it |
//! | has nothing of the GPU | host code is lowered; no driver is looked for |
//!
//! MLIR's `mgpu` functions are gpulower's own. A call that fails stops the program, and [`Program::run`] says why; the
//! process goes on. `docs/run.md` tells more.

mod error;
mod gpu;
mod images;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use melior::ir::{
    Module, RegionLike,
    operation::{OperationLike, OperationRef},
};

pub use self::error::RunError;
use self::{
    gpu::{KernelImages, ProgramGpu, StubKernel},
    images::Gpus,
};
pub use crate::bridge::engine::{Returned, SharedLibraries};
use crate::{
    bridge::{
        edit::copy_of,
        engine::{Engine, HostMachine, Returns, Symbols},
        host_module::{self, Entry},
        llvm::{DeviceContext, DeviceModule, EmitKind},
        mgpu::{self, Gpu},
        mlir::{capture_diagnostics, context_of, operations},
        target_machine::TargetMachine,
        tasks,
    },
    compiler::{self, Compiler, InputKind},
    device::lower::name_of,
    error::Error,
    image::elf::{Elf, SHT_SYMTAB, Symbol},
    offload::{
        HostOptions, Names, OffloadError, Runtime, Support,
        host::{self, HostProgram},
    },
    options::OptimizationLevel,
    stage::Stage,
    target::{Target, Vendor},
};

/// How a program is made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramOptions {
    /// The function that is called.
    pub entry: String,
    /// What kernels are compiled for; none for the device that they run on, with all that its chip has (`sm_90a` for 9.0).
    /// It has to be there then.
    pub target: Option<Target>,
    /// The device, counted from 0 in the driver's order.
    pub device: u32,
    /// Libraries with functions that the program calls.
    pub shared_libraries: SharedLibraries,
}

impl Default for ProgramOptions {
    fn default() -> Self {
        Self {
            entry: "main".to_owned(),
            target: None,
            device: 0,
            shared_libraries: SharedLibraries::default(),
        }
    }
}

/// A program that is ready to run.
pub struct Program {
    engine: Engine,
    gpu: Arc<ProgramGpu>,
    needs_gpu: bool,
    constructors: Vec<usize>,
    destructors: Vec<usize>,
    entry: usize,
    returns: Returns,
}

/// Host code as LLVM IR, with what it needs.
struct Host<'l> {
    module: DeviceModule<'l>,
    /// Place of the image, name in it, and the symbol of the handle, for each kernel with a stub.
    kernels: Vec<(usize, String, String)>,
}

impl Program {
    /// Makes a program of a module. The module is not changed, but its context gets the dialects and passes that lowering
    /// needs.
    ///
    /// # Errors
    ///
    /// [`RunError`]; nothing of the program has run then.
    pub fn build(
        compiler: &Compiler,
        name: &str,
        module: &Module<'_>,
        options: &ProgramOptions,
    ) -> Result<Self, RunError> {
        compiler::prepare(context_of(module.context()));
        let symbols = Symbols::load(&options.shared_libraries)?;
        let machine = HostMachine::detect();
        let level = compiler
            .options()
            .optimization
            .unwrap_or(OptimizationLevel::O2)
            .number();
        let target_machine = TargetMachine::new(&machine.triple, &machine.chip, &machine.features, level, false)?;
        check_entry(module, &options.entry)?;
        let gpus = Gpus::of(module, compiler.options(), options)?;

        let llvm = DeviceContext::new();
        let (host, images) = if is_lowered(module) {
            let module = translate(&llvm, module)?;
            (
                Host {
                    module,
                    kernels: Vec::new(),
                },
                Vec::new(),
            )
        } else {
            lower(&llvm, compiler, name, module, &machine, &gpus)?
        };
        host.module.set_target(&target_machine)?;
        let returns = entry(&host.module, &options.entry)?;
        let constructors = host_module::take_constructors(&host.module);
        let destructors = host_module::take_destructors(&host.module);
        host.module.run_passes(&target_machine, &format!("default<O{level}>"))?;
        let object = host.module.emit(&target_machine, EmitKind::Object)?;

        let (defined, needs_gpu) = resolve(&object, &symbols)?;
        let engine = Engine::link(&object, &defined, symbols)?;
        let mut stubs = HashMap::new();
        for (image, name, handle) in host.kernels {
            stubs.insert(engine.address(&handle)?, StubKernel { image, name });
        }
        let addresses = |names: &[String]| names.iter().map(|name| engine.address(name)).collect::<Result<_, _>>();
        let (constructors, destructors) = (addresses(&constructors)?, addresses(&destructors)?);
        let mut gpu = ProgramGpu::new(gpus.vendor, options.device, images);
        gpu.set_stubs(stubs);
        Ok(Self {
            entry: engine.address(&options.entry)?,
            gpu: Arc::new(gpu),
            needs_gpu,
            constructors,
            destructors,
            returns,
            engine,
        })
    }

    /// Makes a program of MLIR in memory, text or bytecode. `name` is for messages.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build); and what is no MLIR.
    pub fn build_source(
        compiler: &Compiler,
        name: &str,
        bytes: &[u8],
        options: &ProgramOptions,
    ) -> Result<Self, RunError> {
        let input = |error| RunError::Compile(Error::new(Stage::Input, error).into());
        match InputKind::of(name, bytes).map_err(input)? {
            InputKind::Mlir => {}
            InputKind::Llvm | InputKind::Ptx => {
                return Err(RunError::Refused(
                    "only MLIR can be run: a module with the host code, and with the kernels that it launches"
                        .to_owned(),
                ));
            }
        }
        compiler::worker::reading(compiler, &[(name, bytes)], |inputs| {
            let bytes = inputs.first().map_or(bytes, |(_, bytes)| *bytes);
            let is_fatal = |error: &RunError| matches!(error, RunError::Compile(failure) if failure.is_fatal_in_mlir());
            compiler::Contexts::new(0).with(bytes.len(), is_fatal, |context| {
                let module = compiler::parse(context, name, bytes).map_err(input)?;
                compiler::with_deep_stack(|| Self::build(compiler, name, &module, options))
            })
        })
    }

    /// Runs the program: its constructors, the entry, its destructors. Kernels are loaded before that, and waited for
    /// afterwards. It can be run again, and finds its own variables as it left them.
    ///
    /// # Errors
    ///
    /// [`RunError::DriverLoad`] and others before anything of the program runs, or [`RunError::Stopped`] if one of its calls
    /// for the GPU failed. What the program had of the GPU is given back; what it had of the host is leaked then.
    ///
    /// # Safety
    ///
    /// The program's code runs in this process. The caller vouches for what it does to memory, for the kernels as well, and
    /// for the shared libraries that it calls.
    #[allow(unsafe_code, reason = "whether a program may be run is for the caller to say")]
    pub unsafe fn run(&mut self) -> Result<Returned, RunError> {
        // SAFETY: forwarded to the caller.
        let result = unsafe { self.run_once() };
        self.gpu.clear();
        result
    }

    #[allow(unsafe_code, reason = "as above")]
    unsafe fn run_once(&self) -> Result<Returned, RunError> {
        let gpu: Arc<dyn Gpu> = self.gpu.clone();
        if self.needs_gpu {
            self.gpu.load_all()?;
        }
        let call = |address, returns| {
            // SAFETY: the addresses are those of the program's functions, whose types were looked at; the caller vouches for
            // what they do.
            let returned = unsafe { self.engine.call(address, returns, &gpu) };
            // Tasks may still run, and what they do is the program's as well.
            gpu.tasks().settle();
            match self.gpu.take_stop() {
                Some(stop) => Err(stop),
                None => returned.ok_or(RunError::Stopped {
                    call: "the program",
                    source: "it was left for no reason (this is a bug in gpulower)".into(),
                }),
            }
        };
        for &constructor in &self.constructors {
            call(constructor, Returns::Nothing)?;
        }
        let returned = call(self.entry, self.returns)?;
        for &destructor in &self.destructors {
            call(destructor, Returns::Nothing)?;
        }
        self.gpu.finish().map_err(|source| RunError::Stopped {
            call: "the end of the program",
            source,
        })?;
        Ok(returned)
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Program")
            .field("engine", &self.engine)
            .field("needs_gpu", &self.needs_gpu)
            .field("returns", &self.returns)
            .finish_non_exhaustive()
    }
}

/// Whether MLIR's passes have lowered all of the host code: nothing but the LLVM dialect, compiled modules, their launches.
fn is_lowered(module: &Module<'_>) -> bool {
    operations(module).iter().map(name_of).all(|name| {
        name.starts_with("llvm.") || matches!(name.as_str(), "builtin.module" | "gpu.binary" | "gpu.launch_func")
    })
}

/// Host code that is lowered, as LLVM IR.
fn translate<'l>(llvm: &'l DeviceContext, module: &Module<'_>) -> Result<DeviceModule<'l>, RunError> {
    // Translation changes what it translates.
    let mut copy = copy_of(module)?;
    let (result, diagnostics) = capture_diagnostics(context_of(module.context()), || llvm.translate(&mut copy));
    result.map_err(|error| match diagnostics.iter().any(|diagnostic| diagnostic.is_error) {
        true => {
            let errors = diagnostics.into_iter().filter(|diagnostic| diagnostic.is_error);
            RunError::not_translated(&Vec::from_iter(errors))
        }
        false => error.into(),
    })
}

/// Lowers host code, and compiles its kernels.
fn lower<'l>(
    llvm: &'l DeviceContext,
    compiler: &Compiler,
    name: &str,
    module: &Module<'_>,
    machine: &HostMachine,
    gpus: &Gpus,
) -> Result<(Host<'l>, Vec<KernelImages>), RunError> {
    let offload = |error: OffloadError| RunError::Compile(Error::new(Stage::Run, error).into());
    let runtime = match gpus.vendor {
        Some(Vendor::Amd) => Runtime::Hip,
        _ => Runtime::Cuda,
    };
    let host_options = HostOptions {
        bare_pointers: compiler.options().bare_pointers,
        index_bitwidth: compiler.options().index_bitwidth,
        names: Names::Keep,
        support: Support::External,
        modules_apart: true,
        ..HostOptions::new(runtime, machine.triple.parse().map_err(offload)?, name)
    };
    let host = match host::lower(module, &host_options) {
        // Messages name kernels as the source does where that is possible.
        Err(error) if error.is_clash => {
            let unique = HostOptions {
                names: Names::Unique,
                ..host_options
            };
            host::lower(module, &unique)
        }
        lowered => lowered,
    };
    let host: HostProgram<'_> = host.map_err(offload)?;
    let images = images::make(compiler, &host, gpus.target)?;
    let kernels = host.program().kernels.iter();
    let kernels = kernels
        .map(|kernel| (kernel.module, kernel.name.clone(), kernel.handle.clone()))
        .collect();
    let module = host.translate(llvm).map_err(offload)?;
    Ok((Host { module, kernels }, images))
}

/// Refuses a module that has no function of the entry's name, before a driver is asked for anything.
fn check_entry(module: &Module<'_>, name: &str) -> Result<(), RunError> {
    let of_host = |operation: &OperationRef<'_, '_>| {
        let parent = operation.parent_operation().map(|parent| name_of(&parent));
        let is_function = ["func.func", "llvm.func"].contains(&name_of(operation).as_str());
        let body = operation.region(0).ok().and_then(|region| region.first_block());
        is_function && body.is_some() && parent.is_none_or(|name| name != "gpu.module")
    };
    let functions = operations(module).into_iter().filter(of_host);
    let functions: Vec<String> = functions.map(compiler::symbol_name).collect();
    match functions.iter().any(|function| function == name) {
        true => Ok(()),
        false => Err(RunError::no_entry(name, &functions)),
    }
}

/// What the entry returns.
fn entry(module: &DeviceModule<'_>, name: &str) -> Result<Returns, RunError> {
    match host_module::entry(module, name) {
        Some(Entry::Callable(returns)) => Ok(returns),
        Some(Entry::Other(kind)) => Err(RunError::Refused(format!(
            "{name} has the type {kind}: the function that is called has to take nothing, and to return nothing, i32, i64, f32 or \
             f64"
        ))),
        None => {
            let mut functions = host_module::defined_functions(module);
            functions.retain(|function| {
                !function.starts_with("__device_stub__") && !function.starts_with("__cluster_stub__")
            });
            Err(RunError::no_entry(name, &functions))
        }
    }
}

/// The addresses of everything that an object needs, and whether a function for the GPU is among them.
fn resolve(object: &[u8], symbols: &Symbols) -> Result<(BTreeMap<String, usize>, bool), RunError> {
    let unreadable =
        |error: crate::ReadError| crate::bridge::engine::not_linked(format_args!("its object cannot be read: {error}"));
    let elf = Elf::parse(object).map_err(unreadable)?;
    let own: HashMap<&str, usize> = mgpu::functions().into_iter().collect();
    let of_tasks: HashMap<&str, usize> = tasks::functions().into_iter().collect();
    let (mut defined, mut missing, mut needs_gpu) = (BTreeMap::new(), Vec::new(), false);
    for symbol in elf
        .symbols(SHT_SYMTAB)
        .map_err(unreadable)?
        .into_iter()
        .filter(Symbol::is_undefined)
    {
        let name = symbol.name;
        // The linker's own.
        if matches!(name, "" | "_GLOBAL_OFFSET_TABLE_" | "__dso_handle") {
            continue;
        }
        if let Some(&address) = own.get(name) {
            defined.insert(name.to_owned(), address);
            needs_gpu = true;
        } else if let Some(&address) = of_tasks.get(name) {
            defined.insert(name.to_owned(), address);
        } else if let Some(address) = symbols.find(name) {
            defined.insert(name.to_owned(), address);
        } else if !symbol.is_weak() {
            missing.push(name.to_owned());
        }
    }
    if missing.is_empty() {
        return Ok((defined, needs_gpu));
    }
    missing.sort();
    Err(RunError::unresolved(&missing))
}

#[cfg(test)]
#[path = "../../tests/jit/programs.rs"]
mod tests;
