//! One compilation: the plan (modules × targets), the threads that carry it out, and the results in order.

mod apart;
pub mod attribute;
mod best;
mod bytecode;
mod cached;
mod components;
mod container;
mod content;
mod contexts;
mod emit;
mod identical;
mod input;
mod job;
mod kernel_calls;
mod kernel_groups;
mod kernels;
mod launches;
mod machine_code;
mod module_text;
mod nesting;
mod phases;
pub(crate) mod pipeline;
mod plan;
mod pool;
mod ptx_places;
mod refuse;
mod register_bounds;
mod request;
mod requests;
#[cfg(test)]
mod rounding_tests;
mod run;
#[cfg(test)]
mod semantics_tests;
#[cfg(test)]
mod shuffle_tests;
mod sources;
#[cfg(test)]
mod split_tests;
mod stack;
mod stored_bytes;
mod targets;
pub mod worker;

use std::{
    fmt,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock},
    thread::available_parallelism,
};

use inkwell::module::Module as LlvmModule;
use melior::ir::Module;

pub use self::input::InputError;
pub(crate) use self::launches::constant as constant_of_launch;
pub(crate) use self::{
    content::Content,
    contexts::Contexts,
    pool::JobMaker,
    requests::{gpu_modules, gpu_modules_below, outline, symbol_name, target_attributes},
    run::Finished,
    stack::with_deep_stack,
};
pub use self::{
    emit::Emit,
    input::{InputKind, context, parse, prepare},
    launches::{KernelLaunch, LaunchArgument, Symbol, launches, symbols},
    nesting::{MAX_EXPANSION, MAX_LEVELS},
    phases::{Phase, Plan, PlannedOutput},
    pool::Executor,
    requests::run_pipeline,
    targets::Targets,
};
use self::{
    input::check_nesting,
    pool::{Pool, Threads},
    request::{SharedModule, Source},
    run::collect,
    sources::OnError,
};

use crate::{
    bridge::mlir::{context_of, is_threaded},
    cache::Cache,
    device::{LoadedLibrary, StageObserver, VendorLibrary},
    error::{Error, Failure},
    interrupt::CancellationToken,
    options::{Library, Options},
    progress::{Progress, ProgressCallback, Reporter},
    read_file::{MOST_BYTES, read_file},
    report::{Artifact, Compilation},
    serialize::nvidia::{NvidiaParts, PtxToCubin},
    stage::{Stage, StageListener, Subject},
    target::Target,
    toolkit::{self, PartKind, Search, Toolkit, ToolkitError},
};

/// Compiles `gpu` modules. Built once, used from any thread; two compilers share nothing but a [`Cache`] that both are given.
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
#[derive(Clone)]
pub struct Compiler {
    options: Options,
    toolkit: Arc<Toolkit>,
    listeners: Vec<Arc<dyn StageListener>>,
    pool: Arc<Pool>,
    cache: Option<PathBuf>,
    results: Option<Cache>,
    contexts: Arc<Contexts>,
    ptx_to_cubin: Arc<PtxToCubin>,
    vendor_libraries: Arc<VendorLibraries>,
    worker: Option<worker::Worker>,
    workers: Arc<worker::Pool>,
    cancellation: CancellationToken,
    /// Is told of stages; a worker process passes them on.
    observer: Option<StageObserver>,
    progress: Option<ProgressCallback>,
    gate: Option<Gate>,
}

/// Is asked about what is to come out before anything is compiled, and may refuse it.
pub type Gate = Arc<dyn Fn(&[PlannedOutput]) -> Result<(), String> + Send + Sync>;

/// The vendors' device libraries, each read when it is first needed.
#[derive(Default)]
struct VendorLibraries {
    slots: [OnceLock<LoadedLibrary>; 3],
    digests: [OnceLock<blake3::Hash>; 3],
    /// Reading a library twice at once would be waste, not harm: the lock makes the second reader wait.
    loading: Mutex<()>,
}

impl fmt::Debug for Compiler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Compiler")
            .field("options", &self.options)
            .field("threads", self.pool.threads())
            .finish_non_exhaustive()
    }
}

/// Calls that are expected at once, for which MLIR contexts are kept.
const MOST_IDLE_CONTEXTS: usize = 4;

