//! The programs `gpulower` and `gpulower-opt` as functions: what their `main` calls, and the Python package, which carries both
//! in one library.

mod cli;
mod opt;

use std::{ffi::OsString, path::PathBuf, sync::OnceLock};

pub use cli::{doctor_report, main, target_report};
pub use opt::main as opt_main;

/// What surrounds the programs, where that is not an executable file of their own. The default is for executables.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// What starts a worker process: a program by its absolute path, and its arguments. None for this executable.
    pub worker: Option<(PathBuf, Vec<OsString>)>,
    /// Folders of Python packages that may hold NVIDIA's wheels.
    pub site_packages: Vec<PathBuf>,
}

static HOST: OnceLock<Host> = OnceLock::new();

/// Says what surrounds the programs. The first call counts.
pub fn set_host(host: Host) {
    let _ = HOST.set(host);
}

/// What surrounds the programs.
fn host() -> &'static Host {
    HOST.get_or_init(Host::default)
}
