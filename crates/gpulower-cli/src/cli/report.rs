//! The report of a compilation, for machines and for people.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use gpulower::{Artifact, Target, cache::Cache, image::resource::KernelResources, occupancy::Occupancy};
use serde::Serialize;

use super::{
    Failed,
    code_view::CodeView,
    json,
    message::{self, Problem},
    report_html,
    table::{aligned, wrapped},
    text_to_stdout,
    write::write_file,
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
#[derive(Clone, Debug)]
pub struct Report {
    pub format: ReportFormat,
    /// `None`: the standard output.
    pub file: Option<PathBuf>,
}

impl Report {
    /// What was made and where it goes, and what could not be made besides. `code`: the code of artifacts beside their source,
    /// for those who read it.
    pub fn text(
        &self,
        made: Made<'_>,
        problems: &[Problem],
        cache: Option<&Cache>,
        title: &str,
        code: &CodeOf<'_>,
    ) -> Result<String, Failed> {
        let (artifacts, paths) = made;
        match self.format {
            ReportFormat::Json => document(Some(made), problems, cache),
            ReportFormat::Table => Ok(message::shown(
                &(artifacts_table(artifacts, paths) + &shared_line(cache)),
            )),
            ReportFormat::Html => Ok(report_html::page(title, artifacts, paths, &code(artifacts)?)),
        }
    }

    /// Reports failure, for machines alone: people read the messages.
    pub fn problems(&self, problems: &[Problem]) -> Result<(), Failed> {
        if self.format != ReportFormat::Json {
            return Ok(());
        }
        let text = document(None, problems, None)?;
        match &self.file {
            Some(path) => Ok(write_file(path, text.as_bytes())?),
            None => text_to_stdout(&text),
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

/// Makes the code of artifacts beside its source.
pub type CodeOf<'a> = dyn Fn(&[Artifact]) -> Result<Vec<CodeView>, Failed> + 'a;

/// Artifacts, and the files that they are in.
type Made<'a> = (&'a [Artifact], &'a [Option<PathBuf>]);

/// The document that `docs/report.schema.json` describes.
fn document(made: Option<Made<'_>>, problems: &[Problem], cache: Option<&Cache>) -> Result<String, Failed> {
    #[derive(Serialize)]
    struct Entry<'a> {
        path: Option<String>,
        /// The name of the input; null where several became one image.
        input: Option<&'a str>,
        #[serde(flatten)]
        artifact: &'a Artifact,
    }
    #[derive(Serialize)]
    struct Document<'a> {
        /// Version of the document's form. Fields may be added to version 1; none changes its meaning.
        schema: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        artifacts: Option<Vec<Entry<'a>>>,
        #[serde(skip_serializing_if = "<[Problem]>::is_empty")]
        errors: &'a [Problem],
        #[serde(skip_serializing_if = "Option::is_none")]
        shared_cache: Option<Shared>,
    }
    let entry = |(artifact, path)| {
        let (artifact, path): (&Artifact, &Option<PathBuf>) = (artifact, path);
        Entry {
            path: path.as_ref().map(|path| path.display().to_string()),
            input: artifact.input.as_ref().map(|input| input.name.as_str()),
            artifact,
        }
    };
    json(&Document {
        schema: 1,
        artifacts: made.map(|(artifacts, paths)| artifacts.iter().zip(paths).map(entry).collect()),
        errors: problems,
        shared_cache: cache.and_then(Shared::of),
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
        &match times.is_empty() {
            true => "from the cache".to_owned(),
            false => format!("ms: {}; sum {}", times.join(", "), milliseconds(sum)),
        },
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
