//! Errors and warnings as people and machines read them.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, IsTerminal, Write},
};

use gpulower::{Error, ErrorKind, Location, Stage, Warning};
use serde::Serialize;

use super::colour;

/// Something that failed: the library's errors, and the command line's own in the same form.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Problem(Box<Details>);

#[derive(Clone, Debug, PartialEq, Serialize)]
struct Details {
    stage: Stage,
    module: Option<String>,
    target: Option<String>,
    kernels: Vec<String>,
    /// `E0401` and its like: `docs/errors.md`. Few of the command line's own problems have one.
    code: Option<&'static str>,
    /// In MLIR's syntax, such as `"kernel.mlir":3:5`, or the input's name.
    location: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
    symbols: Vec<String>,
    message: String,
    /// Place, stage, module, target and message, as the terminal shows them.
    #[serde(skip)]
    text: String,
    /// Where an editor has to go.
    #[serde(skip)]
    place: Option<String>,
    /// The line there, and a caret below.
    #[serde(skip)]
    excerpt: Option<String>,
}

impl Problem {
    fn own(stage: Stage, message: String) -> Self {
        Self(Box::new(Details {
            stage,
            module: None,
            target: None,
            kernels: Vec::new(),
            code: None,
            location: None,
            file: None,
            line: None,
            column: None,
            symbols: Vec::new(),
            text: format!("{stage}: {message}"),
            place: None,
            excerpt: None,
            message,
        }))
    }

    /// What was asked for cannot be planned.
    pub fn plan(message: String) -> Self {
        Self::own(Stage::Plan, message)
    }

    /// The input cannot be read.
    pub fn input(message: String) -> Self {
        Self::own(Stage::Input, message)
    }

    /// Something is wrong with the file of this name.
    pub fn in_file(name: &str, message: String) -> Self {
        let mut problem = Self::input(message);
        problem.0.location = Some(name.to_owned());
        problem.0.place = Some(name.to_owned());
        problem
    }

    /// Objects cannot be linked.
    pub fn link(message: String) -> Self {
        Self::own(Stage::Link, message)
    }

    /// A program does not run, or not to its end.
    pub fn run(message: String) -> Self {
        Self::own(Stage::Run, message)
    }

    /// A result cannot be written.
    pub fn output(message: String) -> Self {
        Self::own(Stage::Output, message)
    }

    /// An error of the library about the input with this name.
    pub fn of(error: &Error, input: &str) -> Self {
        let text = error.without_place().to_string();
        let mut place = error.place();
        if place.is_none() && error.stage == Stage::Input {
            place = Some(input.to_owned());
        }
        if let (Some(found), "-") = (&mut place, input) {
            // MLIR's locations have the name that was given for the input.
            if found == "-" || found.starts_with("-:") {
                found.replace_range(..1, "<stdin>");
            }
        }
        let location = error.location.as_ref();
        Self(Box::new(Details {
            stage: error.stage,
            module: error.module.clone(),
            target: error.target.map(|target| target.to_string()),
            kernels: error.kernels.clone(),
            code: Some(error.kind.code()),
            location: location
                .map(|location| location.as_mlir().to_owned())
                .or_else(|| place.clone()),
            file: location.and_then(Location::file).map(str::to_owned),
            line: location.and_then(Location::line),
            column: location.and_then(Location::column),
            symbols: error.symbols.iter().map(|symbol| symbol.name.clone()).collect(),
            message: error.message.clone(),
            text,
            excerpt: location
                .and_then(|location| excerpt(location.file()?, location.line()?, location.column()?, input)),
            place,
        }))
    }

    /// The same about the one of these inputs that it is about.
    pub fn of_inputs(error: &Error, inputs: &[(&str, &[u8])]) -> Self {
        let file = error.location.as_ref().and_then(Location::file);
        let named = |(name, _): &&(&str, &[u8])| match &error.input {
            Some(input) => input.name == *name,
            None => file == Some(name),
        };
        let input = inputs.iter().find(named).or(inputs.first());
        Self::of(error, input.map_or("-", |(name, _)| name))
    }

    /// What was named is no target, or none of this machine.
    pub fn target(message: String) -> Self {
        Self::plan(message).of_kind(ErrorKind::Target)
    }

    /// The same as an error of this kind.
    pub fn of_kind(mut self, kind: ErrorKind) -> Self {
        self.0.code = Some(kind.code());
        self
    }

    /// What is wrong, without stage and place.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

/// The line of the input that a place is in, and a caret below the column. Other files than the input are not opened, whatever
/// its locations say.
fn excerpt(file: &str, line: u32, column: u32, input: &str) -> Option<String> {
    /// Most characters of a line that are shown.
    const LONGEST: usize = 240;
    // `-` is standard input.
    if file != input || input == "-" {
        return None;
    }
    let (line, column) = (usize::try_from(line).ok()?, usize::try_from(column).ok()?);
    let file = File::open(input).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let text = BufReader::new(file).split(b'\n').nth(line.checked_sub(1)?)?.ok()?;
    let before = String::from_utf8_lossy(text.get(..column.checked_sub(1)?)?).replace('\t', " ");
    let text = String::from_utf8_lossy(&text).replace('\t', " ");
    let (before, text) = (printable(&before), printable(text.trim_end_matches('\r')));
    if text.chars().count() > LONGEST {
        return None;
    }
    Some(format!("{text}\n{}^", " ".repeat(before.chars().count())))
}

/// Text that may come from a file of anybody's, with the characters escaped that would control a terminal or reorder what
/// it shows.
pub fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for character in text.chars() {
        if hides(character) {
            printable.extend(character.escape_default());
        } else {
            printable.push(character);
        }
    }
    printable
}

