//! What has to hold of the sources for anybody to trust them: `unsafe` where it belongs, and no shell.

use std::fs;
use std::path::{Path, PathBuf};

/// Files outside of `src/bridge/` in which the word may stand, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("src/lib.rs", "denies it, and says where it is"),
    (
        "src/jit/mod.rs",
        "running a program of the user's is for the caller to vouch for",
    ),
    ("src/jit/tests.rs", "runs programs"),
    ("src/cli/run.rs", "runs the program that the user named"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// A line of code with the keyword: not a comment, a string, `unsafe_code` or a name that holds it.
fn is_unsafe(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    let outside: String = code.split('"').step_by(2).collect();
    outside
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .any(|word| word == "unsafe" || word == "unsafe_code")
}

#[test]
fn unsafe_code_is_in_the_bridge_alone() {
    let root = root();
    let mut files = Vec::new();
    rust_files(&root.join("src"), &mut files);
    assert!(files.len() > 100, "{}", files.len());
    let mut used = Vec::new();
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(&root).unwrap().display().to_string();
        if name.starts_with("src/bridge/") || !fs::read_to_string(&file).unwrap().lines().any(is_unsafe) {
            continue;
        }
        match EXCEPTIONS.iter().any(|(exception, _)| *exception == name) {
            true => used.push(name),
            false => wrong.push(name),
        }
    }
    assert!(wrong.is_empty(), "`unsafe` outside of src/bridge: {wrong:?}");
    let unused: Vec<_> = EXCEPTIONS
        .iter()
        .filter(|(name, _)| !used.contains(&(*name).to_owned()))
        .collect();
    assert!(unused.is_empty(), "exceptions that are none: {unused:?}");
}

#[test]
fn the_keyword_is_told_from_the_word() {
    assert!(is_unsafe("    unsafe { f() }"));
    assert!(is_unsafe("#![deny(unsafe_code)]"));
    for line in [
        "// unsafe",
        "let unsafely = 1;",
        "say(\"unsafe\")",
        "\"unsafe_math\" | \"finite_only\"",
    ] {
        assert!(!is_unsafe(line), "{line}");
    }
}

/// Whatever is not read by the program is on the command line of a person: a shell is not started.
#[test]
fn no_shell_is_started() {
    let root = root();
    let mut files = Vec::new();
    rust_files(&root.join("src"), &mut files);
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&file).unwrap();
        // Tests may: they stand in files of their own, or at the end.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        if name.contains("test") || file.components().any(|part| part.as_os_str() == "testing") {
            continue;
        }
        for shell in [
            "Command::new(\"sh\")",
            "Command::new(\"/bin/sh\")",
            "Command::new(\"bash\")",
        ] {
            assert!(!code.contains(shell), "{}: {shell}", file.display());
        }
    }
}
