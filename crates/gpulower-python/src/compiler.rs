//! The compiler, as a Python object that any thread may use.

use std::{collections::HashMap, ffi::OsString, path::PathBuf, sync::Arc};

use gpulower::{
    Compilation, Emit, ErrorKind, Library, Options, Progress, Search, Stage, Target, Toolkit, Worker,
    cache::{Cache, PublicKey, Remote, SecretKey, SettingError},
    offload::{ExportForm, ExportOptions, Names, export_source},
    options::DeviceLink,
    serialize::device_link::{self, DeviceLinkError, LinkInput, LinkOptions},
    toolkit,
};
use gpulower_remote::{Address, Credentials};
use pyo3::{Py, PyAny, PyErr, PyResult, Python, pybacked::PyBackedBytes, pyclass, pymethods};
use serde::{Deserialize, Serialize};

use crate::{
    failure::{self, json},
    report::{self, Made},
    waiting::{attended, detached},
};

/// What a compiler is made with.
#[derive(Deserialize)]
struct Configuration {
    options: Vec<(String, String)>,
    /// The environment, as far as it counts.
    variables: HashMap<String, String>,
    site_packages: Vec<PathBuf>,
    cuda: Option<PathBuf>,
    rocm: Option<PathBuf>,
    threads: Option<usize>,
    /// Whether there is a directory at all.
    cached: bool,
    cache_directory: Option<PathBuf>,
    cache_bytes: Option<u64>,
    cache_memory_bytes: Option<u64>,
    cache_verify: bool,
    cache_remote: Option<String>,
    cache_sign_key: Option<PathBuf>,
    cache_accept_keys: Vec<String>,
    cache_shared_with: Option<String>,
    /// Whether credentials may be those of the environment.
    of_environment: bool,
    /// The program, its arguments, its environment.
    worker: Option<(PathBuf, Vec<String>, HashMap<String, String>)>,
    device_link: bool,
}

/// A file with a name for messages, or a name that is a path.
type NamedLibrary = (String, Option<PyBackedBytes>);

/// Inputs: names and contents.
type Inputs = Vec<(String, PyBackedBytes)>;

/// What ends compilations from another thread.
#[pyclass(frozen)]
#[derive(Clone, Debug, Default)]
pub struct Token(gpulower::CancellationToken);

#[pymethods]
impl Token {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

fn of_sharing<E: ToString>(error: &E) -> PyErr {
    failure::of(ErrorKind::Option, Stage::Plan, error)
}

#[pyclass(frozen)]
#[derive(Debug)]
pub struct Compiler {
    compiler: gpulower::Compiler,
    search: Search,
    directory: Option<PathBuf>,
}

#[pymethods]
impl Compiler {
    #[new]
    fn new(configuration: &str, libraries: Vec<NamedLibrary>, objects: Vec<NamedLibrary>) -> PyResult<Self> {
        let configuration: Configuration = serde_json::from_str(configuration)
            .map_err(|error| failure::of(ErrorKind::Internal, Stage::Plan, &error))?;
        let search = configuration.search();
        let directory = configuration.directory();
        let mut options = configuration.options()?;
        options.libraries = libraries.into_iter().map(library).collect();
        if configuration.device_link || !objects.is_empty() {
            let objects = objects.into_iter().map(library).collect();
            options.device_link = Some(DeviceLink { objects });
        }
        let mut builder = gpulower::Compiler::builder()
            .options(options)
            .toolkit(Toolkit::discover(&search));
        if let Some(threads) = configuration.threads {
            builder = builder.threads(threads);
        }
        if let Some(directory) = &directory {
            builder = builder.cache_directory(directory.clone());
        }
        builder = builder.cache(configuration.cache(directory.as_ref())?);
        if let Some((program, arguments, environment)) = configuration.worker {
            let worker =
                Worker::program(program).map_err(|error| failure::of(ErrorKind::Worker, Stage::Plan, &error))?;
            let worker = worker.arguments(arguments);
            builder = builder.worker(
                environment
                    .into_iter()
                    .fold(worker, |worker, (name, value)| worker.environment(name, value)),
            );
        }
        Ok(Self {
            compiler: builder.build(),
            search,
            directory,
        })
    }

