//! Where in the source, or else in the PTX, an error of NVIDIA's compilers is. They name lines of the PTX alone.

use std::collections::BTreeMap;

use crate::{
    error::{Cause, Error, Location, Note},
    serialize::nvidia::SerializeError,
};

/// Gives an error about PTX its places: those of the source where the PTX has `.loc` directives, lines of `FILE` otherwise; and the
/// kernels. `file`: how the text would be called as a file.
pub(super) fn placed(mut error: Error, ptx: &str, file: &str) -> Error {
    let Some(Cause::Serialize(SerializeError::Compile { log, .. })) = error.cause() else {
        return error;
    };
    let mut found: Vec<Place> = Vec::new();
    let files = files(ptx);
    for place in log.lines().filter_map(|line| place(line, ptx, &files)).take(MOST) {
        if !found.contains(&place) {
            found.push(place);
        }
    }
    for place in found {
        let location = place.location(file);
        error.location.get_or_insert_with(|| location.clone());
        let within = place
            .function
            .as_ref()
            .map(|name| format!(", in {name}"))
            .unwrap_or_default();
        error.notes.push(Note {
            location,
            message: format!("line {} of the PTX{within}: {}", place.line, place.message),
        });
        if let Some(kernel) = place.kernel.filter(|kernel| !error.kernels.contains(kernel)) {
            error.kernels.push(kernel);
        }
    }
    error
}

/// The most errors that are given places; each is looked for in the whole of the PTX.
const MOST: usize = 20;

/// What an error is about.
#[derive(PartialEq, Eq)]
struct Place {
    /// Of the PTX, from 1 on.
    line: usize,
    /// The function that the line is in.
    function: Option<String>,
    /// The same, if it is a kernel.
    kernel: Option<String>,
    /// What the last `.loc` of the function before the line says: file, line, column.
    source: Option<(String, u32, u32)>,
    /// What the compiler says.
    message: String,
}

impl Place {
    fn location(&self, file: &str) -> Location {
        match &self.source {
            Some((file, line, column)) => Location::in_file(file, *line, *column),
            None => Location::in_file(file, u32::try_from(self.line).unwrap_or(u32::MAX), 1),
        }
    }
}

/// Of a line of the log: `ptxas NAME, line 13; error   : TEXT`, or `ptxas error   : Entry function 'NAME' uses too much ...`.
fn place(said: &str, ptx: &str, files: &BTreeMap<u32, String>) -> Option<Place> {
    let (head, message) = said.split_once(" : ")?;
    if !head.contains("error") && !head.contains("fatal") {
        return None;
    }
    let message = message.trim().to_owned();
    let numbered = || head.split_once(", line ")?.1.split_once(';')?.0.trim().parse().ok();
    let line = numbered().or_else(|| {
        let name = message.split_once("function '")?.1.split_once('\'')?.0;
        let is_its = |line: &str| header(line).is_some_and(|(found, _)| found == name);
        // A line in the function: behind the one that begins it.
        Some(ptx.lines().position(is_its)? + 1)
    })?;
    let mut place = Place {
        line,
        function: None,
        kernel: None,
        source: None,
        message,
    };
    for text in ptx.lines().take(line) {
        if let Some((name, is_kernel)) = header(text) {
            place.kernel = is_kernel.then(|| name.to_owned());
            place.function = Some(name.to_owned());
            place.source = None;
        } else if let Some(source) = loc(text, files) {
            place.source = Some(source);
        }
    }
    Some(place)
}

/// The function that begins in a line of PTX, and whether it is a kernel.
fn header(line: &str) -> Option<(&str, bool)> {
    let code = line.split("//").next()?.trim();
    if !code.starts_with('.') {
        return None;
    }
    let words = || code.split_whitespace();
    let is_kernel = words().any(|word| word == ".entry");
    let directive = if is_kernel { ".entry" } else { ".func" };
    if !words().any(|word| word == directive) {
        return None;
    }
    let mut rest = code.split_once(directive)?.1.trim_start();
    if let Some(results) = rest.strip_prefix('(') {
        rest = results.split_once(')')?.1.trim_start();
    }
    let end = rest.find(|letter: char| letter == '(' || letter == '{' || letter == ';' || letter.is_whitespace());
    let name = rest.get(..end.unwrap_or(rest.len()))?;
    (!name.is_empty()).then_some((name, is_kernel))
}

/// `.file 1 "NAME"`, in the whole text: they may stand behind what refers to them.
fn files(ptx: &str) -> BTreeMap<u32, String> {
    let file = |line: &str| {
        let (number, name) = line.trim().strip_prefix(".file")?.trim().split_once('"')?;
        Some((number.trim().parse().ok()?, name.split('"').next()?.to_owned()))
    };
    ptx.lines().filter_map(file).collect()
}

/// `.loc 1 17 5`, and what may follow it.
fn loc(line: &str, files: &BTreeMap<u32, String>) -> Option<(String, u32, u32)> {
    let rest = line.trim().strip_prefix(".loc")?;
    let mut numbers = rest
        .split([' ', '\t', ','])
        .filter(|word| !word.is_empty())
        .map_while(|word| word.parse::<u32>().ok());
    let (file, line, column) = (numbers.next()?, numbers.next()?, numbers.next()?);
    // Line 0: of no line of the source.
    Some((files.get(&file)?.clone(), line, column)).filter(|_| line != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{serialize::nvidia::PtxCompiler, stage::Stage};

    const PTX: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .func (.param .b32 r) helper(.param .b32 x);\n\
        .visible .entry first()\n{\n  .loc 1 3 4\n  ret;\n}\n\
        .visible .entry second(\n  .param .u64 p)\n{\n  .reg .b32 %r<2>;\n  add.s32 %r1, %r9;\n  .loc 1 17 5\n  foo.bar;\n  ret;\n}\n\
        .file 1 \"a \\ b.py\"\n";

    fn refused(log: &str) -> Error {
        let cause = SerializeError::Compile {
            chip: "sm_90".to_owned(),
            compiler: PtxCompiler::Ptxas,
            version: "13.0".to_owned(),
            log: log.to_owned(),
            decisions: Vec::new(),
        };
        placed(Error::new(Stage::PtxToCubin, cause), PTX, "m.ptx")
    }

    #[test]
    fn an_error_is_where_the_source_is() {
        let error = refused(
            "ptxas application ptx input, line 16; error   : Not a name of any known instruction: 'foo'\n\
                           ptxas fatal   : Ptx assembly aborted due to errors",
        );
        assert_eq!(error.place().as_deref(), Some("a \\ b.py:17:5"));
        assert_eq!(error.kernels, ["second"]);
        let notes: Vec<&str> = error.notes.iter().map(|note| note.message.as_str()).collect();
        assert_eq!(
            notes,
            ["line 16 of the PTX, in second: Not a name of any known instruction: 'foo'"]
        );
    }

    #[test]
    fn without_lines_of_a_source_it_is_in_the_ptx() {
        // The `.loc` of the function before does not count.
        let error = refused("ptxas /tmp/x.ptx, line 14; error   : Arguments mismatch for instruction 'add'");
        assert_eq!(error.place().as_deref(), Some("m.ptx:14:1"));
        assert_eq!(error.kernels, ["second"]);
        let of_a_kernel = refused("ptxas error   : Entry function 'first' uses too much shared data");
        assert_eq!(of_a_kernel.kernels, ["first"]);
        assert_eq!(of_a_kernel.place().as_deref(), Some("m.ptx:5:1"));
        assert!(refused("ptxas fatal   : out of memory").location.is_none());
    }
}
