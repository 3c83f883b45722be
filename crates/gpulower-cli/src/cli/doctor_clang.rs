//! The part of `gpulower doctor` about what finishes exported programs: clangs and CUDA toolkits.

use std::path::Path;

use gpulower::{
    Search,
    offload::{
        clang_program::{InstalledClang, package},
        layout,
        release::{ClangRelease, ReleaseList},
        runtime::Runtime,
    },
    target::CudaRelease,
    toolkit::{CudaInstallation, clangs, cuda_installations, tool_version},
};
use serde::Serialize;

use super::table::wrapped;

/// What finishes exported programs on this machine.
#[derive(Debug, Default, Serialize)]
pub struct Finishers {
    clangs: Vec<ClangReport>,
    cuda_toolkits: Vec<CudaReport>,
}

#[derive(Debug, Serialize)]
struct ClangReport {
    path: String,
    /// As it says it, such as 19.1.7.
    version: Option<String>,
    /// Whose clang it is.
    maker: Option<String>,
    /// The release for `--finish-with`.
    release: Option<ClangRelease>,
    /// The runtimes for which it finishes programs: `cuda`, `hip`.
    finishes: Vec<Runtime>,
    /// The releases that read what is exported for this one.
    read_by: Vec<ClangRelease>,
    problems: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CudaReport {
    root: String,
    origin: String,
    release: Option<String>,
    ptxas: Option<String>,
    nvlink: Option<String>,
    fatbinary: Option<String>,
    problems: Vec<String>,
    /// The clangs here that need a script in front of its fatbinary.
    script_for: Vec<ClangRelease>,
}

impl Finishers {
    /// Looks for them, and runs each for its version.
    pub fn find(search: &Search) -> Self {
        let clangs: Vec<ClangReport> = clangs(search)
            .iter()
            .map(|clang| ClangReport::of(&clang.path, &InstalledClang::ask(clang)))
            .collect();
        let mut releases: Vec<ClangRelease> = clangs.iter().filter_map(|clang| clang.release).collect();
        releases.sort_unstable();
        releases.dedup();
        let cuda_toolkits = cuda_installations(search)
            .iter()
            .map(|installation| CudaReport::of(installation, &releases))
            .collect();
        Self { clangs, cuda_toolkits }
    }

    /// A row of the summary.
    pub fn summary(&self) -> String {
        let for_runtime = |runtime: Runtime| {
            let mut releases: Vec<ClangRelease> = self
                .clangs
                .iter()
                .filter(|clang| clang.finishes.contains(&runtime))
                .filter_map(|clang| clang.release)
                .collect();
            releases.sort_unstable();
            releases.dedup();
            match releases.as_slice() {
                [] => "none here".to_owned(),
                releases => ReleaseList(releases).to_string(),
            }
        };
        let (cuda, hip) = (for_runtime(Runtime::Cuda), for_runtime(Runtime::Hip));
        match cuda == hip {
            true => format!("finished by {cuda}"),
            false => format!("for CUDA finished by {cuda}, for HIP by {hip}"),
        }
    }

    /// A paragraph for each.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for clang in &self.clangs {
            text.push('\n');
            text.push_str(&clang.text());
        }
        for toolkit in &self.cuda_toolkits {
            text.push('\n');
            text.push_str(&toolkit.text());
        }
        if self.clangs.is_empty() {
            text.push_str("\nclang is missing: finishing exported programs on this machine\n");
            text.push_str(&wrapped(
                "to get it: install Debian's packages clang-19, clang-tools-19 and lld-19, or another release from 15 to 23, \
                 and have it in PATH",
                2,
            ));
        }
        text
    }
}

impl ClangReport {
    fn of(path: &Path, clang: &InstalledClang) -> Self {
        let release = clang.release.as_ref().ok().copied();
        let layouts = release.and_then(|release| layout::choose(&[release], Runtime::Cuda).ok());
        let mut problems: Vec<String> = clang
            .release
            .as_ref()
            .err()
            .map(ToString::to_string)
            .into_iter()
            .collect();
        if let Some(release) = release {
            problems.extend(clang.missing.iter().filter_map(|(runtime, tools)| {
                let (name, list) = (runtime.name(), tools.join(", "));
                let mut packages: Vec<String> = tools.iter().map(|tool| package(tool, release)).collect();
                packages.dedup();
                let packages = packages.join(" and ");
                (!tools.is_empty())
                    .then(|| format!("cannot finish programs for {name}, for want of {list}: install {packages}"))
            }));
        }
        if let Some(wrapper) = &clang.borrowed {
            problems.push(format!(
                "it has no clang-linker-wrapper of its own and starts {} of PATH, whose release decides what is registered",
                wrapper.display()
            ));
        }
        Self {
            path: path.display().to_string(),
            version: clang.version.as_ref().map(|version| version.version.clone()),
            maker: clang.version.as_ref().map(|version| version.maker.to_string()),
            release,
            finishes: clang.finishes().collect(),
            read_by: layouts.map(|layouts| layouts.serves()).unwrap_or_default(),
            problems,
        }
    }

