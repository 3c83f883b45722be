//! The report of a compilation, for machines and for people.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use gpulower::{Artifact, cache::Cache, image::resource::KernelResources};
use serde::Serialize;

use super::{
    Failed, json,
    message::Problem,
    output::write_file,
    table::{aligned, wrapped},
    text_to_stdout,
};

/// The form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// A JSON document: resources of kernels, times of stages, the log of decisions; the errors on failure
    Json,
    /// A table for people
    Table,
}

/// A report that was asked for, and where it goes.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    pub format: ReportFormat,
    /// `None`: the standard output.
    pub file: Option<&'a Path>,
}

impl Report<'_> {
    /// Reports success.
    pub fn artifacts(
        &self,
        artifacts: &[Artifact],
        paths: &[Option<PathBuf>],
        cache: Option<&Cache>,
    ) -> Result<(), Failed> {
        let text = match self.format {
            ReportFormat::Json => artifacts_json(artifacts, paths, cache)?,
            ReportFormat::Table => artifacts_table(artifacts, paths) + &shared_line(cache),
        };
        self.write(&text)
    }

    /// Reports failure, for machines alone: people read the messages.
    pub fn problems(&self, problems: &[Problem]) -> Result<(), Failed> {
        #[derive(Serialize)]
        struct Document<'a> {
            errors: &'a [Problem],
        }
        match self.format {
            ReportFormat::Json => self.write(&json(&Document { errors: problems })?),
            ReportFormat::Table => Ok(()),
        }
    }

    fn write(&self, text: &str) -> Result<(), Failed> {
        match self.file {
            Some(path) => Ok(write_file(path, text.as_bytes())?),
            None => text_to_stdout(text),
        }
    }
}

/// What was asked of the tier that machines share.
#[derive(Serialize)]
struct Shared {
    place: String,
    hits: u64,
    misses: u64,
    /// Questions that the service did not answer, and those that it was not asked any more: an outage is no miss.
    failures: u64,
    skipped: u64,
    refused: u64,
    uploaded: u64,
    known: u64,
    not_uploaded: u64,
}

impl Shared {
    fn of(cache: &Cache) -> Option<Self> {
        let remote = cache.remote()?;
        let counts = remote.statistics();
        Some(Self {
            place: remote.place().to_owned(),
            hits: counts.hits,
            misses: counts.misses,
            failures: counts.failures,
            skipped: counts.skipped,
            refused: counts.refused,
            uploaded: counts.uploaded,
            known: counts.known,
            not_uploaded: counts.not_uploaded,
        })
    }
}

/// The same for people.
fn shared_line(cache: Option<&Cache>) -> String {
    let Some(shared) = cache.and_then(Shared::of) else {
        return String::new();
    };
    let Shared {
        place,
        hits,
        misses,
        failures,
        skipped,
        refused,
        uploaded,
        known,
        not_uploaded,
    } = shared;
    format!(
        "shared cache {place}: {hits} hits, {misses} misses, {} without an answer, {refused} refused; {} uploaded, \
         {not_uploaded} not\n",
        failures + skipped,
        uploaded + known
    )
}

fn artifacts_json(artifacts: &[Artifact], paths: &[Option<PathBuf>], cache: Option<&Cache>) -> Result<String, Failed> {
    #[derive(Serialize)]
    struct Entry<'a> {
        path: Option<String>,
        #[serde(flatten)]
        artifact: &'a Artifact,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        artifacts: Vec<Entry<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        shared_cache: Option<Shared>,
    }
    let entry = |(artifact, path): (_, &Option<PathBuf>)| Entry {
        path: path.as_ref().map(|path| path.display().to_string()),
        artifact,
    };
    json(&Document {
        artifacts: artifacts.iter().zip(paths).map(entry).collect(),
        shared_cache: cache.and_then(Shared::of),
    })
}

