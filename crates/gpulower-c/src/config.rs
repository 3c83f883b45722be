//! What a compiler is made with, by key and value.

use std::{ffi::OsString, path::PathBuf, str::FromStr};

use gpulower::{
    Compiler, ErrorKind, Options, ProgressCallback, Search, Stage, Toolkit, Worker,
    cache::{Cache, PublicKey, Remote, SecretKey, SharedWith},
    options::OptionError,
    toolkit,
};
use gpulower_remote::{Address, Credentials};

use crate::problem::Problem;

/// A compiler to be. The keys of options are those of `docs/options.md`; the others are in [`Config::set`].
#[derive(Clone, Default)]
pub(crate) struct Config {
    options: Options,
    environment: bool,
    only_named: bool,
    cuda: Option<PathBuf>,
    rocm: Option<PathBuf>,
    cuda_roots: Vec<PathBuf>,
    rocm_roots: Vec<PathBuf>,
    site_packages: Vec<PathBuf>,
    path: Option<OsString>,
    cache_directory: Option<PathBuf>,
    cache: bool,
    cache_bytes: Option<u64>,
    cache_memory: Option<u64>,
    cache_remote: Option<Address>,
    cache_sign_key: Option<SecretKey>,
    cache_accept_keys: Vec<PublicKey>,
    cache_shared_with: Option<SharedWith>,
    threads: Option<usize>,
    worker: Option<PathBuf>,
    worker_arguments: Vec<String>,
    worker_environment: Vec<(String, String)>,
    pub progress: Option<ProgressCallback>,
}

