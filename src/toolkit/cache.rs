//! Where things are kept that are made once for each toolkit.

use std::{ffi::OsString, path::PathBuf};

/// The directory for gpulower's own files, by the XDG base directory specification: `$XDG_CACHE_HOME/gpulower`, or
/// `$HOME/.cache/gpulower`. `None` where neither variable holds an absolute path. `variable` looks a variable up.
pub fn cache_directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("gpulower"))
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
