//! `gpulower doctor`: every part that matters, where it was looked for, and what to do when it is missing.

use std::path::{Path, PathBuf};

use clap::Args;
use gpulower::{
    Compiler, Search, Toolkit,
    serialize::nvidia::{PtxCompiler, PtxToCubin},
    target::{CudaRelease, NvidiaTarget},
    toolkit::{Part, PartKind, tool_version},
};
use serde::Serialize;

use super::{Failed, doctor_clang::Finishers, environment, json, table, text_to_stdout, to_stdout};

/// Say which parts of CUDA and ROCm are here, where they were looked for, how to get the missing ones, and which clangs
/// can finish exported programs.
///
/// The exit status is 0 whatever is missing: PTX, LLVM IR and hsaco files can be made without any of them.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Print a JSON document
    #[arg(long)]
    json: bool,
    /// Show every place that was looked at for parts that were found, too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    toolkits: environment::Toolkits,
}

#[derive(Debug, Serialize)]
struct Report {
    gpulower: &'static str,
    llvm: String,
    cache: Option<String>,
    ptx_compilers: Vec<CompilerReport>,
    parts: Vec<PartReport>,
    #[serde(flatten)]
    finishers: Finishers,
}

/// One of NVIDIA's compilers, loaded or started.
#[derive(Debug, Serialize)]
struct CompilerReport {
    name: &'static str,
    version: Option<String>,
    /// The newest PTX ISA that it reads.
    newest_ptx: Option<String>,
    /// The chips that it makes cubins for.
    chips: Vec<String>,
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct PartReport {
    name: &'static str,
    found: Option<String>,
    /// What named the place where it is.
    origin: Option<String>,
    version: Option<String>,
    /// It is there, and does not work.
    problem: Option<String>,
    enables: &'static str,
    advice: Option<String>,
    tried: Vec<Place>,
}

#[derive(Debug, Serialize)]
struct Place {
    path: String,
    origin: String,
    why_not: String,
}

/// Prints the diagnosis.
pub fn run(arguments: &Arguments) -> Result<(), Failed> {
    let report = report(&arguments.toolkits.search()?, arguments.toolkits.cache_directory());
    if arguments.json {
        to_stdout(json(&report)?.as_bytes())
    } else {
        text_to_stdout(&report.text(arguments.all))
    }
}

/// What `gpulower doctor --json` prints, and what it prints without, as one value to serialize.
pub fn doctor_report(search: &Search, cache: Option<PathBuf>) -> impl Serialize + use<> {
    #[derive(Serialize)]
    struct Both {
        text: String,
        #[serde(flatten)]
        report: Report,
    }
    let report = report(search, cache);
    Both {
        text: report.text(false),
        report,
    }
}

fn report(search: &Search, cache: Option<PathBuf>) -> Report {
    let mut builder = Compiler::builder().toolkit(Toolkit::discover(search));
    if let Some(directory) = &cache {
        builder = builder.cache_directory(directory.clone());
    }
    let compiler = builder.build();
    let (major, minor, patch) = gpulower::inkwell::support::get_llvm_version();
    let ptx_to_cubin = compiler.ptx_to_cubin();
    Report {
        gpulower: env!("CARGO_PKG_VERSION"),
        llvm: format!("{major}.{minor}.{patch}"),
        cache: cache.map(|directory| directory.display().to_string()),
        ptx_compilers: PtxCompiler::ALL
            .map(|which| compiler_report(ptx_to_cubin, which))
            .into(),
        parts: compiler
            .toolkit()
            .parts()
            .map(|part| part_report(part, ptx_to_cubin))
            .collect(),
        finishers: Finishers::find(search),
    }
}

fn compiler_report(compilers: &PtxToCubin, which: PtxCompiler) -> CompilerReport {
    let version = compilers.version(which);
    let release = version.ok().and_then(|version| version.parse::<CudaRelease>().ok());
    let has = |chip: &NvidiaTarget| release.is_some_and(|release| chip.supported_by_cuda(release));
    CompilerReport {
        name: which.name(),
        newest_ptx: release.and_then(CudaRelease::newest_ptx).map(|ptx| ptx.to_string()),
        chips: NvidiaTarget::all().filter(has).map(|chip| chip.to_string()).collect(),
        version: version.ok().map(str::to_owned),
        problem: version.err().map(str::to_owned),
    }
}

fn part_report(part: &Part, compilers: &PtxToCubin) -> PartReport {
    let version = part
        .found
        .as_deref()
        .and_then(|path| version(part.kind, path, compilers));
    let (version, problem) = match version {
        None => (None, None),
        Some(Ok(version)) => (Some(version), None),
        Some(Err(problem)) => (None, Some(problem)),
    };
    PartReport {
        name: part.kind.name(),
        found: part.found.as_ref().map(|path| path.display().to_string()),
        origin: part.origin.map(|origin| origin.to_string()),
        version,
        problem,
        enables: part.enables(),
        advice: part.advice(),
        tried: part
            .tried
            .iter()
            .map(|tried| Place {
                path: tried.path.display().to_string(),
                origin: tried.origin.to_string(),
                why_not: tried.why_not.to_string(),
            })
            .collect(),
    }
}

/// The version of a part that can say it, by starting or loading it.
fn version(kind: PartKind, path: &Path, compilers: &PtxToCubin) -> Option<Result<String, String>> {
    let loaded = |which| Some(compilers.version(which).map(str::to_owned).map_err(str::to_owned));
    match kind {
        PartKind::NvPtxCompiler => loaded(PtxCompiler::NvPtxCompiler),
        PartKind::NvJitLink => loaded(PtxCompiler::NvJitLink),
        kind if kind.is_program() => Some(
            tool_version(path)
                .map(|version| version.to_string())
                .map_err(|error| error.to_string()),
        ),
        _ => None,
    }
}

impl Report {
    fn text(&self, all: bool) -> String {
        let mut text = format!(
            "gpulower {}, with LLVM, MLIR and lld {} built in\n",
            self.gpulower, self.llvm
        );
        text.push_str(&self.summary());
        for part in &self.parts {
            text.push('\n');
            text.push_str(&part.text(all));
        }
        text.push_str(&self.finishers.text());
        text
    }

