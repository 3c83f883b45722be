//! The commands of the tutorial, the how-to pages, the README and some reference pages, run as they stand, with what they print compared.
//!
//! A page is one session in a folder of its own, from its first block to its last:
//!
//! | block | what happens |
//! |---|---|
//! | `LANGUAGE,file=NAME` | written to the file NAME |
//! | `console` | what follows `$ `, and `> ` in the lines after it, is run by bash, has to succeed, and to print the lines below it |
//! | `console,fails` | the same, and the commands have to fail |
//! | `console,gpu` | the same, where `GPULOWER_DOCS_GPU` is set: it needs an NVIDIA GPU, and cupy for Python |
//! | `LANGUAGE,no_run` | nothing; the text says what is missing |
//! | `text` | nothing: it is no code |
//!
//! Of what is printed, a line `...` stands for any lines, and `...` in a line for any characters. `GPULOWER_BLESS=1` puts
//! what was printed in the place of what was expected, where that has no `...`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::{
    env, fs,
    ops::Range,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

#[test]
fn readme() {
    run_pages(&[root().join("README.md")]);
}

#[test]
fn tutorial() {
    run_pages(&[root().join("docs/tutorial.md")]);
}

#[test]
fn how_to_pages() {
    let mut pages: Vec<PathBuf> = fs::read_dir(root().join("docs/howto"))
        .expect("docs/howto")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    assert!(!pages.is_empty(), "docs/howto has no pages");
    pages.extend(["run", "linking", "finishing"].map(|name| root().join(format!("docs/{name}.md"))));
    run_pages(&pages);
}

#[test]
fn reference_pages() {
    run_pages(
        &[
            "report",
            "commands",
            "kernel-abi",
            "export",
            "export-openmp",
            "options",
            "passes",
            "fleet",
            "export-check",
            "inspect",
        ]
        .map(|name| root().join(format!("docs/{name}.md"))),
    );
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs all of the pages, and fails with what is wrong in any.
fn run_pages(pages: &[PathBuf]) {
    let wrong: Vec<String> = pages.iter().flat_map(|page| run_page(page)).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n\n"));
}

/// What is wrong in a page: `PAGE:LINE: ...`.
fn run_page(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let lines: Vec<&str> = text.lines().collect();
    let session = Session::new(&text);
    let mut wrong = Vec::new();
    let mut new_outputs = Vec::new();
    for block in blocks(&lines) {
        let at = |line: usize| format!("{}:{}", page.display(), line + 1);
        match session.run_block(&block, &lines) {
            Ok(outputs) => {
                for Mismatch { step, output } in outputs {
                    let expected = lines[step.expected.clone()].join("\n");
                    if env::var_os("GPULOWER_BLESS").is_some() && !expected.contains("...") {
                        new_outputs.push((step.expected.clone(), output));
                    } else {
                        let printed = output.trim_end();
                        let place = at(step.line);
                        wrong.push(format!(
                            "{place}: {} prints\n{printed}\n-- and not\n{expected}",
                            step.command
                        ));
                    }
                }
            }
            Err(message) => wrong.push(format!("{}: {message}", at(block.line))),
        }
    }
    if !new_outputs.is_empty() {
        fs::write(page, with_outputs(&lines, &new_outputs)).expect("the page is written");
    }
    wrong
}

fn with_outputs(lines: &[&str], outputs: &[(Range<usize>, String)]) -> String {
    let mut text = String::new();
    let mut next = 0;
    for (range, output) in outputs {
        lines[next..range.start]
            .iter()
            .for_each(|line| text.extend([line, "\n"]));
        output
            .trim_end()
            .lines()
            .for_each(|line| text.extend([line.trim_end(), "\n"]));
        next = range.end;
    }
    lines[next..].iter().for_each(|line| text.extend([line, "\n"]));
    text
}

/// A fenced block: the words behind its fence, and the lines inside.
struct Block<'a> {
    line: usize,
    language: &'a str,
    words: Vec<&'a str>,
    inside: Range<usize>,
}

impl<'a> Block<'a> {
    fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    fn file(&self) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix("file="))
    }
}

fn blocks<'a>(lines: &[&'a str]) -> Vec<Block<'a>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'a>> = None;
    for (number, line) in lines.iter().enumerate() {
        let Some(words) = line.strip_prefix("```") else {
            continue;
        };
        match open.take() {
            Some(mut block) => {
                block.inside.end = number;
                blocks.push(block);
            }
            None => {
                let mut words = words.split(',');
                open = Some(Block {
                    line: number,
                    language: words.next().unwrap_or_default(),
                    words: words.collect(),
                    inside: number + 1..number + 1,
                });
            }
        }
    }
    assert!(open.is_none(), "a fence is not closed");
    blocks
}

/// A command, and the lines that it is expected to print.
struct Step {
    line: usize,
    command: String,
    expected: Range<usize>,
}

struct Mismatch {
    step: Step,
    output: String,
}

fn steps(block: &Block<'_>, lines: &[&str]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for line in block.inside.clone() {
        if let Some(command) = lines[line].strip_prefix("$ ") {
            steps.push(Step {
                line,
                command: command.into(),
                expected: line + 1..line + 1,
            });
            continue;
        }
        let step = steps.last_mut().ok_or("the block does not begin with `$ `")?;
        match lines[line].strip_prefix("> ") {
            Some(more) if step.expected.is_empty() => {
                step.command.extend(["\n", more]);
                step.expected = line + 1..line + 1;
            }
            _ => step.expected.end = line + 1,
        }
    }
    Ok(steps)
}

