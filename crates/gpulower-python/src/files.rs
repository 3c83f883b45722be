//! What is in files: inspecting, packing, the cache's directory. No compiler takes part.

use std::path::PathBuf;

use gpulower::{
    ErrorKind, Stage, Target,
    cache::Cache,
    container::fatbin::Compression,
    image::resource::KernelResources,
    inspect::{device, inspect_with},
    occupancy::{Occupancy, bar, picture, usual_threads},
    pack::{Pack, PackFormat},
    target::{CudaRelease, Device},
};
use pyo3::{Bound, PyErr, PyResult, Python, pybacked::PyBackedBytes, pyfunction, types::PyBytes};
use serde::Serialize;

use crate::{
    failure::{self, json},
    waiting::detached,
};

fn refused(error: &dyn ToString) -> PyErr {
    failure::of(ErrorKind::Image, Stage::Input, error)
}

/// Images by their numbers.
type Images<'py> = Vec<(usize, Bound<'py, PyBytes>)>;

/// What is in a file, what devices load of it as JSON, and its images by their numbers.
#[pyfunction]
#[pyo3(signature = (name, bytes, devices, driver=None))]
pub fn inspect<'py>(
    py: Python<'py>,
    name: &str,
    bytes: PyBackedBytes,
    devices: Vec<String>,
    driver: Option<&str>,
) -> PyResult<(String, Images<'py>)> {
    #[derive(Serialize)]
    struct Document {
        #[serde(flatten)]
        inspection: gpulower::inspect::Inspection,
        devices: Vec<device::Answer>,
    }
    let mut images = Vec::new();
    let inspection = detached(py, || {
        inspect_with(name, &bytes, &mut |image, bytes| {
            images.push((image.number, bytes.to_vec()));
        })
    });
    let inspection = inspection.map_err(|error| refused(&error))?;
    let driver = match driver {
        None => None,
        Some(release) => {
            let release: CudaRelease = release.parse().map_err(|error| refused(&error))?;
            release.newest_ptx()
        }
    };
    let devices = devices
        .iter()
        .map(|name| {
            let device: Device = name
                .parse()
                .map_err(|error| failure::of(ErrorKind::Target, Stage::Plan, &error))?;
            Ok(device::answer(&inspection, device, driver))
        })
        .collect::<PyResult<_>>()?;
    let images = images
        .into_iter()
        .map(|(number, bytes)| (number, PyBytes::new(py, &bytes)))
        .collect();
    Ok((json(&Document { inspection, devices })?, images))
}

/// Puts images into one container.
#[pyfunction]
pub fn pack<'py>(
    py: Python<'py>,
    inputs: Vec<(String, PyBackedBytes, Option<String>)>,
    format: &str,
    compression: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let format = match format {
        "fatbin" => PackFormat::Fatbin,
        "bundle" => PackFormat::Bundle,
        "offload" => PackFormat::Offload,
        other => {
            return Err(refused(&format!(
                "no container is called '{other}': fatbin, bundle or offload"
            )));
        }
    };
    let compression = Compression::from_name(compression)
        .ok_or_else(|| refused(&format!("no compression is called '{compression}': none, lz4 or zstd")))?;
    let bytes = detached(py, || {
        let mut pack = Pack::default();
        for (name, bytes, target) in &inputs {
            pack.add(name, bytes, target.as_deref())?;
        }
        pack.write(format, compression)
    });
    Ok(PyBytes::new(py, &bytes.map_err(|error| refused(&error))?))
}

/// How many entries a cache has on disk, and their bytes.
#[pyfunction]
pub fn cache_usage(directory: PathBuf) -> PyResult<(u64, u64)> {
    let usage = Cache::builder().directory(directory).build().usage();
    let usage = usage.map_err(|error| failure::of(ErrorKind::Cache, Stage::Cache, &error))?;
    Ok((usage.entries, usage.bytes))
}

/// Removes them, and says what there was.
#[pyfunction]
pub fn cache_clear(directory: PathBuf) -> PyResult<(u64, u64)> {
    let usage = Cache::builder().directory(directory).build().clear();
    let usage = usage.map_err(|error| failure::of(ErrorKind::Cache, Stage::Cache, &error))?;
    Ok((usage.entries, usage.bytes))
}

/// Blocks, waves, the most of these, the limit, a bar, a picture, and all in words.
type Filled = (u32, u32, u32, &'static str, String, String, String);

/// How full a multiprocessor or compute unit is with blocks of a kernel, which is described as JSON.
#[pyfunction]
pub fn occupancy(target: &str, kernel: &str, threads: Option<u32>, dynamic_shared: u64) -> PyResult<Option<Filled>> {
    let target: Target = target
        .parse()
        .map_err(|error| failure::of(ErrorKind::Target, Stage::Plan, &error))?;
    let kernel: KernelResources = serde_json::from_str(kernel).map_err(|error| refused(&error))?;
    let threads = threads.unwrap_or_else(|| usual_threads(&kernel));
    let filled = Occupancy::of(&target, &kernel, threads, dynamic_shared);
    Ok(filled.map(|filled| {
        let (blocks, waves, most) = (filled.blocks, filled.waves, filled.most_waves);
        let limit = filled.name(filled.limit);
        (
            blocks,
            waves,
            most,
            limit,
            bar(&filled),
            picture(&filled),
            filled.to_string(),
        )
    }))
}