fn artifacts_table(artifacts: &[Artifact], paths: &[Option<PathBuf>]) -> String {
    let mut text = String::new();
    let head = ["kernel", "target", "registers", "spills", "shared", "scratch", "code"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for image in artifacts.iter().flat_map(|artifact| &artifact.images) {
        for kernel in &image.kernels {
            rows.push(kernel_row(kernel, &image.target.to_string()));
        }
    }
    if rows.len() > 1 {
        text.push_str(&aligned(rows, 2));
        text.push_str("Sizes are bytes. AMD: v vector, a accumulation, s scalar registers; spills are\nregisters.\n\n");
    }
    for (artifact, path) in artifacts.iter().zip(paths) {
        text.push_str(&artifact_lines(artifact, path.as_deref()));
    }
    text
}

fn kernel_row(kernel: &KernelResources, target: &str) -> Vec<String> {
    let names = [kernel.name.clone(), target.to_owned()];
    names.into_iter().chain(usage(kernel)).collect()
}

/// Registers, spills, shared memory, scratch memory and code size, as cells of a table.
pub fn usage(kernel: &KernelResources) -> [String; 5] {
    let kinds = [("v", kernel.vgprs), ("a", kernel.agprs), ("s", kernel.sgprs)];
    let kinds: Vec<String> = kinds
        .iter()
        .filter_map(|(kind, count)| Some(format!("{kind}{}", (*count)?)))
        .collect();
    let registers = match kernel.registers {
        Some(registers) => registers.to_string(),
        None if kinds.is_empty() => "-".to_owned(),
        None => kinds.join(" "),
    };
    let sum = |one: Option<u32>, other: Option<u32>| Some(one.unwrap_or(0).saturating_add(other?));
    let spills = kernel
        .spill_store_bytes
        .max(kernel.spill_load_bytes)
        .or_else(|| sum(kernel.spilled_sgprs, kernel.spilled_vgprs));
    [
        registers,
        spills.map_or_else(|| "-".to_owned(), |count| count.to_string()),
        kernel.shared_bytes.to_string(),
        kernel.scratch_bytes.to_string(),
        kernel
            .code_bytes
            .map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
    ]
}

/// What was made, by what, in what time, and the choices on the way.
fn artifact_lines(artifact: &Artifact, path: Option<&Path>) -> String {
    let mut text = format!(
        "{} for {}: {}, {} bytes",
        artifact.module,
        artifact.target_names(),
        artifact.format.extension(),
        artifact.bytes.len()
    );
    let mut tools: Vec<&str> = artifact
        .images
        .iter()
        .filter_map(|image| image.tool.as_deref())
        .collect();
    tools.dedup();
    for tool in tools {
        text.push_str(&format!(", {tool}"));
    }
    if let Some(path) = path {
        text.push_str(&format!(", {}", path.display()));
    }
    let mut lines = wrapped(&text, 0);
    let milliseconds = |time: std::time::Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    let times: Vec<String> = artifact
        .stages
        .iter()
        .map(|entry| format!("{} {}", entry.stage, milliseconds(entry.time)))
        .collect();
    let sum = artifact.stages.iter().map(|entry| entry.time).sum();
    lines.push_str(&wrapped(
        &format!("ms: {}; sum {}", times.join(", "), milliseconds(sum)),
        2,
    ));
    for decision in &artifact.decisions {
        lines.push_str(&wrapped(
            &format!("{}: {}: {}", decision.stage, decision.choice, decision.outcome),
            2,
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_show_what_each_vendor_has() {
        let nvidia = KernelResources {
            name: "saxpy".to_owned(),
            registers: Some(12),
            spill_store_bytes: Some(8),
            spill_load_bytes: Some(16),
            code_bytes: Some(384),
            ..KernelResources::default()
        };
        assert_eq!(
            kernel_row(&nvidia, "sm_90"),
            ["saxpy", "sm_90", "12", "16", "0", "0", "384"]
        );
        let amd = KernelResources {
            name: "saxpy".to_owned(),
            vgprs: Some(4),
            agprs: Some(0),
            sgprs: Some(10),
            spilled_sgprs: Some(1),
            spilled_vgprs: Some(2),
            shared_bytes: 64,
            ..KernelResources::default()
        };
        assert_eq!(
            kernel_row(&amd, "gfx942"),
            ["saxpy", "gfx942", "v4 a0 s10", "3", "64", "0", "-"]
        );
        assert_eq!(kernel_row(&KernelResources::default(), "sm_90")[3], "-");
    }
}