/// Gathers what a [`Compiler`] is built with.
pub struct CompilerBuilder {
    options: Options,
    toolkit: Toolkit,
    listeners: Vec<Arc<dyn StageListener>>,
    threads: Option<Threads>,
    cache: Option<PathBuf>,
    results: Option<Cache>,
    worker: Option<worker::Worker>,
    progress: Option<ProgressCallback>,
    gate: Option<Gate>,
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
            results: None,
            worker: None,
            progress: None,
            gate: None,
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

    /// Finds the toolkits, and the directory for what is made of them, as the programs do: `CUDA_HOME`, `ROCM_PATH`,
    /// `XDG_CACHE_HOME` and their like count. This is the one place where the library reads the environment, and it does so
    /// now.
    #[must_use]
    pub fn environment(mut self) -> Self {
        let variable = |name: &str| std::env::var_os(name);
        self.toolkit = Toolkit::discover(&Search::from_variables(variable));
        self.cache = toolkit::cache_directory(variable);
        self
    }

    /// Tells of progress: modules that begin, enter a stage and are done, taken from the cache or not.
    #[must_use]
    pub fn progress(mut self, callback: ProgressCallback) -> Self {
        self.progress = Some(callback);
        self
    }

    /// Asks `gate` before anything is compiled: what it refuses ends the call with its reason. What the cache knows of a whole
    /// input is not asked about.
    #[must_use]
    pub fn gate(mut self, gate: Gate) -> Self {
        self.gate = Some(gate);
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
        self.threads = Some(Threads::Own(threads.max(1)));
        self
    }

    /// Compiles on threads that the embedder has already.
    #[must_use]
    pub fn executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.threads = Some(Threads::Theirs(executor));
        self
    }

    /// A directory for what is made once for each toolkit: the shared object of nvPTXCompiler. Without one, or where it cannot be
    /// written, each process makes it anew, in a quarter of a second.
    #[must_use]
    pub fn cache_directory(mut self, directory: PathBuf) -> Self {
        self.cache = Some(directory);
        self
    }

    /// Keeps results in a cache, and takes them from there. Several compilers may share one. Default, and with `None`: none.
    #[must_use]
    pub fn cache(mut self, cache: impl Into<Option<Cache>>) -> Self {
        self.results = cache.into();
        self
    }

    /// The program that does the work with [`Isolation::Worker`](crate::options::Isolation::Worker).
    #[must_use]
    pub fn worker(mut self, worker: worker::Worker) -> Self {
        self.worker = Some(worker);
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
            cache_dir: self.cache.clone(),
            notes: self.results.as_ref().and_then(Cache::directory).map(PathBuf::from),
        };
        let threads = self
            .threads
            .unwrap_or_else(|| Threads::Own(available_parallelism().map_or(1, usize::from)));
        Compiler {
            options: self.options,
            listeners: self.listeners,
            cache: self.cache,
            results: self.results,
            contexts: Arc::new(Contexts::new(MOST_IDLE_CONTEXTS)),
            workers: Arc::new(worker::Pool::new(threads.most())),
            pool: Arc::new(Pool::new(threads)),
            ptx_to_cubin: Arc::new(PtxToCubin::new(parts)),
            vendor_libraries: Arc::default(),
            worker: self.worker,
            cancellation: CancellationToken::new(),
            observer: None,
            progress: self.progress,
            gate: self.gate,
            toolkit: Arc::new(self.toolkit),
        }
    }
}

impl Compiler {
    /// Starts to build a compiler.
    #[must_use]
    pub fn builder() -> CompilerBuilder {
        CompilerBuilder::default()
    }

    /// A builder with everything that this compiler was built with, to be changed.
    #[must_use]
    pub fn to_builder(&self) -> CompilerBuilder {
        CompilerBuilder {
            options: self.options.clone(),
            toolkit: Toolkit::clone(&self.toolkit),
            listeners: self.listeners.clone(),
            threads: Some(self.pool.threads().clone()),
            cache: self.cache.clone(),
            results: self.results.clone(),
            worker: self.worker.clone(),
            progress: self.progress.clone(),
            gate: self.gate.clone(),
        }
    }

