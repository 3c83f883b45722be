//! `@FILE`: arguments from a file, as build systems write them where a command line is too long.

use std::{ffi::OsString, fs, path::PathBuf};

/// How deeply files may name files.
const DEEPEST: usize = 8;

/// Puts the words of files in the place of `@FILE`, up to `--`, and says which files these are. Words are quoted as for a POSIX
/// shell.
pub fn expand(arguments: Vec<OsString>) -> Result<(Vec<OsString>, Vec<PathBuf>), String> {
    let mut expanded = Expanded::default();
    expanded.add(arguments, 0)?;
    Ok((expanded.words, expanded.files))
}

#[derive(Default)]
struct Expanded {
    words: Vec<OsString>,
    files: Vec<PathBuf>,
    /// `--` was met.
    is_over: bool,
}

impl Expanded {
    fn add(&mut self, arguments: Vec<OsString>, depth: usize) -> Result<(), String> {
        for argument in arguments {
            self.is_over |= argument == "--";
            let file = argument.to_str().and_then(|text| text.strip_prefix('@'));
            let Some(file) = file.filter(|file| !file.is_empty() && !self.is_over) else {
                self.words.push(argument);
                continue;
            };
            if depth == DEEPEST {
                return Err(format!("@{file}: files of arguments name each other"));
            }
            let text = fs::read_to_string(file)
                .map_err(|error| format!("cannot read {file}, which '@' says holds arguments: {error}"))?;
            let words =
                shlex::split(&text).ok_or_else(|| format!("{file}: a quotation mark or backslash has no end"))?;
            self.files.push(PathBuf::from(file));
            self.add(words.into_iter().map(OsString::from).collect(), depth + 1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(arguments: &[&str]) -> Result<Vec<String>, String> {
        let arguments = arguments.iter().map(OsString::from).collect();
        let (words, _) = expand(arguments)?;
        Ok(words
            .into_iter()
            .map(|word| word.into_string().expect("UTF-8"))
            .collect())
    }

    #[test]
    fn words_come_from_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("inner"), "-t sm_90\n'a b.mlir'\n").expect("written");
        fs::write(path("outer"), format!("-o out/ @{} x\\ y", path("inner"))).expect("written");
        let outer = format!("@{}", path("outer"));
        assert_eq!(
            expanded(&["gpulower", "compile", &outer, "@"]).expect("read"),
            [
                "gpulower", "compile", "-o", "out/", "-t", "sm_90", "a b.mlir", "x y", "@"
            ]
        );
        assert_eq!(expanded(&["--", &outer]).expect("read"), ["--", &outer]);
        fs::write(path("loop"), format!("@{}", path("loop"))).expect("written");
        assert!(expanded(&[&format!("@{}", path("loop"))]).is_err_and(|text| text.contains("each other")));
        assert!(expanded(&["@/none"]).is_err_and(|text| text.starts_with("cannot read /none")));
    }
}
