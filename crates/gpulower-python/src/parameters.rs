//! The parameters of kernels as the source declares them, for those who pass arguments.

use gpulower::{
    compiler::{InputKind, context, parse},
    melior::ir::{
        BlockLike, RegionLike,
        operation::{OperationLike, OperationRef},
    },
};
use pyo3::{PyResult, Python, pybacked::PyBackedBytes, pyfunction};

use crate::waiting::detached;

/// A kernel's name, and its type in MLIR's syntax, `(memref<?xf32>, f32) -> ()`.
type Kernel = (String, String);

/// Every `gpu.func` that is a kernel; nothing for sources that are not MLIR, or cannot be read.
#[pyfunction]
pub fn parameters(py: Python<'_>, name: &str, bytes: PyBackedBytes) -> PyResult<Vec<Kernel>> {
    Ok(detached(py, || kernels(name, &bytes)))
}

fn kernels(name: &str, bytes: &[u8]) -> Vec<Kernel> {
    let mut found = Vec::new();
    if !matches!(InputKind::of(name, bytes), Ok(InputKind::Mlir)) {
        return found;
    }
    let context = context();
    if let Ok(module) = parse(&context, name, bytes) {
        collect(module.as_operation(), &mut found);
    }
    found
}

/// Modules are nested as deeply as the reader of inputs permits; kernels are in them, and not in functions.
fn collect(operation: OperationRef<'_, '_>, found: &mut Vec<Kernel>) {
    match operation.name().as_string_ref().as_str() {
        Ok("builtin.module" | "gpu.module") => {
            for region in operation.regions() {
                let mut block = region.first_block();
                while let Some(current) = block {
                    let mut inner = current.first_operation();
                    while let Some(operation) = inner {
                        collect(operation, found);
                        inner = operation.next_in_block();
                    }
                    block = current.next_in_region();
                }
            }
        }
        Ok("gpu.func") => {
            let is_kernel = operation.has_attribute("gpu.kernel") || operation.has_attribute("kernel");
            let text = |name| {
                operation
                    .attribute(name)
                    .map(|attribute| attribute.to_string())
                    .unwrap_or_default()
            };
            if is_kernel {
                let name = text("sym_name").trim_matches('"').to_owned();
                found.push((name, text("function_type")));
            }
        }
        _ => {}
    }
}
