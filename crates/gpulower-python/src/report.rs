//! Artifacts as bytes and JSON.

use gpulower::{
    Artifact, Compilation, Decision, Format, Image, KernelSignature, Stage, Target, Warning,
    image::resource::KernelResources, serialize::device_link::LinkedImage,
};
use pyo3::{
    Bound, PyResult, Python,
    types::{PyBytes, PyBytesMethods},
};
use serde::Serialize;

use crate::failure::json;

/// What is said of an artifact beside its bytes.
#[derive(Serialize)]
struct Report<'a> {
    input: Option<usize>,
    module: &'a str,
    format: Format,
    extension: &'static str,
    title: &'static str,
    images: &'a [Image],
    signatures: &'a [KernelSignature],
    optimization: u8,
    stages: Vec<(Stage, f64)>,
    decisions: &'a [Decision],
    warnings: Vec<Remark<'a>>,
}

#[derive(Serialize)]
struct Remark<'a> {
    stage: Stage,
    module: Option<&'a str>,
    target: Option<String>,
    place: Option<String>,
    message: &'a str,
}

impl<'a> From<&'a Warning> for Remark<'a> {
    fn from(warning: &'a Warning) -> Self {
        Self {
            stage: warning.stage,
            module: warning.module.as_deref(),
            target: warning.target.map(|target| target.to_string()),
            place: warning.place(),
            message: &warning.message,
        }
    }
}

impl<'a> From<&'a Artifact> for Report<'a> {
    fn from(artifact: &'a Artifact) -> Self {
        Self {
            input: artifact.input.as_ref().map(|input| input.index),
            module: &artifact.module,
            format: artifact.format,
            extension: artifact.format.extension(),
            title: artifact.format.title(),
            images: &artifact.images,
            signatures: &artifact.signatures,
            optimization: artifact.optimization.number(),
            stages: artifact
                .stages
                .iter()
                .map(|entry| (entry.stage, entry.time.as_secs_f64()))
                .collect(),
            decisions: &artifact.decisions,
            warnings: artifact.warnings.iter().map(Remark::from).collect(),
        }
    }
}

/// An artifact for Python: its bytes, and everything else as JSON.
pub type Made<'py> = (Bound<'py, PyBytes>, String);

/// The artifacts of a compilation, and its warnings that belong to none of them.
pub fn made<'py>(py: Python<'py>, compilation: &Compilation) -> PyResult<(Vec<Made<'py>>, String)> {
    let artifacts = compilation.artifacts.iter().map(|artifact| {
        let bytes = PyBytes::new(py, &artifact.bytes);
        Ok((bytes, json(&Report::from(artifact))?))
    });
    let warnings: Vec<Remark<'_>> = compilation.warnings.iter().map(Remark::from).collect();
    Ok((artifacts.collect::<PyResult<_>>()?, json(&warnings)?))
}

/// A linked image as if it were an artifact.
pub fn linked<'py>(py: Python<'py>, linked: &LinkedImage, target: Target) -> PyResult<Made<'py>> {
    #[derive(Serialize)]
    struct LinkReport<'a> {
        module: &'static str,
        format: Format,
        extension: &'static str,
        title: &'static str,
        images: [LinkImage<'a>; 1],
        inputs: &'a [String],
        warnings: Vec<Remark<'a>>,
    }
    #[derive(Serialize)]
    struct LinkImage<'a> {
        target: Target,
        format: Format,
        bytes: usize,
        tool: &'a str,
        kernels: &'a [KernelResources],
        log: &'a str,
    }
    let format = match target {
        Target::Nvidia(_) => Format::Cubin,
        Target::Amd(_) => Format::Hsaco,
    };
    let bytes = PyBytes::new(py, &linked.bytes);
    let report = json(&LinkReport {
        module: "linked",
        format,
        extension: format.extension(),
        title: format.title(),
        images: [LinkImage {
            target,
            format,
            bytes: bytes.as_bytes().len(),
            tool: &linked.tool,
            kernels: &linked.kernels,
            log: &linked.log,
        }],
        inputs: &linked.inputs,
        warnings: linked
            .warnings
            .iter()
            .map(|message| Remark {
                stage: Stage::DeviceLink,
                module: None,
                target: Some(target.to_string()),
                place: None,
                message,
            })
            .collect(),
    })?;
    Ok((bytes, report))
}
