//! Code as lines, each with the line of the source that it comes from: PTX and AMDGPU assembly (`.loc`), what NVIDIA's nvdisasm
//! and LLVM's objdump print.

use std::{collections::HashMap, path::Path};

use serde::Serialize;

/// A text with what its lines come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listing {
    pub title: String,
    pub lines: Vec<Line>,
}

/// A line of code, and the line of the source that it comes from, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    pub text: String,
    pub source: Option<u32>,
}

impl Listing {
    /// Of a source itself.
    pub fn of_source(title: &str, text: &str) -> Self {
        let line = |(number, text): (u32, &str)| Line {
            text: text.to_owned(),
            source: Some(number),
        };
        Self {
            title: title.to_owned(),
            lines: (1..).zip(text.lines()).map(line).collect(),
        }
    }

    /// Of code. Lines that say nothing but a place are left out: what they say is in the lines that follow.
    pub fn of_code(title: &str, text: &str, source: &str) -> Self {
        let mut places = Places::new(text, source);
        let lines = text.lines().filter_map(|text| {
            let said = places.take(text);
            (!said && !is_noise(text)).then(|| Line {
                text: tidy(text),
                source: places.current.filter(|_| is_instruction(text)),
            })
        });
        Self {
            title: title.to_owned(),
            lines: lines.collect(),
        }
    }

    /// Whether any line comes from the source.
    pub fn has_places(&self) -> bool {
        self.lines.iter().any(|line| line.source.is_some())
    }
}

/// Which line of the source the code is at.
struct Places<'a> {
    source: &'a str,
    /// The numbers of `.file` directives that are the source.
    files: HashMap<&'a str, bool>,
    current: Option<u32>,
}

impl<'a> Places<'a> {
    /// PTX names its files at the end.
    fn new(text: &'a str, source: &'a str) -> Self {
        let files = text.lines().filter_map(|line| {
            let (number, names) = line
                .trim()
                .strip_prefix(".file")?
                .trim()
                .split_once(char::is_whitespace)?;
            let name = names.split('"').rfind(|part| !part.trim().is_empty())?;
            Some((number, is_same(name, source)))
        });
        Self {
            source,
            files: files.collect(),
            current: None,
        }
    }

    /// Whether the line says a place, which is that of the code after it.
    fn take(&mut self, line: &str) -> bool {
        let line = line.trim();
        let of_directive = |rest: &str| {
            let mut words = rest.split_whitespace();
            let (file, line) = (words.next()?, words.next()?);
            let is_source = self.files.get(file.trim_end_matches(',')).copied().unwrap_or(false);
            line.parse().ok().filter(|&line| is_source && line > 0)
        };
        let of_nvdisasm = |rest: &str| {
            let (file, rest) = rest.split_once('"')?;
            let number = rest.strip_prefix(", line ")?;
            let number = number.split(' ').next()?.parse().ok()?;
            is_same(file, self.source).then_some(number)
        };
        if let Some(rest) = line.strip_prefix(".loc") {
            self.current = of_directive(rest);
        } else if let Some(rest) = line.strip_prefix("//## File \"") {
            // Where something is inlined, several lines say so, the innermost first.
            let inlined = rest.contains("inlined at");
            self.current = of_nvdisasm(rest).or(self.current.filter(|_| inlined));
        } else if let Some((file, number)) = line.strip_prefix("; ").and_then(|rest| rest.rsplit_once(':')) {
            let Ok(number) = number.parse() else { return false };
            self.current = is_same(file, self.source).then_some(number);
        } else {
            return false;
        }
        true
    }
}

/// Whether a file of debug information is the source: the names of the files are the same.
fn is_same(file: &str, source: &str) -> bool {
    Path::new(file).file_name() == Path::new(source).file_name()
}

/// What stands between the code for the sake of a debugger.
fn is_noise(line: &str) -> bool {
    let line = line.trim();
    let label = line.trim_end_matches(':');
    line.starts_with(".file") || line.starts_with(".cfi_") || label.starts_with("$L__tmp") || label.starts_with(".Ltmp")
}

/// A line without tabs, and without the wide margins of nvdisasm.
fn tidy(line: &str) -> String {
    match line
        .trim_start()
        .strip_prefix("/*")
        .and_then(|rest| rest.split_once("*/"))
    {
        Some((address, code)) => format!("  {address}  {}", code.trim()),
        None => line.replace('\t', "    "),
    }
}

fn is_instruction(line: &str) -> bool {
    let line = line.trim();
    let is_predicated = line.starts_with('@') || line.starts_with("/*");
    is_predicated || (line.starts_with(|first: char| first.is_ascii_alphabetic()) && !line.ends_with(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(text: &str) -> Vec<(String, Option<u32>)> {
        let listing = Listing::of_code("t", text, "dir/k.mlir");
        listing
            .lines
            .into_iter()
            .map(|line| (line.text.trim().to_owned(), line.source))
            .collect()
    }

    #[test]
    fn ptx_and_assembly_say_their_lines_with_directives() {
        let text = "k:\n.loc 1 11 0\n ld.param.b64 %rd1, [p];\n$L__tmp0:\n.loc 2 5 1, function_name $x, inlined_at 1 12 0\n mul %f1;\n\
                    .loc 1 12 0\n@%p1 bra $L;\n.file 1 \"/a/k.mlir\"\n.file\t2 \"/b\" \"libdevice.cu\"\n";
        let expected = [
            ("k:", None),
            ("ld.param.b64 %rd1, [p];", Some(11)),
            ("mul %f1;", None),
            ("@%p1 bra $L;", Some(12)),
        ];
        let expected: Vec<_> = expected.map(|(text, line)| (text.to_owned(), line)).into();
        assert_eq!(places(text), expected);
    }

    #[test]
    fn disassemblers_say_them_in_comments() {
        let sass = "k:\n//## File \"k.mlir\", line 3\n /*0000*/ LDC R1 ;\n//## File \"math.cu\", line 9 inlined at \"k.mlir\", line 4\n\
                    //## File \"k.mlir\", line 4\n /*0010*/ EXIT ;\n//## File \"other\", line 4\n /*0020*/ NOP ;\n";
        let lines: Vec<_> = places(sass).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, [None, Some(3), Some(4), None]);
        let amd = "k:\n; k():\n; k.mlir:11\n\ts_endpgm\n; math.cl:4\n\ts_nop 0\n";
        let lines: Vec<_> = places(amd).into_iter().map(|(_, line)| line).collect();
        assert_eq!(lines, [None, None, Some(11), None]);
    }
}
