//! The clangs of this machine: their releases, and what they can finish.

use std::path::{Path, PathBuf};

use super::{clang_version::ClangVersion, release::ClangRelease, release::ReleaseError, runtime::Runtime};
use crate::toolkit::{ClangProgram, ToolkitError, version_text};

/// What clang runs with `--offload-link` instead of the linker.
const WRAPPER: &str = "clang-linker-wrapper";

/// Why the release of a clang on this machine is not known.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClangProgramError {
    /// It does not run.
    #[error(transparent)]
    Toolkit(#[from] ToolkitError),
    /// It is none of the releases that programs are exported for.
    #[error("{} cannot be exported for: {source}", program.display())]
    Version {
        /// The program.
        program: PathBuf,
        /// Why not.
        source: ReleaseError,
    },
}

/// The release of a clang, which is run with `--version`.
///
/// # Errors
///
/// [`ClangProgramError`].
pub fn release_of_program(program: &Path) -> Result<ClangRelease, ClangProgramError> {
    ClangRelease::of_version_text(&version_text(program)?).map_err(|source| ClangProgramError::Version {
        program: program.to_path_buf(),
        source,
    })
}

/// A clang of this machine, asked.
#[derive(Debug)]
pub struct InstalledClang {
    /// What it says of itself; none if it does not run, or says something else.
    pub version: Option<ClangVersion>,
    /// The release of which it is.
    pub release: Result<ClangRelease, ClangProgramError>,
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
            Err(error) => (None, Err(error.into())),
            Ok(text) => (
                ClangVersion::parse(&text),
                ClangRelease::of_version_text(&text).map_err(|source| ClangProgramError::Version {
                    program: clang.path.clone(),
                    source,
                }),
            ),
        };
        let missing = |runtime| {
            let needed = release.as_ref().map_or(&[][..], |release| tools(*release, runtime));
            let is_missing = |tool: &&&str| clang.tool(tool).is_none();
            (runtime, needed.iter().filter(is_missing).copied().collect())
        };
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
        (Runtime::Cuda, ..=18) => &[WRAPPER],
        (Runtime::Cuda, 19..) => &[WRAPPER, "clang-nvlink-wrapper"],
        (Runtime::Hip, _) => &[WRAPPER, "clang-offload-bundler", "ld.lld"],
    }
}

/// Debian's package with one of these programs.
#[must_use]
pub fn package(tool: &str, release: ClangRelease) -> String {
    let name = if tool == "ld.lld" { "lld" } else { "clang-tools" };
    format!("{name}-{}", release.number())
}
