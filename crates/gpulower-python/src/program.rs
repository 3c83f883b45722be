//! The programs that the package carries, and the worker.

use std::{ffi::OsString, path::PathBuf};

use gpulower::{ErrorKind, Stage, options::DESCRIPTIONS};
use pyo3::{PyResult, Python, pyfunction};
use serde::Serialize;

use crate::failure::{self, json};

/// Says how workers are started, and where packages are, for `main` and `opt_main`.
#[pyfunction]
pub fn set_host(worker: Option<(PathBuf, Vec<OsString>)>, site_packages: Vec<PathBuf>) {
    gpulower_cli::set_host(gpulower_cli::Host { worker, site_packages });
}

/// Runs `gpulower`; the exit status.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    gpulower::fail_in_words();
    py.detach(|| gpulower_cli::main(arguments))
}

/// Runs `gpulower-opt`; the exit status.
#[pyfunction]
pub fn opt_main(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    gpulower::fail_in_words();
    py.detach(|| gpulower_cli::opt_main(arguments))
}

/// Makes this process a worker, until whoever started it has no more work.
#[pyfunction]
pub fn worker(py: Python<'_>) -> PyResult<()> {
    let served = py.detach(gpulower::worker::serve);
    served.map_err(|error| failure::of(ErrorKind::Worker, Stage::Plan, &error))
}

/// The options: names, values, defaults and summaries, as JSON.
#[pyfunction]
pub fn option_table() -> PyResult<String> {
    #[derive(Serialize)]
    struct Row {
        names: &'static [&'static str],
        values: &'static str,
        default: &'static str,
        summary: &'static str,
        adds_up: bool,
    }
    let rows = DESCRIPTIONS.iter().map(|option| Row {
        names: option.names,
        values: option.values,
        default: option.default,
        summary: option.summary,
        adds_up: option.rules.adds_up,
    });
    json(&rows.collect::<Vec<_>>())
}
