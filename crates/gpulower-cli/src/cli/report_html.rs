//! The report as one page of HTML, which needs nothing but itself: kernels, occupancy, times, decisions, warnings, and the code
//! beside its source.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use gpulower::{
    Artifact,
    image::resource::KernelResources,
    occupancy::{Occupancy, bar, picture},
};

use super::{code_view::CodeView, listing::Listing, message::printable, report::usage};

const STYLE: &str = include_str!("report_html.css");
const SCRIPT: &str = include_str!("report_html.js");

/// More lines of a listing are not shown.
const MOST_LINES: usize = 20_000;

/// The page.
pub fn page(title: &str, artifacts: &[Artifact], paths: &[Option<PathBuf>], views: &[CodeView]) -> String {
    let title = escaped(title);
    // Neither a picture nor a font nor a script is fetched from anywhere: the browser is told so.
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title} — gpulower</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n<h1>{title}</h1>\n"
    );
    kernels(&mut text, artifacts);
    for (artifact, path) in artifacts.iter().zip(paths) {
        self::artifact(&mut text, artifact, path.as_deref());
    }
    for view in views {
        code(&mut text, view);
    }
    let version = env!("CARGO_PKG_VERSION");
    let _ = write!(
        text,
        "<footer>gpulower {version}. Sizes are bytes. Occupancy is computed from what the kernel needs alone, for blocks of as \
         many threads as it says, or of 256; shared memory that a launch adds is not in it.</footer>\n\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    );
    text
}

