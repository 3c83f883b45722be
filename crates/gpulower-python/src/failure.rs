//! Failures as an exception that carries JSON, which the package turns into its own exceptions.

use gpulower::{Error, ErrorKind, Location, Note, Stage};
use pyo3::{PyErr, create_exception, exceptions::PyException};
use serde::Serialize;

create_exception!(gpulower._native, Failure, PyException);

/// One error.
#[derive(Serialize)]
struct Entry<'a> {
    code: &'static str,
    stage: Stage,
    input: Option<usize>,
    module: Option<&'a str>,
    target: Option<String>,
    kernels: &'a [String],
    place: Option<Place>,
    symbols: Vec<&'a str>,
    message: &'a str,
    notes: Vec<Remark<'a>>,
    /// Everything in one message, as the command line prints it.
    text: String,
}

#[derive(Serialize)]
struct Remark<'a> {
    place: Place,
    message: &'a str,
}

#[derive(Serialize)]
struct Place {
    /// As MLIR writes it.
    mlir: String,
    /// For people.
    shown: String,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
}

impl From<&Location> for Place {
    fn from(location: &Location) -> Self {
        Self {
            mlir: location.as_mlir().to_owned(),
            shown: location.to_string(),
            file: location.file().map(str::to_owned),
            line: location.line(),
            column: location.column(),
        }
    }
}

impl<'a> From<&'a Error> for Entry<'a> {
    fn from(error: &'a Error) -> Self {
        Self {
            code: error.kind.code(),
            stage: error.stage,
            input: error.input.as_ref().map(|input| input.index),
            module: error.module.as_deref(),
            target: error.target.map(|target| target.to_string()),
            kernels: &error.kernels,
            place: error.location.as_ref().map(Place::from),
            symbols: error.symbols.iter().map(|symbol| symbol.name.as_str()).collect(),
            message: &error.message,
            notes: error
                .notes
                .iter()
                .map(|Note { location, message }| Remark {
                    place: location.into(),
                    message,
                })
                .collect(),
            text: error.to_string(),
        }
    }
}

/// The exception for a failed compilation.
pub fn of_compilation(failure: &gpulower::Failure) -> PyErr {
    raise(&failure.errors.iter().map(Entry::from).collect::<Vec<_>>())
}

/// The exception for what failed without being a compilation.
pub fn of(kind: ErrorKind, stage: Stage, error: &dyn ToString) -> PyErr {
    let message = error.to_string();
    raise(&[Entry {
        code: kind.code(),
        stage,
        input: None,
        module: None,
        target: None,
        kernels: &[],
        place: None,
        symbols: Vec::new(),
        message: &message,
        notes: Vec::new(),
        text: format!("{stage}: {message}"),
    }])
}

fn raise(entries: &[Entry<'_>]) -> PyErr {
    match serde_json::to_string(entries) {
        Ok(text) => Failure::new_err(text),
        Err(error) => Failure::new_err(error.to_string()),
    }
}

/// A value as JSON.
pub fn json(value: &impl Serialize) -> Result<String, PyErr> {
    serde_json::to_string(value).map_err(|error| of(ErrorKind::Internal, Stage::Output, &error))
}