    /// Compiles the inputs, all or none: what came of it, and warnings.
    #[pyo3(signature = (inputs, targets, emit, token, progress=None))]
    fn compile<'py>(
        &self,
        py: Python<'py>,
        inputs: Inputs,
        targets: Vec<String>,
        emit: &str,
        token: &Token,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<(Vec<Made<'py>>, String)> {
        let targets = parsed(&targets)?;
        let emit: Emit = emit
            .parse()
            .map_err(|error| failure::of(ErrorKind::Target, Stage::Plan, &error))?;
        let mut compiler = self.compiler.with_cancellation(&token.0);
        if let Some(progress) = progress {
            compiler = compiler.with_progress(Arc::new(move |step| tell(&progress, step)));
        }
        let compiled = attended(py, &token.0, move || {
            compiler.compile_sources(&borrowed(&inputs), &targets, emit)
        })?;
        report::made(py, &compiled.map_err(|failure| failure::of_compilation(&failure))?)
    }

    /// Links relocatable code; MLIR and LLVM IR among the inputs are compiled, joined before they are optimised.
    fn link<'py>(
        &self,
        py: Python<'py>,
        inputs: Inputs,
        ir: Inputs,
        target: &str,
        token: &Token,
    ) -> PyResult<Made<'py>> {
        let target = one(target)?;
        let compiler = self.compiler.with_cancellation(&token.0);
        let done = attended(py, &token.0, move || {
            if ir.is_empty() {
                let linked = link_objects(&compiler, &inputs, &target).map_err(|error| of_link(&error));
                return linked.map(Linked::Image);
            }
            let objects = inputs
                .into_iter()
                .map(|(name, bytes)| library((name, Some(bytes))))
                .collect();
            let mut options = compiler.options().clone();
            options.device_link = Some(DeviceLink { objects });
            let compiled = compiler
                .with_options(options)
                .compile_sources(&borrowed(&ir), &[target], Emit::Binary);
            compiled
                .map(Linked::Compiled)
                .map_err(|failure| failure::of_compilation(&failure))
        })??;
        match done {
            Linked::Image(image) => report::linked(py, &image, target),
            Linked::Compiled(compilation) => {
                let (made, _) = report::made(py, &compilation)?;
                let nothing = || failure::of(ErrorKind::Link, Stage::DeviceLink, &"nothing came of the link");
                made.into_iter().next().ok_or_else(nothing)
            }
        }
    }

    /// Exports a whole program: the file, and what is said of it as JSON.
    #[pyo3(signature = (name, source, targets, form, finish_with, triple, keep_names, file, token))]
    #[expect(clippy::too_many_arguments, reason = "called from one place, by name")]
    fn export<'py>(
        &self,
        py: Python<'py>,
        name: String,
        source: PyBackedBytes,
        targets: Vec<String>,
        form: &str,
        finish_with: Option<&str>,
        triple: &str,
        keep_names: bool,
        file: &str,
        token: &Token,
    ) -> PyResult<Made<'py>> {
        let refused = |error: &dyn ToString| failure::of(ErrorKind::Export, Stage::Plan, error);
        let targets = parsed(&targets)?;
        let unit = name.rsplit('/').next().unwrap_or(&name).to_owned();
        let finish_with = match finish_with {
            Some(list) => Some(list.parse().map_err(|error| refused(&error))?),
            None => None,
        };
        let form = ExportForm::named(form, finish_with).map_err(|error| refused(&error))?;
        let mut options = ExportOptions::new(form, unit, triple.parse().map_err(|error| refused(&error))?);
        options.names = if keep_names { Names::Keep } else { Names::Unique };
        let compiler = self.compiler.with_cancellation(&token.0);
        let exported = attended(py, &token.0, move || {
            export_source(&compiler, &name, &source, &targets, &options)
        })?;
        let exported = exported.map_err(|failure| failure::of_compilation(&failure))?;
        let program = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let told = json(&Exported {
            commands: exported.finish.commands(file, program),
            notes: &exported.notes,
            warnings: exported
                .warnings
                .iter()
                .map(|warning| warning.message.as_str())
                .collect(),
            kernels: exported
                .program
                .kernels
                .iter()
                .map(|kernel| (kernel.source_name.as_str(), kernel.name.as_str()))
                .collect(),
        })?;
        Ok((pyo3::types::PyBytes::new(py, &exported.bytes), told))
    }

    /// How often the cache was asked, and what went wrong with it since this was last asked.
    fn cache_statistics(&self) -> Option<(Vec<u64>, Vec<String>)> {
        let cache = self.compiler.cache()?;
        let counts = cache.statistics();
        let problems = cache.take_problems().iter().map(ToString::to_string).collect();
        let remote = counts.remote;
        let own = [counts.memory_hits, counts.disk_hits, counts.misses, counts.stored];
        let shared = [
            remote.hits,
            remote.misses,
            remote.failures + remote.skipped,
            remote.refused,
            remote.uploaded + remote.known,
            remote.not_uploaded,
        ];
        Some((own.into_iter().chain(shared).collect(), problems))
    }

    /// Waits for uploads to where machines share results.
    fn finish_cache(&self, py: Python<'_>) {
        detached(py, || {
            if let Some(cache) = self.compiler.cache() {
                cache.finish();
            }
        });
    }

    /// Where results are kept.
    fn cache_directory(&self) -> Option<PathBuf> {
        self.compiler.cache()?.directory().map(PathBuf::from)
    }

    /// Every target, and who can finish it here, as JSON.
    fn targets(&self, py: Python<'_>) -> PyResult<String> {
        let compiler = self.compiler.clone();
        let report = detached(py, move || {
            serde_json::to_string(&gpulower_cli::target_report(&compiler))
        });
        report.map_err(|error| failure::of(ErrorKind::Internal, Stage::Output, &error))
    }

    /// What `gpulower doctor` says, as JSON.
    fn doctor(&self, py: Python<'_>) -> PyResult<String> {
        let (search, directory) = (self.search.clone(), self.directory.clone());
        let report = detached(py, move || {
            serde_json::to_string(&gpulower_cli::doctor_report(&search, directory))
        });
        report.map_err(|error| failure::of(ErrorKind::Internal, Stage::Output, &error))
    }

    /// The processes of workers that run now.
    fn worker_ids(&self) -> Vec<u32> {
        self.compiler.worker_ids()
    }
}

