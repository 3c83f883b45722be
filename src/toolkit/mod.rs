//! Where CUDA's and ROCm's parts are, as a value that remembers every place it looked.
//!
//! A program describes where to look with a [`Search`]; [`Toolkit::discover`] looks there, with calls to `stat` and
//! directory listings alone, and starts no process. What was found is asked for by kind:
//! [`Toolkit::require`] answers with the path, or with an error that lists every place that was tried and how to get
//! the part. [`tool_version`] starts a tool of NVIDIA's to ask for its version, [`version_text`] any tool.
//! [`clangs`] and [`cuda_installations`] list what can finish exported programs.
//!
//! ```no_run
//! use gpulower::toolkit::{PartKind, Search, Toolkit};
//!
//! let search = Search::from_variables(|name| std::env::var_os(name));
//! let toolkit = Toolkit::discover(&search);
//! let libdevice = toolkit.require(PartKind::Libdevice)?;
//! println!("libdevice is {}", libdevice.display());
//! # Ok::<(), gpulower::toolkit::ToolkitError>(())
//! ```

mod cache;
mod clang;
mod cuda;
pub(crate) mod digest;
mod error;
mod installation;
mod part;
mod probe;
mod rocm;
mod search;
mod version;

use crate::target::Vendor;
use std::path::{Path, PathBuf};

pub use cache::{cache_directory, made_once};
pub use clang::{ClangProgram, clangs, program_in_path};
pub use error::ToolkitError;
pub use installation::{CudaInstallation, cuda_installations};
pub use part::{Part, PartKind, Tried, WhyNot};
pub use search::{Origin, Search};
pub use version::{ToolVersion, tool_version, version_text};

/// The parts of CUDA and ROCm on this machine, found or not.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Toolkit {
    /// One for each [`PartKind`], in the order of [`PartKind::ALL`].
    parts: Vec<Part>,
    /// The toolkits that the caller named, which have to hold what is asked for.
    explicit_cuda: Option<PathBuf>,
    explicit_rocm: Option<PathBuf>,
    /// Where it was looked for; not known in another process.
    #[serde(skip)]
    search: Search,
}

impl Toolkit {
    /// Looks for every part, once. Later changes of the file system are not seen.
    #[must_use]
    pub fn discover(search: &Search) -> Self {
        let mut parts = cuda::discover(search);
        parts.extend(rocm::discover(search));
        parts.sort_by_key(|part| part.kind);
        for part in &parts {
            tracing::debug!(kind = %part.kind, found = ?part.found, tried = part.tried.len(), "toolkit part");
        }
        Self {
            parts,
            explicit_cuda: search.explicit_cuda().map(Path::to_path_buf),
            explicit_rocm: search.explicit_rocm().map(Path::to_path_buf),
            search: search.clone(),
        }
    }

    /// Where it was looked for.
    #[must_use]
    pub const fn search(&self) -> &Search {
        &self.search
    }

    /// Every part, found or not, with what it enables and how to get it: what a diagnosis prints.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.iter()
    }

    /// The part of this kind, found or not.
    #[must_use]
    pub fn part(&self, kind: PartKind) -> Option<&Part> {
        self.parts.iter().find(|part| part.kind == kind)
    }

    /// Where the part is; None when it was not found.
    #[must_use]
    pub fn find(&self, kind: PartKind) -> Option<&Path> {
        self.part(kind)?.found.as_deref()
    }

    /// Where the part is.
    ///
    /// # Errors
    /// [`ToolkitError::NotFound`], or [`ToolkitError::NotInGivenToolkit`] when the caller named a toolkit that has no
    /// such part: other places are not tried then, because another version may lie there.
    pub fn require(&self, kind: PartKind) -> Result<&Path, ToolkitError> {
        if let Some(path) = self.find(kind) {
            return Ok(path);
        }
        let tried = self.part(kind).map(|part| part.tried.clone());
        let tried = tried.unwrap_or_default();
        let explicit = match kind.vendor() {
            Vendor::Nvidia => &self.explicit_cuda,
            Vendor::Amd => &self.explicit_rocm,
        };
        Err(match explicit {
            Some(given) => ToolkitError::NotInGivenToolkit {
                kind,
                given: given.clone(),
                tried,
            },
            None => ToolkitError::NotFound { kind, tried },
        })
    }
}

#[cfg(test)]
mod tests;