    /// This compiler, for calls that end when `token` is cancelled, with a typed error for each module and target that was
    /// not done. It shares everything else with this one: libraries that were read, tools that were loaded, workers.
    ///
    /// What has not begun does not begin. A running `ptxas` is killed, and so is a worker process. In this process LLVM
    /// cannot be interrupted: the work ends with the stage that it is in.
    ///
    /// ```
    /// use gpulower::{CancellationToken, Compiler, Emit, Target};
    ///
    /// let compiler = Compiler::builder().build();
    /// let token = CancellationToken::new();
    /// token.cancel(); // Usually from another thread, while the compiler works.
    /// let source = "gpu.module @m { gpu.func @k() kernel { gpu.return } }";
    /// let targets = Target::parse_list("sm_90")?;
    /// let failure = compiler
    ///     .with_cancellation(&token)
    ///     .compile_source("k.mlir", source.as_bytes(), &targets, Emit::Ptx)
    ///     .expect_err("cancelled");
    /// assert_eq!(failure.to_string(), "plan, module m, target sm_90: cancelled before it was done");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_cancellation(&self, token: &CancellationToken) -> Self {
        Self {
            cancellation: token.clone(),
            ..self.clone()
        }
    }

    /// This compiler, for calls that end when those of the other one do.
    #[must_use]
    pub(crate) fn with_cancellation_of(&self, other: &Self) -> Self {
        self.with_cancellation(&other.cancellation)
    }

    /// This compiler with other options. It shares everything else with this one: libraries that were read, tools that were
    /// loaded, workers.
    #[must_use]
    pub fn with_options(&self, options: Options) -> Self {
        Self {
            options,
            ..self.clone()
        }
    }

    /// This compiler with one more listener. It shares everything else with this one.
    #[must_use]
    pub fn with_listener(&self, listener: Arc<dyn StageListener>) -> Self {
        let mut compiler = self.clone();
        compiler.listeners.push(listener);
        compiler
    }

    /// This compiler, for calls that tell their progress. It shares everything else with this one.
    #[must_use]
    pub fn with_progress(&self, callback: ProgressCallback) -> Self {
        Self {
            progress: Some(callback),
            ..self.clone()
        }
    }

    /// The options of every compilation.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The toolkits in use.
    pub fn toolkit(&self) -> &Toolkit {
        &self.toolkit
    }

    /// Where results are kept, if they are.
    pub fn cache(&self) -> Option<&Cache> {
        self.results.as_ref()
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

    /// Compiles several inputs, all or none: with [`Options::device_link`] their modules become one image for each target, and
    /// PTX among them is linked as an object. Nothing is compiled if one of them cannot be read or planned.
    ///
    /// # Errors
    ///
    /// Everything that failed.
    pub fn compile_sources(
        &self,
        inputs: &[(&str, &[u8])],
        targets: impl Into<Targets>,
        emit: Emit,
    ) -> Result<Compilation, Failure> {
        let mut all = Compilation::default();
        let mut errors = Vec::new();
        for result in self.compile_inputs(inputs, &targets.into(), emit, OnError::Stop) {
            match result.into_result() {
                Ok(compilation) => all.artifacts.extend(compilation.artifacts),
                Err(failure) => errors.extend(failure.errors),
            }
        }
        if errors.is_empty() {
            Ok(self.with_cache_warnings(all))
        } else {
            Err(Failure { errors })
        }
    }

    /// Compiles several inputs, each for itself: one that fails costs no other. The results are in the order of the inputs.
    ///
    /// ```
    /// use gpulower::{Compiler, Emit, Target};
    ///
    /// let good = "gpu.module @m { gpu.func @k() kernel { gpu.return } }";
    /// let inputs = [("good.mlir", good.as_bytes()), ("bad.mlir", b"gpu.module {")];
    /// let targets = Target::parse_list("sm_90")?;
    /// let results = Compiler::builder().build().compile_many(&inputs, &targets, Emit::Ptx);
    /// assert!(results[0].is_ok());
    /// let error = &results[1].as_ref().expect_err("no module").errors[0];
    /// assert_eq!(error.input.as_ref().map(|input| input.index), Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn compile_many(
        &self,
        inputs: &[(&str, &[u8])],
        targets: impl Into<Targets>,
        emit: Emit,
    ) -> Vec<Result<Compilation, Failure>> {
        self.compile_inputs(inputs, &targets.into(), emit, OnError::KeepGoing)
            .into_iter()
            .map(|result| Ok(self.with_cache_warnings(result.into_result()?)))
            .collect()
    }

    /// Compiles what can be compiled of several inputs: an artifact that fails costs no other, of its input neither.
    pub fn compile_available(
        &self,
        inputs: &[(&str, &[u8])],
        targets: impl Into<Targets>,
        emit: Emit,
    ) -> (Compilation, Vec<Error>) {
        let (mut all, mut errors) = (Compilation::default(), Vec::new());
        for result in self.compile_inputs(inputs, &targets.into(), emit, OnError::KeepGoing) {
            all.artifacts.extend(result.artifacts);
            errors.extend(result.errors);
        }
        (self.with_cache_warnings(all), errors)
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
        with_deep_stack(|| {
            let outlined = outline(context, module)?;
            let requests = self.requests_of_all(0, outlined.as_ref().unwrap_or(module), &targets, emit)?;
            let requests = self.joined(requests);
            self.refuse(&requests, emit, |_| None)?;
            Ok(self.with_cache_warnings(collect(self.run_requests(
                is_threaded(context),
                requests,
                emit,
                &self.reporter(),
            ))?))
        })
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
        source: Source<SharedModule<'static>>,
        name: &str,
        targets: &Targets,
        emit: Emit,
    ) -> Result<Compilation, Failure> {
        let requests = self.joined(self.requests_of_device_source(0, source, name, targets, emit)?);
        self.refuse(&requests, emit, |_| None)?;
        Ok(self.with_cache_warnings(collect(self.run_requests(true, requests, emit, &self.reporter()))?))
    }

    /// Who is told of the stages of a piece of work.
    fn observer_of(&self, module: &str, target: &Target) -> Option<StageObserver> {
        let Some(callback) = self.progress.clone() else {
            return self.observer.clone();
        };
        let (module, target) = (module.to_owned(), *target);
        Some(Arc::new(move |stage| {
            let subject = Subject {
                module: &module,
                target: &target,
            };
            callback(&Progress::Stage { subject, stage });
        }))
    }

    /// Who is told how many kernels of a piece of work are done.
    fn kernels_told<'a>(&'a self, module: &'a str, target: &'a Target) -> impl Fn(usize, usize) + Sync + 'a {
        move |done, total| {
            if let Some(callback) = &self.progress {
                let subject = Subject { module, target };
                callback(&Progress::Kernels { subject, done, total });
            }
        }
    }

    /// The threads of its calls, and of sessions.
    pub(crate) fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Tells the progress of one call.
    pub(crate) fn reporter(&self) -> Reporter {
        Reporter::new(self.progress.clone())
    }

    /// The hash of a vendor's device library; `None` where there is none.
    fn vendor_digest(&self, which: VendorLibrary) -> Option<blake3::Hash> {
        let library = self.vendor_library(which).ok()?;
        Some(*self.vendor_libraries.digests[slot(which).0].get_or_init(|| blake3::hash(&library.bytes)))
    }

    /// A vendor's device library, read once.
    fn vendor_library(&self, which: VendorLibrary) -> Result<LoadedLibrary, ToolkitError> {
        let (slot, kind) = slot(which);
        let libraries = &self.vendor_libraries;
        let _guard = libraries
            .loading
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(library) = libraries.slots[slot].get() {
            return Ok(library.clone());
        }
        let path = self.toolkit.require(kind)?;
        let bytes = std::fs::read(path).map_err(|source| ToolkitError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let library = LoadedLibrary::new(path.display().to_string(), bytes.into());
        Ok(libraries.slots[slot].get_or_init(|| library).clone())
    }
}

/// Where a vendor's library is kept, and which part of a toolkit it is.
const fn slot(which: VendorLibrary) -> (usize, PartKind) {
    match which {
        VendorLibrary::Libdevice => (0, PartKind::Libdevice),
        VendorLibrary::Ocml => (1, PartKind::Ocml),
        VendorLibrary::Ockl => (2, PartKind::Ockl),
    }
}

/// Reads the user's libraries.
fn load_libraries(libraries: &[Library], stage: Stage) -> Result<Vec<LoadedLibrary>, Error> {
    libraries
        .iter()
        .map(|library| {
            let bytes: Arc<[u8]> = match library {
                Library::File(path) => read_file(path, MOST_BYTES)
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
            if stage == Stage::Link {
                check_nesting(InputKind::Llvm, &library.name(), &bytes).map_err(|error| Error::new(stage, error))?;
            }
            Ok(LoadedLibrary::new(library.name(), bytes))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use melior::Context;

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
