//! What `gpulower export --check` finds, as people read it, in 80 columns.

use std::collections::BTreeSet;

use gpulower::{
    FileKind,
    offload::{
        check::{FoundImage, Registered, Report},
        release::ReleaseList,
    },
};

use super::{
    export_check::groups,
    inspect_text::printable_lines,
    table::{aligned, width, wrapped},
};

/// Names of kernels and variables that are listed before their number is given.
const SHOWN: usize = 12;

/// The whole text.
pub fn text(name: &str, bytes: usize, report: &Report) -> String {
    let parts = [
        headline(name, bytes, report),
        outcomes(report),
        names(report),
        images(report),
        notes(report),
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    printable_lines(&parts.join("\n"))
}

fn headline(name: &str, bytes: usize, report: &Report) -> String {
    let mut text = format!(
        "{name}: {}, {bytes} bytes",
        match report.kind {
            FileKind::Executable => "program",
            FileKind::LlvmIr => "host code as LLVM IR",
            kind => kind.name(),
        }
    );
    if !report.members.is_empty() {
        text.push_str(&format!(", kernels in {}", report.members.join(", ")));
    }
    let count = report.images.len();
    let images = if count == 1 { "device image" } else { "device images" };
    text.push_str(&format!(", {count} {images}"));
    if !report.registers_itself.is_empty() {
        let runtimes: Vec<&str> = report.registers_itself.iter().map(|runtime| runtime.name()).collect();
        text.push_str(&format!(
            "; it registers them with {} by itself",
            runtimes.join(" and ")
        ));
        if !report.kind.is_linked_host() {
            text.push_str(", and needs no clang");
        }
    }
    wrapped(&text, 0)
}

/// The table: who registers what.
fn outcomes(report: &Report) -> String {
    let mut rows = vec![["", "kernels", "variables"].map(str::to_owned).to_vec()];
    let mut problems = vec!["problems".to_owned()];
    let outcome = |name: String, registered: &Registered| {
        let kernels = share(registered.kernels.len(), registered.missing_kernels.len());
        let variables = share(registered.variables.len(), registered.missing_variables.len());
        let problem = match registered.problems.as_slice() {
            [] => "none".to_owned(),
            problems => problems.join("; "),
        };
        (vec![name, kernels, variables], problem)
    };
    let by_release = groups(report)
        .into_iter()
        .map(|(releases, registered)| outcome(ReleaseList(&releases).to_string(), registered));
    let own = report
        .finished
        .iter()
        .map(|registered| outcome("by itself".to_owned(), registered));
    for (row, problem) in by_release.chain(own) {
        rows.push(row);
        problems.push(problem);
    }
    if problems.len() == 1 {
        return String::new();
    }
    let table = aligned(rows, 1);
    let indent = table.lines().map(|line| line.chars().count()).max().unwrap_or(0) + 2;
    let mut text = String::new();
    for (line, problem) in table.lines().zip(&problems) {
        // A column of its own for the problems, as long as there is room for one.
        let indent = indent.min(width() / 2);
        let wrapped = wrapped(problem, indent);
        let line = format!("{line:<indent$}");
        match wrapped.get(indent..) {
            Some(rest) if line.chars().count() == indent => text.push_str(&format!("{line}{rest}")),
            _ => text.push_str(&format!("{}\n{wrapped}", line.trim_end())),
        }
    }
    text
}

fn share(some: usize, others: usize) -> String {
    match some + others {
        0 => "-".to_owned(),
        all => format!("{some} of {all}"),
    }
}

/// The kernels and variables that have entries.
fn names(report: &Report) -> String {
    let list = |title: &str, kernels: bool| {
        let entries = report.entries.iter().filter(|entry| entry.is_kernel() == kernels);
        let names: BTreeSet<&str> = entries.map(|entry| entry.name.as_str()).collect();
        let shown: Vec<&str> = names.iter().copied().take(SHOWN).collect();
        let more = match names.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        match shown.as_slice() {
            [] => String::new(),
            shown => wrapped(&format!("{title}: {}{more}", shown.join(", ")), 0),
        }
    };
    list("kernels", true) + &list("variables", false)
}

/// The images by chip.
fn images(report: &Report) -> String {
    if report.images.is_empty() {
        return String::new();
    }
    let head = ["chip", "image", "language", "container", "kernels"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut images: Vec<&FoundImage> = report.images.iter().collect();
    images.sort_by(|a, b| a.arch.cmp(&b.arch));
    rows.extend(images.into_iter().map(image_row));
    aligned(rows, 4)
}

fn image_row(image: &FoundImage) -> Vec<String> {
    let dash = || "-".to_owned();
    let container = match image.version {
        Some(version) => format!("version {version}"),
        None => dash(),
    };
    // Which of the two a number stands for is said with the problems.
    let language = image.kind.map_or_else(dash, |kind| match kind.0 {
        1 => "openmp".to_owned(),
        2 => "cuda".to_owned(),
        number => format!("number {number}"),
    });
    vec![
        image.arch.clone(),
        image.form.map_or_else(|| "unknown".to_owned(), |form| form.to_string()),
        language,
        container,
        image
            .symbols
            .as_ref()
            .map_or_else(dash, |symbols| symbols.kernels.len().to_string()),
    ]
}

fn notes(report: &Report) -> String {
    let problems = report
        .problems
        .iter()
        .map(|text| wrapped(&format!("problem: {text}"), 0));
    let notes = report.notes.iter().map(|text| wrapped(&format!("note: {text}"), 0));
    problems.chain(notes).collect()
}