impl Config {
    /// Sets one thing. The header lists the keys.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), Problem> {
        match key {
            "environment" => self.environment = switch(key, value)?,
            "usual-places" => self.only_named = !switch(key, value)?,
            "cuda" => self.cuda = Some(directory(key, value)?),
            "rocm" => self.rocm = Some(directory(key, value)?),
            "cuda-root" => self.cuda_roots.push(value.into()),
            "rocm-root" => self.rocm_roots.push(value.into()),
            "site-packages" => self.site_packages.push(value.into()),
            "path" => self.path = Some(value.into()),
            "cache-dir" => self.cache_directory = Some(value.into()),
            "cache" => self.cache = switch(key, value)?,
            "cache-bytes" => self.cache_bytes = Some(number(key, value)?),
            "cache-memory-bytes" => self.cache_memory = Some(number(key, value)?),
            // Neither a URL nor a path to a key is in a message: `refused` would repeat them.
            "cache-remote" => self.cache_remote = Some(value.parse().map_err(of_sharing)?),
            "cache-sign-key" => self.cache_sign_key = Some(SecretKey::read(value.as_ref()).map_err(of_sharing)?),
            "cache-accept-key" => self.cache_accept_keys.push(value.parse().map_err(of_sharing)?),
            "cache-shared-with" => self.cache_shared_with = Some(value.parse().map_err(of_sharing)?),
            "threads" => {
                let threads = number(key, value)?;
                if threads == 0 {
                    return Err(refused(key, value, "a number above 0"));
                }
                self.threads = Some(threads);
            }
            "worker" => self.worker = Some(value.into()),
            "worker-argument" => self.worker_arguments.push(value.to_owned()),
            "worker-environment" => {
                let (name, value) = value.split_once('=').ok_or_else(|| refused(key, value, "NAME=VALUE"))?;
                self.worker_environment.push((name.to_owned(), value.to_owned()));
            }
            _ => set_option(&mut self.options, key, value)?,
        }
        Ok(())
    }

    fn search(&self) -> Search {
        let mut search = match (self.environment, self.only_named) {
            (true, _) => Search::from_variables(|name| std::env::var_os(name)),
            (false, false) => Search::default(),
            (false, true) => Search::nowhere(),
        };
        if let Some(root) = &self.cuda {
            search = search.with_cuda(root);
        }
        if let Some(root) = &self.rocm {
            search = search.with_rocm(root);
        }
        search = self.cuda_roots.iter().fold(search, Search::add_cuda_root);
        search = self.rocm_roots.iter().fold(search, Search::add_rocm_root);
        search = self.site_packages.iter().fold(search, Search::add_site_packages);
        match &self.path {
            Some(path) => search.with_path(path),
            None => search,
        }
    }

    fn worker(&self) -> Result<Option<Worker>, Problem> {
        let Some(program) = &self.worker else { return Ok(None) };
        let mut worker = Worker::program(program)
            .map_err(|error| Problem::new(Stage::Plan, ErrorKind::Worker, error.to_string()))?;
        if !self.worker_arguments.is_empty() {
            worker = worker.arguments(&self.worker_arguments);
        }
        for (name, value) in &self.worker_environment {
            worker = worker.environment(name, value);
        }
        Ok(Some(worker))
    }

    /// The tier that machines share. Credentials that are not in the URL are those of the environment, if that counts.
    fn remote(&self) -> Result<Option<Remote>, Problem> {
        let Some(address) = &self.cache_remote else {
            return Ok(None);
        };
        let credentials = match self.environment {
            true => Credentials::OfEnvironment,
            false => Credentials::OfAddress,
        };
        let mut builder = gpulower_remote::open(address, credentials).map_err(of_sharing)?;
        if let Some(key) = &self.cache_sign_key {
            builder = builder.sign_with(key.clone());
        }
        let keys = self.cache_accept_keys.iter();
        Ok(Some(keys.fold(builder, |builder, key| builder.accept(*key)).build()))
    }

    /// Looks for the toolkits and makes the compiler.
    pub(crate) fn compiler(&self) -> Result<Compiler, Problem> {
        let mut builder = Compiler::builder()
            .options(self.options.clone())
            .toolkit(Toolkit::discover(&self.search()));
        let of_environment = || toolkit::cache_directory(|name| std::env::var_os(name)).filter(|_| self.environment);
        let directory = self.cache_directory.clone().or_else(of_environment);
        if self.cache {
            let mut cache = Cache::builder();
            if let Some(directory) = &directory {
                cache = cache.directory(directory.join("results"));
            }
            if let Some(bytes) = self.cache_bytes {
                cache = cache.disk_bytes(bytes);
            }
            if let Some(bytes) = self.cache_memory {
                cache = cache.memory_bytes(bytes);
            }
            if let Some(whom) = self.cache_shared_with {
                cache = cache.shared_with(whom);
            }
            if let Some(remote) = self.remote()? {
                cache = cache.remote(remote);
            }
            builder = builder.cache(cache.build());
        }
        if let Some(directory) = directory {
            builder = builder.cache_directory(directory);
        }
        if let Some(threads) = self.threads {
            builder = builder.threads(threads);
        }
        if let Some(worker) = self.worker()? {
            builder = builder.worker(worker);
        }
        if let Some(progress) = &self.progress {
            builder = builder.progress(progress.clone());
        }
        Ok(builder.build())
    }
}

/// Sets an option of the table.
pub(crate) fn set_option(options: &mut Options, key: &str, value: &str) -> Result<(), Problem> {
    options
        .set(key, value)
        .map_err(|error: OptionError| Problem::new(Stage::Plan, ErrorKind::Option, error.to_string()))
}

fn of_sharing(error: impl ToString) -> Problem {
    Problem::new(Stage::Plan, ErrorKind::Option, error.to_string())
}

pub(crate) fn refused(key: &str, value: &str, expected: &str) -> Problem {
    let message = format!("'{key}' cannot be '{value}': expected {expected}");
    Problem::new(Stage::Plan, ErrorKind::Option, message)
}

pub(crate) fn switch(key: &str, value: &str) -> Result<bool, Problem> {
    value.parse().map_err(|_| refused(key, value, "true or false"))
}

fn number<N: FromStr>(key: &str, value: &str) -> Result<N, Problem> {
    value.parse().map_err(|_| refused(key, value, "a number"))
}

/// A toolkit that was named has to be there.
pub(crate) fn directory(key: &str, value: &str) -> Result<PathBuf, Problem> {
    let path = PathBuf::from(value);
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(path),
        Ok(_) => Err(refused(key, value, "a directory, the root of a toolkit")),
        Err(error) => Err(refused(key, value, &format!("the root of a toolkit ({error})"))),
    }
}
