//! The clangs in PATH, and the tools of LLVM that they start.

use std::fs;
use std::path::{Path, PathBuf};

use super::probe::{is_program, versions};
use super::search::Search;

/// A clang.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClangProgram {
    /// Where it was found.
    pub path: PathBuf,
    /// The directory that it is in when links are followed: clang looks there for its tools.
    directory: PathBuf,
    /// The directories of PATH, where it looks then.
    search_path: Vec<PathBuf>,
}

impl ClangProgram {
    /// A clang at this path.
    #[must_use]
    pub fn new(path: &Path, search: &Search) -> Self {
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        Self {
            path: path.to_path_buf(),
            directory: real.parent().map(Path::to_path_buf).unwrap_or_default(),
            search_path: search.path().to_vec(),
        }
    }

    /// The tool of this name that it starts: the one beside it, or else the first one in PATH.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<PathBuf> {
        let directories = std::iter::once(&self.directory).chain(&self.search_path);
        directories
            .map(|directory| directory.join(name))
            .find(|path| is_program(path))
    }

    /// Whether a tool is its own, and not only one that lies in PATH.
    #[must_use]
    pub fn is_own(&self, tool: &Path) -> bool {
        tool.parent() == Some(&self.directory)
    }
}

/// The clangs in PATH: programs that are called `clang` or `clang-19`, each once, in the order of PATH, and in each of its
/// directories `clang` first and then the highest number.
#[must_use]
pub fn clangs(search: &Search) -> Vec<ClangProgram> {
    let mut found: Vec<ClangProgram> = Vec::new();
    let mut seen: Vec<PathBuf> = Vec::new();
    for directory in search.path() {
        let plain = directory.join("clang");
        let numbered = versions(directory, "clang-")
            .into_iter()
            .filter(|path| has_number(path));
        for path in std::iter::once(plain).chain(numbered).filter(|path| is_program(path)) {
            // One program with several names counts once; but behind all names of a compiler cache is the cache.
            let real = fs::canonicalize(&path).ok().filter(|real| is_clang(real));
            let real = real.unwrap_or_else(|| path.clone());
            if !seen.contains(&real) {
                seen.push(real);
                found.push(ClangProgram::new(&path, search));
            }
        }
    }
    found
}

/// The first program of a name in PATH.
#[must_use]
pub fn program_in_path(search: &Search, name: &str) -> Option<PathBuf> {
    let mut places = search.path().iter().map(|directory| directory.join(name));
    places.find(|path| is_program(path))
}

fn has_number(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let number = name.strip_prefix("clang-").unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_clang(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with("clang"))
}
