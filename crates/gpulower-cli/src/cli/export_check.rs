//! `gpulower export --check`: which releases of clang register which kernels, and why not.

use std::path::{Path, PathBuf};

use clap::Args;
use gpulower::{
    FileKind,
    offload::{
        check::{self, Registered, Report},
        release::{ClangRelease, ReleaseList},
    },
};
use serde::Serialize;

use super::{
    Failed, clang_list, export_check_text, input, json,
    message::{Problem, printable},
    text_to_stdout, to_stdout,
};

/// The options of the check.
#[derive(Debug, Args)]
#[command(next_help_heading = "Instead of exporting")]
pub struct CheckArguments {
    /// Say which releases of clang register which kernels of an object, archive or LLVM IR, and why not, or what a finished
    /// program registers; - for the standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["input", "output", "finish_with", "targets", "emit"])]
    check: Option<PathBuf>,
    /// The releases of clang that have to register everything, such as clang-19 or 15..19,22, or clangs of this machine by
    /// name or path, such as clang [default: any release]
    #[arg(long, value_name = "LIST", requires = "check")]
    with: Option<String>,
    /// Print what is found as a JSON document
    #[arg(long, requires = "check")]
    json: bool,
}

impl CheckArguments {
    /// Refuses options of the check where something is exported. (To clap a required option is not missing if it could not
    /// stand beside others.)
    pub fn refuse(&self) -> Result<(), Failed> {
        match (&self.with, self.json) {
            (None, false) => Ok(()),
            _ => Err(Failed::Usage("--with and --json go with --check FILE".to_owned())),
        }
    }

    /// Checks the file.
    pub fn run(&self) -> Result<(), Failed> {
        let Some(file) = &self.check else {
            return Err(Failed::Usage(
                "name a program to export, and a file to write with -o".to_owned(),
            ));
        };
        let with = match &self.with {
            Some(list) => clang_list::releases(list)?,
            None => Vec::new(),
        };
        run(file, &with, self.json)
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Document<'a> {
    /// Version of the document's form. Fields may be added to version 1; none changes its meaning.
    schema: u32,
    file: &'a str,
    bytes: usize,
    /// Whether the exit status is 0.
    complete: bool,
    #[serde(flatten)]
    report: Parts<'a>,
}

#[derive(Debug, Serialize)]
struct Parts<'a> {
    kind: &'static str,
    members: &'a [String],
    entries: &'a [check::FoundEntry],
    images: &'a [check::FoundImage],
    registers_itself: &'a [gpulower::offload::Runtime],
    finished: Option<Outcome<'a>>,
    releases: Vec<OfRelease<'a>>,
    problems: &'a [String],
    notes: &'a [String],
}

#[derive(Debug, Serialize)]
struct OfRelease<'a> {
    clang: ClangRelease,
    #[serde(flatten)]
    outcome: Outcome<'a>,
}

#[derive(Debug, Serialize)]
struct Outcome<'a> {
    complete: bool,
    #[serde(flatten)]
    registered: &'a Registered,
}

/// Checks a file. Every release of `with` has to register everything, or if it is empty some release.
pub fn run(file: &Path, with: &[ClangRelease], as_json: bool) -> Result<(), Failed> {
    let bytes = input::read(file)?;
    let name = match file.to_string_lossy() {
        name if name == "-" => "<stdin>".to_owned(),
        name => name.into_owned(),
    };
    let mut report = check::check(&bytes).map_err(|error| Problem::in_file(&name, printable(&error.to_string())))?;
    if !with.is_empty() {
        report.releases.retain(|(release, _)| with.contains(release));
    }
    if as_json {
        to_stdout(json(&document(&name, bytes.len(), &report, with))?.as_bytes())?;
    } else {
        text_to_stdout(&export_check_text::text(&name, bytes.len(), &report))?;
    }
    match problems(&name, &report, with) {
        problems if problems.is_empty() => Ok(()),
        problems => Err(Failed::Problems(problems)),
    }
}

fn document<'a>(name: &'a str, bytes: usize, report: &'a Report, with: &[ClangRelease]) -> Document<'a> {
    let outcome = |registered: &'a Registered| Outcome {
        complete: registered.is_complete(),
        registered,
    };
    let of_release = |(clang, registered): &'a (ClangRelease, Registered)| OfRelease {
        clang: *clang,
        outcome: outcome(registered),
    };
    Document {
        schema: 1,
        file: name,
        bytes,
        complete: report.is_complete(with),
        report: Parts {
            kind: kind(report.kind),
            members: &report.members,
            entries: &report.entries,
            images: &report.images,
            registers_itself: &report.registers_itself,
            finished: report.finished.as_ref().map(outcome),
            releases: report.releases.iter().map(of_release).collect(),
            problems: &report.problems,
            notes: &report.notes,
        },
    }
}

/// The word of the document, whose host objects are the objects.
const fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::HostObject => "object",
        FileKind::Executable => "executable",
        FileKind::SharedLibrary => "shared-library",
        FileKind::Archive => "archive",
        _ => "llvm-ir",
    }
}

/// Why the exit status is 1.
fn problems(name: &str, report: &Report, with: &[ClangRelease]) -> Vec<Problem> {
    if report.is_complete(with) {
        return Vec::new();
    }
    let mut texts = report.problems.clone();
    if let Some(finished) = &report.finished {
        texts.extend(reasons(finished));
    }
    for (releases, registered) in groups(report) {
        texts.extend(reasons(registered).map(|reason| format!("{}: {reason}", ReleaseList(&releases))));
    }
    texts
        .iter()
        .map(|text| Problem::in_file(name, printable(text)))
        .collect()
}

/// Why not everything is registered: the problems, or what is missing if nothing says why.
fn reasons(registered: &Registered) -> impl Iterator<Item = String> {
    let missing = registered.missing_kernels.iter().chain(&registered.missing_variables);
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    let unexplained = registered.problems.is_empty() && !missing.is_empty();
    let missing = unexplained.then(|| format!("{} is not registered", missing.join(", ")));
    registered.problems.iter().cloned().chain(missing)
}

/// Neighbouring releases of which the same is to be said.
pub fn groups(report: &Report) -> Vec<(Vec<ClangRelease>, &Registered)> {
    let mut groups: Vec<(Vec<ClangRelease>, &Registered)> = Vec::new();
    for (release, registered) in &report.releases {
        match groups.last_mut() {
            Some((releases, last)) if *last == registered => releases.push(*release),
            _ => groups.push((vec![*release], registered)),
        }
    }
    groups
}