    /// What can be made.
    fn summary(&self) -> String {
        let found = |name: &str| self.parts.iter().any(|part| part.name == name && part.found.is_some());
        let cubin: Vec<String> = self.ptx_compilers.iter().filter_map(CompilerReport::text).collect();
        let cubin = if cubin.is_empty() {
            "no: no PTX compiler can be used".to_owned()
        } else {
            format!("yes, with the first that can of\n{}", cubin.concat())
        };
        let math = |library: &str| {
            if found(library) {
                "yes, with math functions".to_owned()
            } else {
                format!("yes, but no math functions: {library} is missing")
            }
        };
        let rows = [
            ("NVIDIA PTX", math("libdevice.10.bc")),
            ("NVIDIA cubin", cubin),
            ("AMD hsaco", math("ocml.bc")),
            ("exports", self.finishers.summary()),
            (
                "cache",
                self.cache
                    .clone()
                    .unwrap_or_else(|| "none: neither XDG_CACHE_HOME nor HOME is set".to_owned()),
            ),
        ];
        rows.iter()
            .map(|(name, value)| format!("  {name:<13} {}\n", value.trim_end()))
            .collect()
    }
}

impl CompilerReport {
    /// A line about a compiler that can be used.
    fn text(&self) -> Option<String> {
        let version = self.version.as_ref()?;
        let mut text = format!("                {} {version}", self.name);
        if let (Some(ptx), Some(first), Some(last)) = (&self.newest_ptx, self.chips.first(), self.chips.last()) {
            text.push_str(&format!(": PTX up to {ptx}, {first} to {last}"));
        }
        text.push('\n');
        Some(text)
    }
}

impl PartReport {
    fn text(&self, all: bool) -> String {
        let mut text = match &self.found {
            Some(_) => self.name.to_owned(),
            None => format!("{} is missing", self.name),
        };
        if let Some(version) = &self.version {
            text.push(' ');
            text.push_str(version);
        }
        text.push_str(": ");
        text.push_str(self.enables);
        text = table::wrapped(&text, 0);
        if let (Some(path), Some(origin)) = (&self.found, &self.origin) {
            text.push_str(&format!("  found {path} ({origin})\n"));
        }
        if let Some(problem) = &self.problem {
            text.push_str(&table::wrapped(&format!("does not work: {problem}"), 2));
        }
        if all || self.found.is_none() {
            for place in &self.tried {
                text.push_str(&format!(
                    "  tried {} ({}): {}\n",
                    place.path, place.origin, place.why_not
                ));
            }
        }
        if let Some(advice) = &self.advice {
            text.push_str(&table::wrapped(&format!("to get it: {advice}"), 2));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_part_comes_with_advice() {
        let toolkit = Toolkit::discover(&Search::nowhere().with_rocm("/nonexistent"));
        let compilers = PtxToCubin::new(Default::default());
        let part = toolkit.part(PartKind::Ocml).expect("every kind is there");
        let text = part_report(part, &compilers).text(false);
        assert!(text.starts_with("ocml.bc is missing: math functions"), "{text}");
        assert!(text.contains("tried /nonexistent"), "{text}");
        assert!(
            text.contains("to get it: install Debian's package rocm-device-libs"),
            "{text}"
        );
    }

    #[test]
    fn without_anything_the_summary_says_what_is_left() {
        let report = Report {
            gpulower: "0",
            llvm: "22".to_owned(),
            cache: None,
            ptx_compilers: Vec::new(),
            parts: Vec::new(),
            finishers: Finishers::default(),
        };
        assert_eq!(
            report.summary(),
            "  NVIDIA PTX    yes, but no math functions: libdevice.10.bc is missing\n  \
             NVIDIA cubin  no: no PTX compiler can be used\n  \
             AMD hsaco     yes, but no math functions: ocml.bc is missing\n  \
             exports       finished by none here\n  \
             cache         none: neither XDG_CACHE_HOME nor HOME is set\n"
        );
    }
}