/// C0 and C1, and marks without width or of direction, separators of lines included.
fn hides(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// As [`printable`], of text on several lines, with tabs: all that this program writes for people goes through it.
pub fn shown(text: &str) -> String {
    let line = |line: &str| line.split('\t').map(printable).collect::<Vec<_>>().join("\t");
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// A JSON document whose strings have the same characters escaped; JSON itself wants no more than those below the space.
pub fn escaped_in_json(document: &str) -> String {
    let mut escaped = String::with_capacity(document.len());
    for character in document.chars() {
        if hides(character) && character != '\n' {
            escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            escaped.push(character);
        }
    }
    escaped
}

/// A message, whose further lines do not look like other messages.
fn indented(text: &str) -> String {
    let mut lines = text.lines();
    let mut whole = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        whole.push_str(if line.is_empty() || line.starts_with([' ', '\t']) {
            "\n"
        } else {
            "\n  "
        });
        whole.push_str(line);
    }
    whole
}

/// Says that something failed.
pub fn error(problem: &Problem) {
    labelled(problem.0.place.as_deref(), "error", &problem.0.text);
    if let Some(excerpt) = &problem.0.excerpt {
        line(excerpt);
    }
}

/// Says where more is to be had about errors.
pub fn advise(problems: &[Problem]) {
    let mut codes: Vec<&str> = problems.iter().filter_map(|problem| problem.0.code).collect();
    codes.sort_unstable();
    codes.dedup();
    if let [first, ..] = codes[..] {
        line(&format!("{}: more with gpulower --explain {first}", codes.join(", ")));
    }
}

/// Says something, with its kind in colour where colours are wanted.
fn labelled(place: Option<&str>, kind: &str, text: &str) {
    let text = shown(&indented(&with_place(place, kind, text)));
    let mut stderr = io::stderr().lock();
    // When even that is closed there is nobody left to tell.
    let _ = match text.split_once(&format!("{kind}: ")) {
        Some((before, after)) if colour::is_wanted(stderr.is_terminal()) => {
            let number = if kind == "error" { 31 } else { 33 };
            writeln!(stderr, "\u{1b}[1m{before}\u{1b}[{number}m{kind}:\u{1b}[0m {after}")
        }
        _ => writeln!(stderr, "{text}"),
    };
}

/// Passes on a warning of the library.
pub fn warning(warning: &Warning) {
    labelled(warning.place().as_deref(), "warning", &warning.to_string());
}

/// A warning of the command line's own.
pub fn warn(text: &str) {
    labelled(None, "warning", text);
}

fn with_place(place: Option<&str>, kind: &str, text: &str) -> String {
    match place {
        Some(place) => format!("{place}: {kind}: {text}"),
        None => format!("{kind}: {text}"),
    }
}

/// Writes a line to the standard error output. When even that is closed there is nobody left to tell.
pub fn line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", shown(text));
}

/// The standard error output for the log.
pub struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        io::stderr()
            .lock()
            .write_all(shown(&String::from_utf8_lossy(bytes)).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_comes_first() {
        assert_eq!(
            with_place(Some("a.mlir:3:5"), "error", "lower: no"),
            "a.mlir:3:5: error: lower: no"
        );
        assert_eq!(with_place(None, "warning", "lower: no"), "warning: lower: no");
    }

    #[test]
    fn a_caret_points_into_the_input_and_into_no_other_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.mlir");
        std::fs::write(&path, "one\n\tt\u{1b}wo x\n").expect("written");
        let input = path.display().to_string();
        assert_eq!(
            excerpt(&input, 2, 7, &input).as_deref(),
            Some(" t\\u{1b}wo x\n           ^")
        );
        for (file, line, column) in [(&*input, 3, 1), (&input, 1, 9), (&input, 0, 0), ("/etc/passwd", 1, 1)] {
            assert_eq!(excerpt(file, line, column, &input), None, "{file}:{line}:{column}");
        }
    }

    #[test]
    fn names_of_others_do_not_control_the_terminal() {
        assert_eq!(printable("a\u{1b}[2J\nb\u{202e}c"), "a\\u{1b}[2J\\nb\\u{202e}c");
        assert_eq!(printable("größe <T>"), "größe <T>");
    }

    #[test]
    fn lines_stay_lines_and_are_nobody_elses() {
        assert_eq!(shown("a\tb\n\u{9b}1m\r\n"), "a\tb\n\\u{9b}1m\\r\n");
        let document = escaped_in_json("{\n \"a\": \"\u{9b}\u{202e}ö\"\n}");
        assert_eq!(document, "{\n \"a\": \"\\u009b\\u202eö\"\n}");
        assert_eq!(
            indented("error: x\nerror: forged\n\n  symbol"),
            "error: x\n  error: forged\n\n  symbol"
        );
    }

    #[test]
    fn the_command_lines_own_problems_name_their_stage() {
        let problem = Problem::input("cannot read x".to_owned());
        assert_eq!(problem.0.text, "input: cannot read x");
        assert_eq!(
            serde_json::to_value(&problem).expect("JSON"),
            serde_json::json!({"stage": "input", "module": null, "target": null, "kernels": [], "code": null, "location": null,
                               "file": null, "line": null, "column": null, "symbols": [], "message": "cannot read x"})
        );
    }
}
