//! The commands of the documentation that are not run by tests, since they take minutes, a GPU or another machine: those of
//! `docs/lab/`, `docs/performance.md`, `docs/code-quality.md`, CONTRIBUTING.md and all other pages. They are read as they would
//! be run: subcommands and options have to be there, and so do scripts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use crate::Arguments;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The lines of all blocks for a shell, each with its page; those that go on with `\` are one.
fn commands() -> Vec<(String, String)> {
    let mut pages = vec!["README.md".into(), "CONTRIBUTING.md".into()];
    for folder in ["docs", "docs/howto", "docs/lab"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder").flatten();
        let names = entries.map(|entry| format!("{folder}/{}", entry.file_name().to_string_lossy()));
        pages.extend(names.filter(|name| name.ends_with(".md")));
    }
    let mut commands = Vec::new();
    for page in pages {
        let text = fs::read_to_string(root().join(&page)).expect("a page");
        let mut is_shell = false;
        let mut whole = String::new();
        for line in text.lines() {
            if let Some(language) = line.strip_prefix("```") {
                is_shell = language.starts_with("sh") || language.starts_with("console");
            } else if is_shell {
                let line = line.trim_start_matches("$ ").trim_start_matches("> ");
                match line.strip_suffix('\\') {
                    Some(begun) => whole.push_str(begun),
                    None => commands.push((page.clone(), std::mem::take(&mut whole) + line)),
                }
            }
        }
    }
    commands
}

/// The words of a command, as a shell would divide a simple one.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut quote = None;
    let mut word = String::new();
    for c in command.chars() {
        match (quote, c) {
            (None, '#') if word.is_empty() => break,
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ' ') if word.is_empty() => {}
            (None, ' ') => words.push(std::mem::take(&mut word)),
            (None, '&' | '|' | ';') => break,
            _ => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[test]
fn commands_of_this_program_are_there() {
    let mut names = BTreeSet::new();
    for (page, command) in commands() {
        let words = words(&command);
        if let [cargo, xtask, rest @ ..] = &words[..]
            && (cargo.as_str(), xtask.as_str()) == ("cargo", "xtask")
        {
            let read = Arguments::try_parse_from(["cargo xtask".to_owned()].iter().chain(rest));
            if let Err(error) = read {
                panic!("{page}: {command}\n{error}");
            }
            names.extend(rest.first().cloned());
        }
    }
    assert!(names.len() > 12, "{names:?}");
}

#[test]
fn scripts_are_there() {
    let mut found = 0;
    for (page, command) in commands() {
        for word in words(&command) {
            let is_ours = ["scripts/", "integrations/", "tests/"]
                .iter()
                .any(|folder| word.starts_with(folder));
            if is_ours {
                assert!(root().join(&word).exists(), "{page}: {command}: there is no {word}");
                found += 1;
            }
        }
    }
    assert!(found > 20, "{found} scripts");
}

#[test]
fn words_are_those_of_a_shell() {
    assert_eq!(
        words("cargo xtask amd -- --with \"a b\" 'c'  # d"),
        ["cargo", "xtask", "amd", "--", "--with", "a b", "c"]
    );
    assert_eq!(words("one && two"), ["one"]);
}
