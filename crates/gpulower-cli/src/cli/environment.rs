//! The environment: the only place where variables are read.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::Args;
use gpulower::{Compiler, CompilerBuilder, Options, Search, Toolkit, Worker};

use super::{
    cache::CacheOptions,
    message::{self, Problem},
};

/// Where the vendors' tools are, for every command that uses them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Toolkits")]
pub struct Toolkits {
    /// Use this CUDA toolkit and no other [default: CUDA_HOME, CUDA_PATH, CUDA_ROOT, Python wheels, the usual places]
    #[arg(long, value_name = "DIR")]
    cuda: Option<PathBuf>,
    /// Use this ROCm and no other [default: HIP_DEVICE_LIB_PATH, ROCM_PATH, ROCM_ROOT, ROCM_HOME, the usual places]
    #[arg(long, value_name = "DIR")]
    rocm: Option<PathBuf>,
    /// Keep compiled results, and what is made once for each toolkit, here [default: gpulower in XDG_CACHE_HOME or ~/.cache]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    /// Read nothing that is not named: no variables, no usual places, no cache but that of --cache-dir; tools are those of --cuda and
    /// --rocm
    #[arg(long)]
    hermetic: bool,
}

impl Toolkits {
    /// Looks for the toolkits. One that was named has to exist.
    pub fn toolkit(&self) -> Result<Toolkit, Problem> {
        Ok(Toolkit::discover(&self.search()?))
    }

    /// Where to look for them.
    pub fn search(&self) -> Result<Search, Problem> {
        let mut search = if self.hermetic {
            Search::nowhere()
        } else {
            warn_about_relative_variables();
            search()
        };
        if let Some(root) = &self.cuda {
            is_directory("--cuda", root)?;
            search = search.with_cuda(root);
        }
        if let Some(root) = &self.rocm {
            is_directory("--rocm", root)?;
            search = search.with_rocm(root);
        }
        Ok(search)
    }

    /// A further CUDA toolkit, alone.
    pub fn cuda_toolkit(option: &str, root: &Path) -> Result<Toolkit, Problem> {
        is_directory(option, root)?;
        Ok(Toolkit::discover(&Search::nowhere().with_cuda(root)))
    }

    /// The directory for what is kept between runs, if there is a place for one.
    pub fn cache_directory(&self) -> Option<PathBuf> {
        let named = self.cache_dir.clone();
        if self.hermetic {
            named
        } else {
            named.or_else(cache_directory)
        }
    }

    /// Whether nothing may be read that is not named.
    pub const fn is_hermetic(&self) -> bool {
        self.hermetic
    }
}

/// What lies in the current directory is not run because it lies there; whoever meant it should know.
fn warn_about_relative_variables() {
    for name in Search::VARIABLES {
        let value = variable(name).map(PathBuf::from);
        if let Some(value) = value.filter(|value| !value.is_absolute()) {
            message::warn(&format!(
                "{name}={} is ignored, since it is relative: give the whole path, or use --cuda or --rocm",
                value.display()
            ));
        }
    }
}

fn is_directory(option: &str, path: &Path) -> Result<(), Problem> {
    let wrong = |what: String| {
        Err(Problem::plan(format!(
            "{option} {}: {what}; name the root of a toolkit, or leave the option out to have the usual places searched",
            path.display()
        )))
    };
    match path.metadata() {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => wrong("not a directory".to_owned()),
        Err(error) => wrong(error.to_string()),
    }
}

/// What a worker process needs of the environment: ptxas writes to TMPDIR, and NVIDIA's libraries may load others.
const FOR_WORKERS: [&str; 2] = ["TMPDIR", "LD_LIBRARY_PATH"];

/// Where everything is looked for when nothing is named.
pub(crate) fn search() -> Search {
    let packages = crate::host().site_packages.iter();
    packages.fold(
        Search::from_variables(|name| env::var_os(name)),
        Search::add_site_packages,
    )
}

/// The program that is a worker: the host's, or this executable.
fn worker() -> Option<Worker> {
    match &crate::host().worker {
        Some((program, arguments)) => Some(Worker::program(program).ok()?.arguments(arguments)),
        None => Worker::program(env::current_exe().ok()?).ok(),
    }
}

/// A compiler with these options, with this program as its worker, and with the cache that the command asks for.
pub fn compiler(
    options: Options,
    toolkit: Toolkit,
    toolkits: &Toolkits,
    cache: &CacheOptions,
    threads: Option<u16>,
) -> Result<CompilerBuilder, Problem> {
    let mut builder = with_worker(
        Compiler::builder().options(options).toolkit(toolkit),
        toolkits.is_hermetic(),
    );
    if let Some(threads) = threads {
        builder = builder.threads(threads.into());
    }
    if let Some(directory) = toolkits.cache_directory() {
        builder = builder.cache_directory(directory);
    }
    Ok(builder.cache(cache.cache(toolkits)?))
}

/// Makes this program the worker of a compiler. Where the system does not say which file it is, isolation is refused.
fn with_worker(builder: CompilerBuilder, hermetic: bool) -> CompilerBuilder {
    let Some(worker) = worker() else { return builder };
    builder.worker(
        FOR_WORKERS
            .into_iter()
            // Where files lie for a moment changes no result; other libraries may.
            .filter(|name| !hermetic || *name == "TMPDIR")
            .fold(worker, |worker, name| match variable(name) {
                Some(value) => worker.environment(name, value),
                None => worker,
            }),
    )
}

/// The value of a variable; an empty one counts as unset.
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The directory for what is kept between runs when none is named.
pub fn cache_directory() -> Option<PathBuf> {
    gpulower::toolkit::cache_directory(|name| env::var_os(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolkit_that_does_not_exist_is_named() {
        let refusal = |option, path: &str| is_directory(option, Path::new(path)).expect_err("refused");
        let message = refusal("--cuda", "/nonexistent").message().to_owned();
        assert!(
            message.starts_with("--cuda /nonexistent: No such file or directory"),
            "{message}"
        );
        let message = refusal("--rocm", "/dev/null").message().to_owned();
        assert!(
            message.starts_with("--rocm /dev/null: not a directory; name the root"),
            "{message}"
        );
    }
}