/// Text as HTML shows it.
fn escaped(text: &str) -> String {
    printable(text)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn kernels(text: &mut String, artifacts: &[Artifact]) {
    let images = || artifacts.iter().flat_map(|artifact| &artifact.images);
    let kernels: Vec<_> = images()
        .flat_map(|image| image.kernels.iter().map(|kernel| (kernel, image.target)))
        .map(|(kernel, target)| (kernel, target, Occupancy::usual(&target, kernel)))
        .collect();
    if kernels.is_empty() {
        return;
    }
    text.push_str(
        "<h2>Kernels</h2>\n<table id=\"kernels\">\n<tr><th>kernel</th><th>target</th><th>registers</th><th>spills</th>\
         <th>shared</th><th>scratch</th><th>code</th><th>occupancy</th><th>limited by</th></tr>\n",
    );
    for (kernel, target, occupancy) in &kernels {
        kernel_row(text, kernel, &target.to_string(), occupancy.as_ref());
    }
    text.push_str("</table>\n<div class=\"pictures\">\n");
    for (kernel, target, occupancy) in &kernels {
        let Some(occupancy) = occupancy else { continue };
        let (name, picture) = (escaped(&kernel.name), picture(occupancy));
        let _ = writeln!(
            text,
            "<figure><figcaption><b>{name}</b> for {target}</figcaption>{picture}</figure>"
        );
    }
    text.push_str("</div>\n");
}

fn kernel_row(text: &mut String, kernel: &KernelResources, target: &str, occupancy: Option<&Occupancy>) {
    let _ = write!(text, "<tr><td>{}</td><td>{target}</td>", escaped(&kernel.name));
    for (column, cell) in usage(kernel).iter().enumerate() {
        let class = if column == 1 && kernel.spills() == Some(true) {
            " class=\"warning\""
        } else {
            ""
        };
        let _ = write!(text, "<td{class}>{cell}</td>");
    }
    let _ = match occupancy {
        Some(occupancy) => writeln!(
            text,
            "<td>{} {}%</td><td>{}</td></tr>",
            bar(occupancy),
            occupancy.percent(),
            occupancy.name(occupancy.limit)
        ),
        None => writeln!(text, "<td>-</td><td>-</td></tr>"),
    };
}

fn artifact(text: &mut String, artifact: &Artifact, path: Option<&Path>) {
    let path = path.map_or_else(|| "standard output".to_owned(), |path| path.display().to_string());
    let _ = writeln!(
        text,
        "<h2>{} for {}</h2>\n<p>{}, {} bytes: <code>{}</code></p>",
        escaped(&artifact.module),
        artifact.target_names(),
        artifact.format.title(),
        artifact.bytes.len(),
        escaped(&path)
    );
    times(text, artifact);
    list(
        text,
        "Decisions",
        artifact
            .decisions
            .iter()
            .map(|decision| format!("{}: {}: {}", decision.stage, decision.choice, decision.outcome)),
    );
    list(
        text,
        "Warnings",
        artifact.warnings.iter().map(|warning| {
            let place = warning.place().map(|place| format!("{place}: ")).unwrap_or_default();
            format!("{place}{}: {}", warning.stage, warning.message)
        }),
    );
}

fn list(text: &mut String, title: &str, entries: impl Iterator<Item = String>) {
    let entries: Vec<String> = entries.map(|entry| format!("<li>{}</li>", escaped(&entry))).collect();
    if !entries.is_empty() {
        let class = title.to_lowercase();
        let _ = writeln!(
            text,
            "<h3>{title}</h3>\n<ul class=\"{class}\">{}</ul>",
            entries.concat()
        );
    }
}

/// The times of the stages, as a bar.
fn times(text: &mut String, artifact: &Artifact) {
    let total: f64 = artifact.stages.iter().map(|entry| entry.time.as_secs_f64()).sum();
    if total <= 0.0 {
        text.push_str("<p>No stage ran: it was taken from the cache.</p>\n");
        return;
    }
    let _ = write!(
        text,
        "<h3>Times: {:.1} ms</h3>\n<svg class=\"times\" width=\"720\" height=\"20\" role=\"img\">",
        total * 1e3
    );
    let mut key = String::new();
    let mut x = 0.0;
    for (number, entry) in artifact.stages.iter().enumerate() {
        let width = entry.time.as_secs_f64() / total * 720.0;
        let (stage, milliseconds) = (entry.stage, entry.time.as_secs_f64() * 1e3);
        let _ = write!(
            text,
            "<rect x=\"{x:.1}\" width=\"{width:.1}\" height=\"20\" class=\"stage{number}\"><title>{stage}: {milliseconds:.1} \
             ms</title></rect>"
        );
        let _ = write!(
            key,
            "<li><svg width=\"10\" height=\"10\"><rect width=\"10\" height=\"10\" class=\"stage{number}\"/></svg> {stage} \
             {milliseconds:.1}</li>"
        );
        x += width;
    }
    let _ = writeln!(text, "</svg>\n<ul class=\"key\">{key}</ul>");
}

fn code(text: &mut String, view: &CodeView) {
    let _ = writeln!(
        text,
        "<h2>Code of {} for {}</h2>\n<p class=\"hint\">Lines with one colour belong together; a click on a line shows the others. \
         Compiled with line tables.</p>",
        escaped(&view.module),
        view.target
    );
    for remark in &view.remarks {
        let _ = writeln!(text, "<p class=\"remark\">{}</p>", escaped(remark));
    }
    let used: std::collections::HashSet<u32> = view
        .columns
        .iter()
        .skip(1)
        .flat_map(|column| column.lines.iter().filter_map(|line| line.source))
        .collect();
    text.push_str("<div class=\"code\">\n");
    for (number, column) in view.columns.iter().enumerate() {
        listing(text, column, number == 0, &|line| used.contains(&line));
    }
    text.push_str("</div>\n");
}

fn listing(text: &mut String, listing: &Listing, is_source: bool, is_used: &dyn Fn(u32) -> bool) {
    let _ = write!(
        text,
        "<section><h3>{}</h3><pre{}>",
        escaped(&listing.title),
        if is_source { " class=\"source\"" } else { "" }
    );
    for line in listing.lines.iter().take(MOST_LINES) {
        let code = escaped(&line.text);
        let number = |number: u32| match is_source {
            true => format!("<i>{number}</i>"),
            false => String::new(),
        };
        let _ = match line.source {
            Some(source) if is_used(source) => write!(
                text,
                "<span class=\"c{}\" data-line=\"{source}\">{}{code}\n</span>",
                source % 12,
                number(source)
            ),
            Some(source) => write!(text, "<span>{}{code}\n</span>", number(source)),
            None => write!(text, "<span>{code}\n</span>"),
        };
    }
    if let Some(more) = listing.lines.len().checked_sub(MOST_LINES).filter(|&more| more > 0) {
        let _ = write!(
            text,
            "<span class=\"remark\">{more} further lines are left out\n</span>"
        );
    }
    text.push_str("</pre></section>\n");
}