/// What is said of an exported program.
#[derive(Serialize)]
struct Exported<'a> {
    commands: String,
    notes: &'a [String],
    warnings: Vec<&'a str>,
    kernels: Vec<(&'a str, &'a str)>,
}

/// What came of a link.
enum Linked {
    Image(device_link::LinkedImage),
    Compiled(Compilation),
}

impl Configuration {
    fn options(&self) -> PyResult<Options> {
        let mut options = Options::default();
        for (name, value) in &self.options {
            options
                .set(name, value)
                .map_err(|error| failure::of(ErrorKind::Option, Stage::Plan, &error))?;
        }
        Ok(options)
    }

    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).map(OsString::from)
    }

    fn search(&self) -> Search {
        let mut search = Search::from_variables(|name| self.variable(name));
        if let Some(root) = &self.cuda {
            search = search.with_cuda(root);
        }
        if let Some(root) = &self.rocm {
            search = search.with_rocm(root);
        }
        self.site_packages.iter().fold(search, Search::add_site_packages)
    }

    /// The directory for what is kept.
    fn directory(&self) -> Option<PathBuf> {
        let usual = || toolkit::cache_directory(|name| self.variable(name));
        self.cache_directory.clone().or_else(usual)
    }

    /// The cache of results. It lies where the command line has it.
    fn cache(&self, directory: Option<&PathBuf>) -> PyResult<Option<Cache>> {
        if !self.cached {
            return Ok(None);
        }
        let mut builder = Cache::builder().verify(self.cache_verify);
        if let Some(directory) = directory {
            builder = builder.directory(directory.join("results"));
        }
        if let Some(bytes) = self.cache_bytes {
            builder = builder.disk_bytes(bytes);
        }
        if let Some(bytes) = self.cache_memory_bytes {
            builder = builder.memory_bytes(bytes);
        }
        if let Some(whom) = &self.cache_shared_with {
            builder = builder.shared_with(whom.parse().map_err(|error: String| of_sharing(&error))?);
        }
        if let Some(remote) = self.remote()? {
            builder = builder.remote(remote);
        }
        Ok(Some(builder.build()))
    }

    /// The tier that machines share.
    fn remote(&self) -> PyResult<Option<Remote>> {
        let Some(url) = &self.cache_remote else { return Ok(None) };
        let address: Address = url.parse().map_err(|error| of_sharing::<SettingError>(&error))?;
        let credentials = match self.of_environment {
            true => Credentials::OfEnvironment,
            false => Credentials::OfAddress,
        };
        let mut builder = gpulower_remote::open(&address, credentials).map_err(|error| of_sharing(&error))?;
        if let Some(path) = &self.cache_sign_key {
            builder = builder.sign_with(SecretKey::read(path).map_err(|error| of_sharing(&error))?);
        }
        for key in &self.cache_accept_keys {
            builder = builder.accept(
                key.parse::<PublicKey>()
                    .map_err(|error| of_sharing::<SettingError>(&error))?,
            );
        }
        Ok(Some(builder.build()))
    }
}

