//! One compilation: the plan (modules × targets), the threads that carry it out, and the results in order.

pub mod attribute;
mod container;
mod emit;
mod identical;
mod input;
mod job;
mod machine_code;
mod phases;
mod plan;
mod pool;
mod request;
mod targets;

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock},
    thread::available_parallelism,
};

use inkwell::module::Module as LlvmModule;
use melior::{
    Context,
    ir::{
        Module,
        attribute::{ArrayAttribute, StringAttribute},
        operation::{OperationLike, OperationRef},
    },
};

pub use self::{
    emit::{Emit, EmitError},
    input::{InputError, InputKind, context, parse, prepare},
    phases::{Phase, Plan, PlannedOutput},
    targets::Targets,
};
use self::{
    identical::first_of_each,
    request::{Origin, Outcome, Part, Request, Source},
};

use crate::{
    bridge::mlir::{
        OwnedModule, context_of, is_threaded, location_text, operations, operations_below, symbol_attribute_name,
    },
    device::{
        LoadedLibrary, VendorLibrary,
        lower::{self, name_of},
    },
    error::{Error, Failure},
    options::{Library, Options},
    report::{Artifact, Compilation},
    serialize::nvidia::{NvidiaParts, PtxToCubin},
    stage::{Stage, StageListener},
    target::Target,
    toolkit::{PartKind, Search, Toolkit, ToolkitError},
};

/// Compiles `gpu` modules. Built once, used from any thread; two compilers share nothing.
///
/// ```no_run
/// use gpulower::{Compiler, Emit, Target};
///
/// let compiler = Compiler::builder().build();
/// let source = std::fs::read("kernels.mlir")?;
/// let targets = Target::parse_list("sm_90,gfx942")?;
/// for artifact in compiler.compile_source("kernels.mlir", &source, &targets, Emit::Binary)?.artifacts {
///     println!("{} for {}: {} bytes", artifact.module, artifact.target_names(), artifact.bytes.len());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Compiler {
    options: Options,
    toolkit: Toolkit,
    listeners: Vec<Arc<dyn StageListener>>,
    threads: usize,
    ptx_to_cubin: PtxToCubin,
    vendor_libraries: [OnceLock<LoadedLibrary>; 3],
    /// Reading a library twice at once would be waste, not harm: the lock makes the second reader wait.
    loading: Mutex<()>,
}

impl fmt::Debug for Compiler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Compiler")
            .field("options", &self.options)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// Gathers what a [`Compiler`] is built with.
pub struct CompilerBuilder {
    options: Options,
    toolkit: Toolkit,
    listeners: Vec<Arc<dyn StageListener>>,
    threads: Option<usize>,
    cache: Option<PathBuf>,
}

impl Default for CompilerBuilder {
    /// The default options, and the toolkits in the system's usual places.
    fn default() -> Self {
        Self {
            options: Options::default(),
            toolkit: Toolkit::discover(&Search::default()),
            listeners: Vec::new(),
            threads: None,
            cache: None,
        }
    }
}

impl fmt::Debug for CompilerBuilder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CompilerBuilder")
            .field("options", &self.options)
            .field("threads", &self.threads)
            .field("cache", &self.cache)
            .finish_non_exhaustive()
    }
}

impl CompilerBuilder {
    /// Options for every compilation; a module's target attribute adds to them.
    #[must_use]
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// The toolkits to use. Default: those in the system's usual places; the environment is not read.
    #[must_use]
    pub fn toolkit(mut self, toolkit: Toolkit) -> Self {
        self.toolkit = toolkit;
        self
    }

    /// Adds a listener. Listeners are called in the order in which they were added.
    #[must_use]
    pub fn listener(mut self, listener: Arc<dyn StageListener>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// How many threads to use at most. Default: one for each processor.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads.max(1));
        self
    }

    /// A directory for what is made once for each toolkit: the shared object of nvPTXCompiler. Without one,
    /// nvPTXCompiler is not used.
    #[must_use]
    pub fn cache_directory(mut self, directory: PathBuf) -> Self {
        self.cache = Some(directory);
        self
    }

    /// Builds the compiler. Nothing is loaded or run yet.
    #[must_use]
    pub fn build(self) -> Compiler {
        let part = |kind| self.toolkit.find(kind).map(PathBuf::from);
        let parts = NvidiaParts {
            nvptxcompiler_archive: part(PartKind::NvPtxCompiler),
            ptxas: part(PartKind::Ptxas),
            nvjitlink: part(PartKind::NvJitLink),
            cache_dir: self.cache,
        };
        Compiler {
            options: self.options,
            listeners: self.listeners,
            threads: self
                .threads
                .unwrap_or_else(|| available_parallelism().map_or(1, usize::from)),
            ptx_to_cubin: PtxToCubin::new(parts),
            vendor_libraries: Default::default(),
            loading: Mutex::new(()),
            toolkit: self.toolkit,
        }
    }
}