    fn text(&self) -> String {
        let mut title = "clang".to_owned();
        if let Some(version) = &self.version {
            title.push_str(&format!(" {version}"));
        }
        if let Some(maker) = self.maker.as_ref().filter(|maker| *maker != "LLVM") {
            title.push_str(&format!(" ({maker})"));
        }
        let finishes: Vec<&str> = self.finishes.iter().map(|runtime| runtime.name()).collect();
        title.push_str(&match finishes.as_slice() {
            [] => ": finishes no exported programs".to_owned(),
            runtimes => format!(": finishes exported programs for {}", runtimes.join(" and ")),
        });
        let mut text = wrapped(&title, 0);
        text.push_str(&format!("  found {} (PATH)\n", self.path));
        if let (Some(release), false) = (self.release, self.read_by.is_empty()) {
            text.push_str(&wrapped(
                &format!(
                    "--finish-with clang-{}: such objects are read by {}",
                    release.number(),
                    ReleaseList(&self.read_by)
                ),
                2,
            ));
        }
        for problem in &self.problems {
            text.push_str(&wrapped(problem, 2));
        }
        text
    }
}

impl CudaReport {
    fn of(installation: &CudaInstallation, clangs: &[ClangRelease]) -> Self {
        let (mut problems, mut releases) = (Vec::new(), Vec::new());
        let mut version = |name: &str, path: Option<&Path>| {
            let Some(path) = path else {
                problems.push(format!("{name} is missing, and clang needs it"));
                return None;
            };
            match tool_version(path) {
                Ok(version) => {
                    let (major, minor) = version.release();
                    let release = u16::try_from(major).ok().zip(u16::try_from(minor).ok());
                    releases.extend(release.map(|(major, minor)| CudaRelease::new(major, minor)));
                    Some(version.build)
                }
                Err(error) => {
                    problems.push(format!("{name} does not work: {error}"));
                    None
                }
            }
        };
        let ptxas = version("ptxas", installation.ptxas.as_deref());
        let nvlink = version("nvlink", installation.nvlink.as_deref());
        let fatbinary = version("fatbinary", installation.fatbinary.as_deref());
        releases.dedup();
        if releases.len() > 1 {
            problems.push("its programs are of several releases".to_owned());
        }
        // It is fatbinary whose options have changed, and the last of the three.
        let release = releases.last().copied();
        let needs_script = |clang: &&ClangRelease| release.is_some_and(|cuda| clang.needs_fatbinary_script(cuda));
        Self {
            root: installation.root.display().to_string(),
            origin: installation.origin.to_string(),
            release: release.map(|release| release.to_string()),
            ptxas,
            nvlink,
            fatbinary,
            problems,
            script_for: clangs.iter().filter(needs_script).copied().collect(),
        }
    }

    fn text(&self) -> String {
        let release = self.release.as_deref().unwrap_or("of an unknown release");
        let mut text = wrapped(
            &format!(
                "CUDA {release}: PATH={}/bin:$PATH lets clang finish programs with it",
                self.root
            ),
            0,
        );
        text.push_str(&format!("  found {} ({})\n", self.root, self.origin));
        let tools = [
            ("ptxas", &self.ptxas),
            ("nvlink", &self.nvlink),
            ("fatbinary", &self.fatbinary),
        ];
        let tools: Vec<String> = tools
            .iter()
            .filter_map(|(name, version)| Some(format!("{name} {}", version.as_ref()?)))
            .collect();
        if !tools.is_empty() {
            text.push_str(&wrapped(&tools.join(", "), 2));
        }
        for problem in &self.problems {
            text.push_str(&wrapped(problem, 2));
        }
        if !self.script_for.is_empty() {
            text.push_str(&wrapped(
                &format!(
                    "with {} its fatbinary needs a script in front of it, for want of an option that they use; `gpulower \
                     export` prints it",
                    ReleaseList(&self.script_for)
                ),
                2,
            ));
        }
        text
    }
}
