//! The pages of the documentation, run as they stand, with what they print compared.
//!
//! A page is one session in a folder of its own, from its first block to its last:
//!
//! | block | what happens |
//! |---|---|
//! | `LANGUAGE,file=NAME` | written to the file NAME |
//! | `console` | what follows `$ `, and `> ` in the lines after it, is run by bash, has to succeed, and to print the lines below it |
//! | `console,fails` | the same, and the commands have to fail |
//! | `console,gpu` | the same, where there is an NVIDIA GPU, and cupy for Python |
//! | `LANGUAGE,no_run` | nothing: `crates/gpulower-cli/tests/docs.rs` has the reason |
//!
//! Of what is printed, a line `...` stands for any lines, and `...` in a line for any characters. With `GPULOWER_BLESS=1`
//! what was printed takes the place of what was expected, where that has no `...`.

use std::{env, fs, ops::Range, path::Path, process::Command};

/// Where a page is tried out.
#[expect(missing_debug_implementations, reason = "it has a function")]
pub struct Session<'a> {
    /// Its folder, as this process sees it.
    pub folder: &'a Path,
    /// What runs a script of bash in that folder.
    pub shell: &'a dyn Fn(&str) -> Result<Command, String>,
    /// Whether there is a GPU.
    pub has_gpu: bool,
}

/// What became of a page.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `PAGE:LINE: ...`.
    pub wrong: Vec<String>,
    /// Commands that were run.
    pub ran: usize,
    /// Commands that were not, since they need a GPU.
    pub for_gpus: Vec<String>,
}

/// Runs a page from its first block to its last.
pub fn run_page(page: &Path, session: &Session<'_>) -> Outcome {
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let lines: Vec<&str> = text.lines().collect();
    let mut outcome = Outcome::default();
    let mut new_outputs = Vec::new();
    for block in blocks(&lines) {
        let at = |line: usize| format!("{}:{}", page.display(), line + 1);
        match session.run_block(&block, &lines, &mut outcome) {
            Ok(outputs) => {
                for Mismatch { step, output } in outputs {
                    let expected = lines[step.expected.clone()].join("\n");
                    if env::var_os("GPULOWER_BLESS").is_some() && !expected.contains("...") {
                        new_outputs.push((step.expected.clone(), output));
                    } else {
                        let printed = output.trim_end();
                        let place = at(step.line);
                        let command = &step.command;
                        let message = format!("{place}: {command} prints\n{printed}\n-- and not\n{expected}");
                        outcome.wrong.push(message);
                    }
                }
            }
            Err(message) => outcome.wrong.push(format!("{}: {message}", at(block.line))),
        }
    }
    if !new_outputs.is_empty() {
        fs::write(page, with_outputs(&lines, &new_outputs)).expect("the page is written");
    }
    outcome
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
#[derive(Debug)]
pub struct Block<'a> {
    /// The line of its fence, from 0.
    pub line: usize,
    /// The first word behind it.
    pub language: &'a str,
    words: Vec<&'a str>,
    /// Its lines.
    pub inside: Range<usize>,
}

impl<'a> Block<'a> {
    /// Whether this is among the other words.
    pub fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// The file that the block is written to.
    pub fn file(&self) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix("file="))
    }
}

/// The blocks of a page.
pub fn blocks<'a>(lines: &[&'a str]) -> Vec<Block<'a>> {
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

impl Session<'_> {
    fn run_block(&self, block: &Block<'_>, lines: &[&str], outcome: &mut Outcome) -> Result<Vec<Mismatch>, String> {
        if let Some(name) = block.file() {
            let path = self.folder.join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, lines[block.inside.clone()].join("\n") + "\n").expect("written");
            return Ok(Vec::new());
        }
        if block.has("no_run") {
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
        if block.has("gpu") && !self.has_gpu {
            outcome.for_gpus.extend(steps.into_iter().map(|step| step.command));
            return Ok(Vec::new());
        }
        let mut wrong = Vec::new();
        for step in steps {
            let (succeeded, output) = self.run(&step.command)?;
            outcome.ran += 1;
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
    fn run(&self, command: &str) -> Result<(bool, String), String> {
        let mut shell = (self.shell)(&format!("{{ {command}\n}} 2>&1"))?;
        let output = shell.output().map_err(|error| format!("bash cannot be run: {error}"))?;
        // Behind it, what kept the shell from running.
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        Ok((output.status.success(), printed))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