impl Compiler {
    /// Starts to build a compiler.
    #[must_use]
    pub fn builder() -> CompilerBuilder {
        CompilerBuilder::default()
    }

    /// The options of every compilation.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The toolkits in use.
    pub fn toolkit(&self) -> &Toolkit {
        &self.toolkit
    }

    /// NVIDIA's compilers, as far as they are there.
    pub fn ptx_to_cubin(&self) -> &PtxToCubin {
        &self.ptx_to_cubin
    }

    /// Compiles an input in memory: MLIR (text or bytecode), device LLVM IR (text or bitcode), or PTX. `name` is for
    /// messages, and its extension helps to tell text formats apart.
    ///
    /// With no targets, MLIR is compiled for the targets its modules name.
    pub fn compile_source(
        &self,
        name: &str,
        bytes: &[u8],
        targets: impl Into<Targets>,
        emit: Emit,
    ) -> Result<Compilation, Failure> {
        self.compile_sources(&[(name, bytes)], targets, emit)
    }

    /// Compiles several inputs, each as [`Compiler::compile_source`] does. With [`Options::device_link`] the modules of
    /// all of them become one image for each target; PTX among them is linked as an object then.
    pub fn compile_sources(
        &self,
        inputs: &[(&str, &[u8])],
        targets: impl Into<Targets>,
        emit: Emit,
    ) -> Result<Compilation, Failure> {
        let context = context();
        let sources = read_sources(&context, inputs)?;
        let requests = self.requests_of_sources(&sources, &targets.into(), emit)?;
        collect(self.run(&context, requests, emit))
    }

    /// Compiles every `gpu.module` of a module, nested ones included, for each target; `gpu.launch` regions are
    /// outlined first. The module is not changed, but its context gets the dialects and passes that lowering needs.
    ///
    /// With no targets, each module is compiled for the targets in its target attributes.
    pub fn compile(
        &self,
        module: &Module<'_>,
        targets: impl Into<Targets>,
        emit: Emit,
    ) -> Result<Compilation, Failure> {
        let targets = targets.into();
        let context = context_of(module.context());
        prepare(context);
        let outlined = outline(context, module)?;
        let requests =
            self.requests_of_all(0, outlined.as_ref().map_or(module, OwnedModule::module), &targets, emit)?;
        collect(self.run(context, self.joined(requests), emit))
    }

    /// Compiles a device module of LLVM IR for one target. The module is not changed.
    pub fn compile_llvm(
        &self,
        name: &str,
        module: &LlvmModule<'_>,
        target: &Target,
        emit: Emit,
    ) -> Result<Artifact, Failure> {
        let bitcode = module.write_bitcode_to_memory().as_slice().into();
        let targets = Targets::List(vec![*target]);
        let mut compilation = self.compile_device_source(Source::Llvm(bitcode), name, &targets, emit)?;
        compilation
            .artifacts
            .pop()
            .ok_or_else(|| Error::new(Stage::Plan, InputError::NoModule).into())
    }