/// A folder in which a page is tried out.
struct Session {
    folder: TempDir,
}

impl Session {
    /// A page that speaks of `examples/` finds that folder.
    fn new(page: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        if page.contains(" examples/") {
            let examples = fs::canonicalize(root().join("examples")).expect("examples");
            std::os::unix::fs::symlink(examples, folder.path().join("examples")).expect("a link");
        }
        Self { folder }
    }

    fn run_block(&self, block: &Block<'_>, lines: &[&str]) -> Result<Vec<Mismatch>, String> {
        if let Some(name) = block.file() {
            let path = self.folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, lines[block.inside.clone()].join("\n") + "\n").expect("written");
            return Ok(Vec::new());
        }
        if block.has("no_run") || block.language == "text" {
            return Ok(Vec::new());
        }
        if block.language != "console" {
            return Err(format!(
                "a block `{}` has to be `console`, to have `file=NAME`, or to be marked `no_run`",
                block.language
            ));
        }
        if let Some(word) = block.words.iter().find(|word| !["fails", "gpu"].contains(*word)) {
            return Err(format!("`{word}` means nothing behind `console`"));
        }
        let steps = steps(block, lines)?;
        if block.has("gpu") && env::var_os("GPULOWER_DOCS_GPU").is_none() {
            return Ok(Vec::new());
        }
        let mut wrong = Vec::new();
        for step in steps {
            let (succeeded, output) = self.run(&step.command);
            if succeeded == block.has("fails") {
                let what = if succeeded { "succeeds" } else { "fails" };
                return Err(format!("{} {what}:\n{output}", step.command));
            }
            let printed: Vec<&str> = output.lines().collect();
            if !lines_match(&lines[step.expected.clone()], &printed) {
                wrong.push(Mismatch { step, output });
            }
        }
        Ok(wrong)
    }

    /// Whether the command succeeded, and what it printed on both outputs.
    fn run(&self, command: &str) -> (bool, String) {
        let program = Path::new(env!("CARGO_BIN_EXE_gpulower"));
        let mut path = vec![program.parent().expect("a parent").to_path_buf()];
        path.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
        // A page may wait for what does not come.
        let output = Command::new("timeout")
            .args(["600", "bash", "-o", "pipefail", "-c", &format!("{{ {command}\n}} 2>&1")])
            .current_dir(self.folder.path())
            .env("PATH", env::join_paths(path).expect("paths"))
            .env("CUDA_HOME", cuda())
            // find_package(gpulower), though nothing is installed.
            .env(
                "gpulower_DIR",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../gpulower-c/package"),
            )
            .env("HOME", self.folder.path())
            .env("XDG_CACHE_HOME", self.folder.path().join(".cache"))
            .env_remove("GPULOWER_LOG")
            .env_remove("GPULOWER_CACHE")
            .output()
            .expect("bash runs");
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stdout).into_owned(),
        )
    }
}

/// The CUDA toolkit of the tests.
fn cuda() -> PathBuf {
    let path = env::var_os("GPULOWER_CUDA").map_or_else(|| root().join(".toolkit/cuda"), PathBuf::from);
    fs::canonicalize(&path).unwrap_or_else(|error| {
        panic!(
            "{}: {error}: run `cargo xtask setup`, or set GPULOWER_CUDA",
            path.display()
        )
    })
}

fn lines_match(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.iter().all(|line| line.trim().is_empty()),
        Some((&"...", rest)) => (0..=printed.len()).any(|skipped| lines_match(rest, &printed[skipped..])),
        Some((line, rest)) => printed.split_first().is_some_and(|(first, others)| {
            line_matches(line.trim_end(), first.trim_end()) && lines_match(rest, others)
        }),
    }
}

/// `...` in `expected` stands for any characters.
fn line_matches(expected: &str, printed: &str) -> bool {
    match expected.split_once("...") {
        None => expected == printed,
        Some((before, after)) => printed.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| line_matches(after, &rest[at..]))
        }),
    }
}

#[test]
fn dots_stand_for_anything() {
    assert!(lines_match(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(lines_match(&["a", "...", "d"], &["a", "d"]));
    assert!(lines_match(&["x ... ms, ..."], &["x 12 ms, done"]));
    assert!(!lines_match(&["a", "...", "d"], &["a", "b"]));
    assert!(!lines_match(&["a"], &["a", "b"]));
    assert!(!lines_match(&["a"], &[]));
}

#[test]
fn a_page_is_blocks_and_steps() {
    let page = "```console,gpu\n$ one \\\n>  two\nout\n$ three\n```\n```c,file=a.c\nx\n```";
    let lines: Vec<&str> = page.lines().collect();
    let blocks = blocks(&lines);
    assert!(blocks[0].has("gpu") && blocks[1].file() == Some("a.c"));
    let steps = steps(&blocks[0], &lines).expect("steps");
    assert_eq!(steps[0].command, "one \\\n two");
    assert_eq!((steps[0].expected.clone(), steps[1].expected.clone()), (3..4, 5..5));
    assert_eq!(
        with_outputs(&lines, &[(3..4, "new\n".into())]),
        page.replace("out", "new") + "\n"
    );
}
