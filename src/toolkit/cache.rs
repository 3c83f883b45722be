//! Where things are kept that are made once for each toolkit.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
};

/// The directory for gpulower's own files, by the XDG base directory specification: `$XDG_CACHE_HOME/gpulower`, or
/// `$HOME/.cache/gpulower`. `None` where neither variable holds an absolute path. `variable` looks a variable up.
pub fn cache_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("gpulower"))
}

/// How the names begin of what is made once for each toolkit: nvPTXCompiler's shared object, notes of hashes.
const MADE_ONCE: [&str; 3] = ["nvptxcompiler-", ".nvptxcompiler-", "digest-"];

/// The bytes of what was made once for each toolkit and lies in this directory. It is removed where that is asked for: it is made
/// again when it is needed, and processes that use it are not disturbed.
///
/// # Errors
///
/// What cannot be read or removed. A directory that does not exist holds nothing.
pub fn made_once(directory: &Path, remove: bool) -> io::Result<u64> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        entries => entries?,
    };
    let mut bytes = 0;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let ours = MADE_ONCE
            .iter()
            .any(|start| name.as_encoded_bytes().starts_with(start.as_bytes()));
        let metadata = entry.metadata()?;
        if !ours || !metadata.is_file() {
            continue;
        }
        bytes += metadata.len();
        if remove {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_do_not_count() {
        let look = |pairs: &'static [(&str, &str)]| {
            cache_directory(|name| {
                pairs
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| OsString::from(value))
            })
        };
        assert_eq!(
            look(&[("XDG_CACHE_HOME", "/c"), ("HOME", "/h")]),
            Some("/c/gpulower".into())
        );
        assert_eq!(
            look(&[("XDG_CACHE_HOME", "c"), ("HOME", "/h")]),
            Some("/h/.cache/gpulower".into())
        );
        assert_eq!(look(&[]), None);
    }
}
