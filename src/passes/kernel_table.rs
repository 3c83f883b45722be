//! `#gpu.kernel_table`: what a `gpu.object` says about its kernels.

use melior::{Context, ir::Attribute};

use crate::{
    bridge::mlir::capture_diagnostics,
    compiler::attribute::quoted,
    image::{
        hsaco_attributes::{MetadataValue, kernel_metadata},
        resource::KernelResources,
    },
    report::{Artifact, Format},
};

/// The kernel table of an artifact; `None` for formats that are not machine code.
pub(super) fn kernel_table<'c>(context: &'c Context, artifact: &Artifact) -> Option<Attribute<'c>> {
    let amd = match artifact.format {
        // A table has one entry for a kernel: the first image's.
        Format::Cubin | Format::Fatbin | Format::Bundle => None,
        Format::Hsaco | Format::Object => kernel_metadata(&artifact.bytes).ok(),
        _ => return None,
    };
    let mut entries: Vec<(String, String)> = artifact
        .signatures
        .iter()
        .map(|signature| {
            let metadata = match &amd {
                Some(kernels) => kernels
                    .iter()
                    .find(|(name, _)| *name == signature.name)
                    .map(|(_, attributes)| {
                        attributes
                            .iter()
                            .map(|(key, value)| format!("{key} = {}", amd_value(value)))
                            .collect()
                    }),
                None => artifact
                    .kernels()
                    .find(|kernel| kernel.name == signature.name)
                    .map(nvidia_metadata),
            };
            let mut parameters = vec![quoted(&signature.name), signature.function_type.clone()];
            if let Some(attributes) = &signature.argument_attributes {
                parameters.push(format!("arg_attrs = {attributes}"));
            }
            let metadata: Vec<String> = metadata.unwrap_or_default();
            if !metadata.is_empty() {
                parameters.push(format!("metadata = {{{}}}", metadata.join(", ")));
            }
            let text = format!("#gpu.kernel_metadata<{}>", parameters.join(", "));
            (signature.name.clone(), text)
        })
        .collect();
    entries.sort();
    let texts: Vec<String> = entries.into_iter().map(|(_, text)| text).collect();
    let table = format!("#gpu.kernel_table<[{}]>", texts.join(", "));
    let (attribute, diagnostics) = capture_diagnostics(context, || Attribute::parse(context, &table));
    if attribute.is_none() {
        tracing::error!(table, ?diagnostics, "the kernel table does not parse");
    }
    attribute
}

fn amd_value(value: &MetadataValue) -> String {
    match value {
        MetadataValue::Int(value) => format!("{value} : i64"),
        MetadataValue::IntArray(values) => {
            let values: Vec<String> = values.iter().map(i64::to_string).collect();
            format!("array<i32: {}>", values.join(", "))
        }
        MetadataValue::Str(text) => quoted(text),
    }
}

/// Upstream has no such entries for NVIDIA; the names are those of [`KernelResources`].
fn nvidia_metadata(kernel: &KernelResources) -> Vec<String> {
    let word = |name: &str, value: Option<u32>| value.map(|value| format!("{name} = {value} : i64"));
    let size = |name: &str, value: u64| Some(format!("{name} = {value} : i64"));
    [
        word("barriers", kernel.barriers),
        kernel.code_bytes.and_then(|bytes| size("code_bytes", bytes)),
        word("max_threads_per_block", kernel.max_threads_per_block),
        word("parameter_bytes", kernel.parameter_bytes),
        word("registers", kernel.registers),
        size("scratch_bytes", kernel.scratch_bytes),
        size("shared_bytes", kernel.shared_bytes),
        word("spill_load_bytes", kernel.spill_load_bytes),
        word("spill_store_bytes", kernel.spill_store_bytes),
    ]
    .into_iter()
    .flatten()
    .collect()
}
