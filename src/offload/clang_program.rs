//! The clangs of this machine: their releases, and what they can finish.

use std::path::{Path, PathBuf};

use super::{clang_version::ClangVersion, error::OffloadError, release::ClangRelease, runtime::Runtime};
use crate::toolkit::{ClangProgram, version_text};

/// What clang runs with `--offload-link` instead of the linker.
const WRAPPER: &str = "clang-linker-wrapper";

/// The release of a clang, which is run with `--version`.
///
/// # Errors
///
/// [`OffloadError`].
pub fn release_of_program(program: &Path) -> Result<ClangRelease, OffloadError> {
    let text = version_text(program).map_err(|error| OffloadError::new(error.to_string()))?;
    release_of_text(program, &text)
}

fn release_of_text(program: &Path, text: &str) -> Result<ClangRelease, OffloadError> {
    ClangRelease::of_version_text(text)
        .map_err(|error| OffloadError::new(format!("{} cannot be exported for: {error}", program.display())))
}

/// A clang of this machine, asked.
#[derive(Debug)]
pub struct InstalledClang {
    /// What it says of itself; none if it does not run, or says something else.
    pub version: Option<ClangVersion>,
    /// The release of which it is.
    pub release: Result<ClangRelease, OffloadError>,
    /// For each runtime the tools that it needs to finish programs, and does not have.
    pub missing: Vec<(Runtime, Vec<&'static str>)>,
    /// The clang-linker-wrapper that it takes from PATH for want of its own. Its release is the one that counts.
    pub borrowed: Option<PathBuf>,
}

impl InstalledClang {
    /// Runs a clang to ask for its version, and looks for its tools.
    #[must_use]
    pub fn ask(clang: &ClangProgram) -> Self {
        let (version, release) = match version_text(&clang.path) {
            Err(error) => (None, Err(OffloadError::new(error.to_string()))),
            Ok(text) => (ClangVersion::parse(&text), release_of_text(&clang.path, &text)),
        };
        let missing = |runtime| {
            let needed = release.as_ref().map_or(&[][..], |release| tools(*release, runtime));
            let is_missing = |tool: &&&str| clang.tool(tool).is_none();
            (runtime, needed.iter().filter(is_missing).copied().collect())
        };
        // For OpenMP it takes what CUDA takes.
        let missing = [Runtime::Cuda, Runtime::Hip].map(missing).into();
        Self {
            version,
            release,
            missing,
            borrowed: clang.tool(WRAPPER).filter(|wrapper| !clang.is_own(wrapper)),
        }
    }

    /// The runtimes for which it finishes programs.
    pub fn finishes(&self) -> impl Iterator<Item = Runtime> {
        let known = self.release.is_ok() && self.borrowed.is_none();
        let complete = self.missing.iter().filter(move |(_, tools)| known && tools.is_empty());
        complete.map(|(runtime, _)| *runtime)
    }
}

/// The programs of LLVM's that a release starts to finish programs, besides itself. Observed with `-v` and 16, 19 and 22.
const fn tools(release: ClangRelease, runtime: Runtime) -> &'static [&'static str] {
    match (runtime, release.number()) {
        (Runtime::Cuda | Runtime::OpenMp, ..=18) => &[WRAPPER],
        (Runtime::Cuda | Runtime::OpenMp, 19..) => &[WRAPPER, "clang-nvlink-wrapper"],
        (Runtime::Hip, _) => &[WRAPPER, "clang-offload-bundler", "ld.lld"],
    }
}

/// Debian's package with one of these programs.
#[must_use]
pub fn package(tool: &str, release: ClangRelease) -> String {
    let name = if tool == "ld.lld" { "lld" } else { "clang-tools" };
    format!("{name}-{}", release.number())
}
