//! Results: what was made, what failed, what deserves attention, and a report of it.

use std::sync::{Arc, OnceLock};

use gpulower::{Artifact, Compilation, Failure, InputId};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::problem::{Problem, Status, Text};

/// Version of the form of reports. Fields may be added to version 1; none changes its meaning.
const SCHEMA: u32 = 1;

/// Something that was made.
#[derive(Debug)]
pub(crate) struct Product {
    /// With a NUL behind it, since drivers take PTX as a string.
    bytes: Vec<u8>,
    pub module: Text,
    pub format: Text,
    pub targets: Text,
    pub input: Option<usize>,
}

impl Product {
    pub(crate) fn new(mut bytes: Vec<u8>, module: &str, format: &str, targets: &str, input: Option<usize>) -> Self {
        bytes.push(0);
        Self {
            bytes,
            module: module.into(),
            format: format.into(),
            targets: targets.into(),
            input,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.split_last().map_or(&[], |(_, bytes)| bytes)
    }
}

/// What one call came to.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub status: Status,
    pub products: Vec<Product>,
    pub errors: Vec<Arc<Problem>>,
    pub warnings: Vec<Arc<Problem>>,
    pub report: Text,
    /// Handles of the errors and of the warnings.
    handles: OnceLock<(Vec<usize>, Vec<usize>)>,
}

impl Outcome {
    /// Of an operation: the report has `fields`, errors and warnings.
    pub(crate) fn new(
        operation: &str,
        fields: Map<String, Value>,
        products: Vec<Product>,
        errors: Vec<Problem>,
        warnings: Vec<Problem>,
    ) -> Self {
        #[derive(Serialize)]
        struct Document<'a> {
            schema: u32,
            version: &'static str,
            operation: &'a str,
            #[serde(flatten)]
            fields: Map<String, Value>,
            errors: &'a [Problem],
            warnings: &'a [Problem],
        }
        let document = Document {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            operation,
            fields,
            errors: &errors,
            warnings: &warnings,
        };
        // Maps of strings to values of ours are written without fail.
        let report = serde_json::to_string(&document).unwrap_or_default().into();
        Self {
            status: errors.first().map_or(Status::Ok, |first| first.status),
            products,
            errors: errors.into_iter().map(Arc::new).collect(),
            warnings: warnings.into_iter().map(Arc::new).collect(),
            report,
            handles: OnceLock::new(),
        }
    }

    /// Nothing was made.
    pub(crate) fn failed(operation: &str, errors: Vec<Problem>) -> Self {
        Self::new(operation, Map::new(), Vec::new(), errors, Vec::new())
    }

    pub(crate) fn set_handles(&self, errors: Vec<usize>, warnings: Vec<usize>) {
        // A result gets its handles once.
        let _ = self.handles.set((errors, warnings));
    }

    pub(crate) fn handles(&self) -> impl Iterator<Item = usize> {
        let both = self.handles.get().into_iter();
        both.flat_map(|(errors, warnings)| errors.iter().chain(warnings).copied())
    }

    /// The handle of an error.
    pub(crate) fn error_handle(&self, index: usize) -> Option<usize> {
        self.handles.get()?.0.get(index).copied()
    }

    /// The handle of a warning.
    pub(crate) fn warning_handle(&self, index: usize) -> Option<usize> {
        self.handles.get()?.1.get(index).copied()
    }
}

/// The errors of a failure.
pub(crate) fn problems(failure: &Failure) -> Vec<Problem> {
    failure.errors.iter().map(Problem::from).collect()
}

/// A value of ours as JSON.
pub(crate) fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

/// Compilations, one or one for each input.
pub(crate) fn compiled(results: Vec<Result<Compilation, Failure>>) -> Outcome {
    #[derive(Serialize)]
    struct Entry<'a> {
        input: Option<&'a InputId>,
        #[serde(flatten)]
        artifact: &'a Artifact,
    }
    let (mut entries, mut products) = (Vec::new(), Vec::new());
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for result in results {
        let compilation = match result {
            Ok(compilation) => compilation,
            Err(failure) => {
                errors.extend(problems(&failure));
                continue;
            }
        };
        warnings.extend(
            compilation
                .warnings
                .iter()
                .map(|warning| Problem::warning(warning, None)),
        );
        for artifact in compilation.artifacts {
            let input = artifact.input.as_ref();
            let index = input.map(|input| input.index);
            entries.push(json(&Entry {
                input,
                artifact: &artifact,
            }));
            warnings.extend(artifact.warnings.iter().map(|warning| Problem::warning(warning, index)));
            let (format, targets) = (name_of(&artifact.format), artifact.target_names());
            products.push(Product::new(artifact.bytes, &artifact.module, &format, &targets, index));
        }
    }
    let fields = Map::from_iter([("artifacts".to_owned(), Value::Array(entries))]);
    Outcome::new("compile", fields, products, errors, warnings)
}

/// The name of a value of an enumeration, as it stands in reports.
pub(crate) fn name_of(value: &impl Serialize) -> String {
    json(value).as_str().unwrap_or_default().to_owned()
}
