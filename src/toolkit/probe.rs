//! Looking at one place: the only code here that touches the file system.

use std::cmp::Reverse;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::part::{Part, PartKind, Tried, WhyNot};
use super::search::Origin;

/// A directory that may hold a toolkit, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    pub(super) origin: Origin,
}

impl Root {
    pub(super) fn new(path: impl Into<PathBuf>, origin: Origin) -> Self {
        Self {
            path: path.into(),
            origin,
        }
    }
}

/// Collects what was tried for one part until it is found.
#[derive(Debug)]
pub(super) struct Probe {
    part: Part,
}

impl Probe {
    pub(super) fn new(kind: PartKind) -> Self {
        Self {
            part: Part {
                kind,
                found: None,
                origin: None,
                tried: Vec::new(),
            },
        }
    }

    /// Looks for the part at these paths below the root; true when it is found, now or before.
    pub(super) fn root(&mut self, root: &Root, relative: &[PathBuf]) -> bool {
        if self.part.found.is_some() {
            return true;
        }
        if let Err(why_not) = directory(&root.path) {
            self.note(root.path.clone(), root.origin, why_not);
            return false;
        }
        relative
            .iter()
            .any(|relative| self.file(root.path.join(relative), root.origin))
    }

    /// Looks for the part at this path; true when it is found.
    fn file(&mut self, path: PathBuf, origin: Origin) -> bool {
        match file(&path, self.part.kind.is_program()) {
            Ok(()) => {
                self.part.found = Some(path);
                self.part.origin = Some(origin);
                true
            }
            Err(why_not) => {
                self.note(path, origin, why_not);
                false
            }
        }
    }

    fn note(&mut self, path: PathBuf, origin: Origin, why_not: WhyNot) {
        // Two variables often have the same value; once is enough.
        if !self.part.tried.iter().any(|tried| tried.path == path) {
            self.part.tried.push(Tried { path, origin, why_not });
        }
    }

    pub(super) fn finish(self) -> Part {
        self.part
    }
}

/// Whether this is a directory.
pub(super) fn directory(path: &Path) -> Result<(), WhyNot> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(WhyNot::NotADirectory),
        Err(error) if is_absence(error.kind()) => Err(WhyNot::NoSuchDirectory),
        Err(error) => Err(WhyNot::Unreadable(error.to_string())),
    }
}

/// Whether this is a program.
pub(super) fn is_program(path: &Path) -> bool {
    file(path, true).is_ok()
}

/// Whether this is a file with content that can be of use.
fn file(path: &Path, executable: bool) -> Result<(), WhyNot> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(WhyNot::NotAFile),
        Ok(metadata) if metadata.len() == 0 => Err(WhyNot::Empty),
        Ok(metadata) if executable && !may_execute(&metadata) => Err(WhyNot::NotExecutable),
        Ok(_) => Ok(()),
        Err(error) if is_absence(error.kind()) => Err(WhyNot::NoSuchFile),
        Err(error) => Err(WhyNot::Unreadable(error.to_string())),
    }
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(unix)]
fn may_execute(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn may_execute(_: &fs::Metadata) -> bool {
    true
}

/// The entries of a directory whose names begin like this, the highest version first. None of them when the directory
/// cannot be read: what is not there is reported where a file below it is looked for.
pub(super) fn versions(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found: Vec<(Vec<u64>, String)> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().into_string().ok()?;
            Some((numbers(name.strip_prefix(prefix)?), name))
        })
        .collect();
    // The name decides between equals, so that the order never depends on the file system.
    found.sort_by_key(|found| Reverse(found.clone()));
    found.into_iter().map(|(_, name)| folder.join(name)).collect()
}

/// The numbers in a version: 12.10 comes after 12.9.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_numbers() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in ["cuda-12.9", "cuda-12.10", "cuda-11.8", "other-99"] {
            fs::create_dir(folder.path().join(name)).expect("a directory");
        }
        let expected = ["cuda-12.10", "cuda-12.9", "cuda-11.8"].map(|name| folder.path().join(name));
        assert_eq!(versions(folder.path(), "cuda-"), expected);
        assert!(versions(&folder.path().join("nowhere"), "cuda-").is_empty());
    }
}