    fn compile_device_source(
        &self,
        source: Source<'static>,
        name: &str,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Compilation, Failure> {
        let requests = self.requests_of_device_source(0, source, name, targets, emit)?;
        collect(self.run_on(self.threads, self.joined(requests), emit))
    }

    /// The requests for inputs that were read.
    fn requests_of_sources<'c>(
        &self,
        sources: &[ReadSource<'c>],
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<Request<'c>>, Failure> {
        let mut requests = Vec::new();
        let mut index = 0;
        for source in sources {
            let more = match source {
                ReadSource::Mlir(module) => self.requests_of_all(index, module.module(), targets, emit)?,
                ReadSource::Device(name, source) => {
                    self.requests_of_device_source(index, source.share(), name, targets, emit)?
                }
            };
            index = more.iter().map(|request| request.module + 1).max().unwrap_or(index);
            requests.extend(more);
        }
        Ok(self.joined(requests))
    }

    /// With device linking, one request for each target and what is made for it.
    fn joined<'c>(&self, requests: Vec<Request<'c>>) -> Vec<Request<'c>> {
        if self.options.device_link.is_none() {
            return requests;
        }
        let mut joined: Vec<Request<'c>> = Vec::new();
        for request in requests {
            let same = joined.iter_mut().find(|other| {
                other.target == request.target && other.products == request.products && other.options == request.options
            });
            match same {
                Some(other) => other.parts.extend(request.parts),
                None => joined.push(Request { module: 0, ..request }),
            }
        }
        for request in &mut joined {
            request.link_ptx_as_objects();
            let names: Vec<&str> = request.parts.iter().map(|part| part.name.as_str()).collect();
            request.name = names.join("+");
        }
        joined
    }

    fn requests_of_device_source(
        &self,
        index: usize,
        source: Source<'static>,
        name: &str,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<Request<'static>>, Error> {
        let stem = name.rsplit('/').next().unwrap_or(name);
        let stem = stem.split('.').next().filter(|stem| !stem.is_empty() && *stem != "-");
        let generations = targets
            .generations(source.kind(), emit, &self.options, None)
            .map_err(|error| error.in_module(name))?;
        Ok(generations
            .into_iter()
            .map(|generation| Request {
                name: stem.unwrap_or("kernels").to_owned(),
                module: index,
                parts: vec![Part {
                    name: stem.unwrap_or("kernels").to_owned(),
                    source: source.share(),
                }],
                target: generation.target,
                products: generation.products,
                options: generation.options,
                include_ptx: generation.include_ptx,
                notes: generation.notes,
                position: 0,
            })
            .collect())
    }

    /// The requests for every `gpu.module` of a module.
    fn requests_of_all<'c>(
        &self,
        first: usize,
        module: &Module<'c>,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<Request<'c>>, Failure> {
        let modules = gpu_modules(module);
        if modules.is_empty() {
            return Err(Error::new(Stage::Plan, InputError::NoModule).into());
        }
        let mut requests = Vec::new();
        let mut errors = Vec::new();
        for (index, operation) in (first..).zip(modules) {
            match self.requests(index, operation, targets, emit) {
                Ok(planned) => requests.extend(planned),
                Err(error) => errors.push(error),
            }
        }
        if errors.is_empty() {
            Ok(requests)
        } else {
            Err(Failure { errors })
        }
    }

    /// What a `gpu.module` is to be compiled for: the given targets, or those it names. `index` is its place in the
    /// input.
    pub(crate) fn requests<'c>(
        &self,
        index: usize,
        operation: OperationRef<'c, '_>,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Vec<Request<'c>>, Error> {
        let name = symbol_name(operation);
        let generations = targets
            .generations(InputKind::Mlir, emit, &self.options, Some(operation))
            .map_err(|mut error| {
                error
                    .location
                    .get_or_insert_with(|| location_text(operation.location()));
                error.in_module(&name)
            })?;
        Ok(generations
            .into_iter()
            .map(|generation| Request {
                name: name.clone(),
                module: index,
                parts: vec![Part {
                    name: name.clone(),
                    source: Source::Mlir(OwnedModule::clone_of(operation)),
                }],
                target: generation.target,
                products: generation.products,
                options: generation.options,
                include_ptx: generation.include_ptx,
                notes: generation.notes,
                position: generation.position,
            })
            .collect())
    }

    /// Carries out requests whose operations live in `context`; results are in the order of the requests.
    pub(crate) fn run(&self, context: &Context, requests: Vec<Request<'_>>, emit: Emit) -> Vec<Finished> {
        // The embedder may have switched the context's threads off: its operations stay on this one then.
        let threads = if is_threaded(context) { self.threads } else { 0 };
        self.run_on(threads, requests, emit)
    }

    /// Carries out requests on `threads` threads, or on this one if there are to be none, and puts the artifacts
    /// together.
    fn run_on(&self, threads: usize, requests: Vec<Request<'_>>, emit: Emit) -> Vec<Finished> {
        let planned = plan::artifacts(&requests, emit);
        let origins: Vec<Origin> = requests.iter().map(Request::origin).collect();
        let firsts = first_of_each(&requests);
        let jobs: Vec<(usize, Request<'_>)> = requests
            .into_iter()
            .enumerate()
            .filter(|(index, _)| firsts.get(*index) == Some(index))
            .collect();
        let places: Vec<usize> = jobs.iter().map(|(index, _)| *index).collect();
        let carry_out = |(_, request): (usize, Request<'_>)| job::run(self, request);
        let results: Vec<Result<Result<Outcome, Error>, String>> = if threads == 0 {
            jobs.into_iter().map(|job| Ok(carry_out(job))).collect()
        } else {
            pool::run(threads, jobs, carry_out)
        };
        let mut finished = Vec::new();
        let mut outcomes: Vec<Option<Outcome>> = vec![None; origins.len()];
        for (place, result) in places.into_iter().zip(results) {
            let Some(origin) = origins.get(place) else { continue };
            let result = result.unwrap_or_else(|panic| {
                Err(Error::new(Stage::Plan, crate::error::Cause::Internal(panic))
                    .in_module(&origin.name)
                    .for_target(&origin.target))
            });
            match result {
                Ok(outcome) => {
                    for (twin, slot) in outcomes.iter_mut().enumerate() {
                        if firsts.get(twin) == Some(&place)
                            && let Some(other) = origins.get(twin)
                        {
                            *slot = Some(if twin == place {
                                outcome.clone()
                            } else {
                                outcome.shared_with(&origin.name, &other.name)
                            });
                        }
                    }
                }
                Err(error) => finished.push(Finished {
                    module: origin.module,
                    position: origin.position,
                    result: Err(error),
                }),
            }
        }
        for artifact in &planned {
            let Some(result) = container::assemble(artifact, &origins, &outcomes) else {
                continue;
            };
            finished.push(Finished {
                module: artifact.module,
                position: artifact.position,
                result,
            });
        }
        finished
    }

    /// A vendor's device library, read once.
    fn vendor_library(&self, which: VendorLibrary) -> Result<LoadedLibrary, ToolkitError> {
        let (slot, kind) = match which {
            VendorLibrary::Libdevice => (0, PartKind::Libdevice),
            VendorLibrary::Ocml => (1, PartKind::Ocml),
            VendorLibrary::Ockl => (2, PartKind::Ockl),
        };
        let _guard = self.loading.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(library) = self.vendor_libraries[slot].get() {
            return Ok(library.clone());
        }
        let path = self.toolkit.require(kind)?;
        let bytes = std::fs::read(path).map_err(|source| ToolkitError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let library = LoadedLibrary {
            name: path.display().to_string(),
            bytes: bytes.into(),
        };
        Ok(self.vendor_libraries[slot].get_or_init(|| library).clone())
    }
}

/// Reads the user's libraries.
fn load_libraries(libraries: &[Library], stage: Stage) -> Result<Vec<LoadedLibrary>, Error> {
    libraries
        .iter()
        .map(|library| {
            let bytes: Arc<[u8]> = match library {
                Library::File(path) => std::fs::read(path)
                    .map_err(|source| {
                        Error::new(
                            stage,
                            InputError::Read {
                                path: path.clone(),
                                source,
                            },
                        )
                    })?
                    .into(),
                Library::Memory { bytes, .. } => Arc::clone(bytes),
            };
            Ok(LoadedLibrary {
                name: library.name(),
                bytes,
            })
        })
        .collect()
}

/// An input in the form in which compilation starts.
enum ReadSource<'c> {
    /// MLIR, with what it launches outlined.
    Mlir(OwnedModule<'c>),
    /// LLVM IR or PTX, and its name.
    Device(String, Source<'static>),
}

fn read_sources<'c>(context: &'c Context, inputs: &[(&str, &[u8])]) -> Result<Vec<ReadSource<'c>>, Error> {
    let failed = |error| Error::new(Stage::Input, error);
    inputs
        .iter()
        .map(|(name, bytes)| {
            let device = |source| ReadSource::Device((*name).to_owned(), source);
            Ok(match InputKind::of(name, bytes).map_err(failed)? {
                InputKind::Mlir => {
                    let module = parse(context, name, bytes).map_err(failed)?;
                    let outlined = outline(context, &module)?;
                    ReadSource::Mlir(outlined.unwrap_or_else(|| OwnedModule::adopt(module)))
                }
                InputKind::Llvm => device(Source::Llvm((*bytes).into())),
                InputKind::Ptx => {
                    let text = std::str::from_utf8(bytes).map_err(|_| failed(InputError::UnknownFormat))?;
                    device(Source::Ptx(text.into()))
                }
            })
        })
        .collect()
}

/// One result of a compilation.
pub(crate) struct Finished {
    /// Which module of the input it is of.
    pub module: usize,
    /// The first of the module's target attributes that asked for it.
    pub position: usize,
    /// What came out.
    pub result: Result<Artifact, Error>,
}

fn collect(finished: Vec<Finished>) -> Result<Compilation, Failure> {
    let mut artifacts = Vec::new();
    let mut errors = Vec::new();
    for Finished { result, .. } in finished {
        match result {
            Ok(artifact) => artifacts.push(artifact),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok(Compilation { artifacts })
    } else {
        Err(Failure { errors })
    }
}

/// A copy of the module with its `gpu.launch` regions outlined to `gpu.module`s, if it has any.
pub(crate) fn outline<'c>(context: &'c Context, module: &Module<'c>) -> Result<Option<OwnedModule<'c>>, Error> {
    if !operations(module)
        .iter()
        .any(|operation| name_of(operation) == "gpu.launch")
    {
        return Ok(None);
    }
    let mut copy = OwnedModule::clone_whole(module);
    lower::run(
        context,
        copy.module_mut(),
        "builtin.module(gpu-launch-sink-index-computations,gpu-kernel-outlining)",
    )
    .map_err(|error| Error::new(Stage::Plan, error))?;
    Ok(Some(copy))
}

/// Every `gpu.module` of a module, nested ones included, in order.
pub(crate) fn gpu_modules<'c, 'a>(module: &'a Module<'c>) -> Vec<OperationRef<'c, 'a>> {
    gpu_modules_below(module.as_operation())
}

/// Every `gpu.module` inside an operation, or the operation itself, in order.
pub(crate) fn gpu_modules_below<'c, 'a>(root: OperationRef<'c, 'a>) -> Vec<OperationRef<'c, 'a>> {
    operations_below(root)
        .into_iter()
        .filter(|operation| name_of(operation) == "gpu.module")
        .collect()
}

/// The symbol's name of an operation, or a stand-in.
pub(crate) fn symbol_name(operation: OperationRef<'_, '_>) -> String {
    operation
        .attribute(symbol_attribute_name())
        .ok()
        .and_then(|attribute| StringAttribute::try_from(attribute).ok())
        .map_or_else(|| "kernels".to_owned(), |name| name.value().to_owned())
}

/// The target attributes of a `gpu.module`.
pub(crate) fn target_attributes<'c>(operation: OperationRef<'c, '_>) -> Vec<melior::ir::Attribute<'c>> {
    let Some(targets) = operation
        .attribute("targets")
        .ok()
        .and_then(|attribute| ArrayAttribute::try_from(attribute).ok())
    else {
        return Vec::new();
    };
    (0..targets.len())
        .filter_map(|index| targets.element(index).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compiler_serves_any_thread() {
        const fn shared<T: Send + Sync>() {}
        shared::<Compiler>();
        shared::<Failure>();
        shared::<Compilation>();
    }

    #[test]
    fn an_embedder_keeps_its_context_and_module() {
        let context = Context::new();
        prepare(&context);
        let source = "gpu.module @m { gpu.func @k(%p: memref<4xf32>, %v: f32) kernel {
              %i = gpu.thread_id x
              memref.store %v, %p[%i] : memref<4xf32>
              gpu.return } }";
        let module = parse(&context, "k.mlir", source.as_bytes()).expect("parses");
        let before = module.as_operation().to_string();
        let compiler = Compiler::builder().build();
        let targets = Target::parse_list("sm_90").expect("a target");
        let first = compiler.compile(&module, &targets, Emit::Ptx).expect("compiles");
        let second = compiler.compile(&module, &targets, Emit::Ptx).expect("compiles again");
        assert_eq!(first.artifacts[0].bytes, second.artifacts[0].bytes);
        assert_eq!(module.as_operation().to_string(), before, "the module is not changed");
    }

    /// A fatal error of LLVM is an error of one job; the compiler works on and gives the same bytes.
    #[test]
    #[cfg(feature = "nvidia")]
    fn a_fatal_error_does_not_end_the_process() {
        let good = "define ptx_kernel void @k(ptr %p) { store i32 1, ptr %p ret void }";
        // sm_70 has no instruction for it, in any PTX version.
        let bad = "declare i32 @llvm.nvvm.redux.sync.add(i32, i32)
            define ptx_kernel void @k(ptr %p) {
              %v = call i32 @llvm.nvvm.redux.sync.add(i32 1, i32 -1)
              store i32 %v, ptr %p ret void }";
        let compiler = Compiler::builder().build();
        let targets = Target::parse_list("sm_70").expect("a target");
        let compile = |text: &str| compiler.compile_source("k.ll", text.as_bytes(), &targets, Emit::Ptx);
        let before = compile(good).expect("compiles");
        for _ in 0..3 {
            let error = compile(bad).expect_err("cannot be selected").to_string();
            assert!(error.contains("LLVM fatal error: Cannot select"), "{error}");
        }
        let after = compile(good).expect("compiles");
        assert_eq!(before.artifacts[0].bytes, after.artifacts[0].bytes);
    }
}