fn library((name, bytes): NamedLibrary) -> Library {
    match bytes {
        Some(bytes) => Library::Memory {
            name,
            bytes: bytes.as_ref().into(),
        },
        None => Library::File(name.into()),
    }
}

fn borrowed(inputs: &Inputs) -> Vec<(&str, &[u8])> {
    inputs
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_ref()))
        .collect()
}

fn one(target: &str) -> PyResult<Target> {
    target
        .parse()
        .map_err(|error| failure::of(ErrorKind::Target, Stage::Plan, &error))
}

fn parsed(targets: &[String]) -> PyResult<Vec<Target>> {
    targets.iter().map(|target| one(target)).collect()
}

fn link_objects(
    compiler: &gpulower::Compiler,
    inputs: &Inputs,
    target: &Target,
) -> Result<device_link::LinkedImage, DeviceLinkError> {
    let inputs = inputs
        .iter()
        .map(|(name, bytes)| LinkInput::detect(name, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    device_link::link(&inputs, target, &LinkOptions::default(), compiler.ptx_to_cubin())
}

fn of_link(error: &DeviceLinkError) -> PyErr {
    let kind = match error {
        DeviceLinkError::Refused { kind, .. } => *kind,
        _ => ErrorKind::Link,
    };
    failure::of(kind, Stage::DeviceLink, error)
}

/// Calls Python from a thread of the compiler. What it raises has nobody to go to.
fn tell(callback: &Py<PyAny>, step: &Progress<'_>) {
    let (event, subject, stage) = match step {
        Progress::Begun { subject } => ("begun", subject, None),
        Progress::Stage { subject, stage } => ("stage", subject, Some(stage.name())),
        Progress::Finished {
            subject,
            failed,
            from_cache,
            ..
        } => match (failed, from_cache) {
            (true, _) => ("failed", subject, None),
            (false, true) => ("cached", subject, None),
            (false, false) => ("finished", subject, None),
        },
        _ => return,
    };
    let arguments = (event, subject.module.to_owned(), subject.target.to_string(), stage);
    // None while the interpreter shuts down.
    let _ = Python::try_attach(|py| {
        if let Err(raised) = callback.call1(py, arguments) {
            raised.write_unraisable(py, None);
        }
    });
}
