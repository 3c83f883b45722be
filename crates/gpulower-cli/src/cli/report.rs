//! The report of a compilation, for machines and for people.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use gpulower::{Artifact, Target, image::resource::KernelResources, occupancy::Occupancy};
use serde::Serialize;

use super::{
    Failed,
    code_view::CodeMaker,
    json,
    message::Problem,
    output::write_file,
    report_html,
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
    /// A page for a browser: kernels, occupancy, times, decisions, warnings, the code beside its source
    Html,
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
        maker: &CodeMaker<'_>,
    ) -> Result<(), Failed> {
        let text = match self.format {
            ReportFormat::Json => artifacts_json(artifacts, paths)?,
            ReportFormat::Table => artifacts_table(artifacts, paths),
            ReportFormat::Html => {
                let names: Vec<&str> = maker.inputs.iter().map(|(name, _)| *name).collect();
                report_html::page(&names.join(", "), artifacts, paths, &maker.views(artifacts))
            }
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
            ReportFormat::Table | ReportFormat::Html => Ok(()),
        }
    }

    fn write(&self, text: &str) -> Result<(), Failed> {
        match self.file {
            Some(path) => Ok(write_file(path, text.as_bytes())?),
            None => text_to_stdout(text),
        }
    }
}

fn artifacts_json(artifacts: &[Artifact], paths: &[Option<PathBuf>]) -> Result<String, Failed> {
    #[derive(Serialize)]
    struct Entry<'a> {
        path: Option<String>,
        #[serde(flatten)]
        artifact: &'a Artifact,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        artifacts: Vec<Entry<'a>>,
    }
    let entry = |(artifact, path): (_, &Option<PathBuf>)| Entry {
        path: path.as_ref().map(|path| path.display().to_string()),
        artifact,
    };
    json(&Document {
        artifacts: artifacts.iter().zip(paths).map(entry).collect(),
    })
}

fn artifacts_table(artifacts: &[Artifact], paths: &[Option<PathBuf>]) -> String {
    let mut text = String::new();
    let head = [
        "kernel",
        "target",
        "registers",
        "spills",
        "shared",
        "scratch",
        "code",
        "occupancy",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for image in artifacts.iter().flat_map(|artifact| &artifact.images) {
        for kernel in &image.kernels {
            rows.push(kernel_row(kernel, &image.target));
        }
    }
    if rows.len() > 1 {
        text.push_str(&aligned(rows, 2));
        text.push_str(&wrapped(LEGEND, 0));
        text.push('\n');
    }
    for (artifact, path) in artifacts.iter().zip(paths) {
        text.push_str(&artifact_lines(artifact, path.as_deref()));
    }
    text
}

const LEGEND: &str = "Sizes are bytes. AMD: v vector, a accumulation, s scalar registers; spills are registers. Occupancy: \
                      warps (waves) of those that a multiprocessor (compute unit) can have, with blocks of 256 threads where a \
                      kernel does not say another number, and what keeps more away.";

fn kernel_row(kernel: &KernelResources, target: &Target) -> Vec<String> {
    let names = [kernel.name.clone(), target.to_string()];
    let occupancy = Occupancy::usual(target, kernel).map_or_else(|| "-".to_owned(), |filled| occupancy(&filled));
    names.into_iter().chain(usage(kernel)).chain([occupancy]).collect()
}

/// How full a multiprocessor is, and what keeps more away, in few characters.
fn occupancy(filled: &Occupancy) -> String {
    let limit = filled.name(filled.limit);
    format!("{}% {}", filled.percent(), limit.trim_end_matches(" memory"))
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
        let target = |name: &str| name.parse::<Target>().expect("a target");
        let nvidia = KernelResources {
            name: "saxpy".to_owned(),
            registers: Some(12),
            spill_store_bytes: Some(8),
            spill_load_bytes: Some(16),
            code_bytes: Some(384),
            ..KernelResources::default()
        };
        assert_eq!(
            kernel_row(&nvidia, &target("sm_90")),
            ["saxpy", "sm_90", "12", "16", "0", "0", "384", "100% warps"]
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
            kernel_row(&amd, &target("gfx942")),
            ["saxpy", "gfx942", "v4 a0 s10", "3", "64", "0", "-", "100% waves"]
        );
        assert_eq!(kernel_row(&KernelResources::default(), &target("sm_90"))[3], "-");
    }
}
