//! How deeply a text nests, told before a parser that recurses sees it.
//!
//! The parsers of MLIR and LLVM IR call themselves for every bracket, and what comes after them (verifying, printing,
//! lowering) calls itself for every level of what was parsed. None of them has a limit of its own: the end of the stack is
//! the end of the process. So the levels are counted here, on the bare text:
//!
//! - brackets;
//! - in MLIR, operators of affine expressions (`a + b + c` nests) and dimensions of shapes, within one pair of brackets and
//!   between commas;
//! - in MLIR, what an alias (`!name = ...`, `#name = ...`) stands for: a chain of them nests without a bracket, and a few
//!   that each name the one before twice stand for more than a memory holds.
//!
//! `array<index: ...>` is refused as well: MLIR 22 asks for the width of `index`, which has none, and crashes.
//!
//! The count follows the syntax only as far as that takes. Where it is wrong, it is by some levels.

use super::input::InputKind;
use std::collections::HashMap;

/// Most levels. People nest some dozens; a parser needs 1 to 3 KB of stack for one.
pub const MAX_LEVELS: usize = 1000;

/// Most types and attributes that an alias may stand for.
pub const MAX_EXPANSION: usize = 1 << 20;

/// What is too much in a text, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excess {
    /// The line, from 1.
    pub(super) line: usize,
    pub(super) reason: String,
}

/// Refuses a text that nests too deeply. Bytes that are no text, such as bytecode, are not looked at.
pub(super) fn check(language: InputKind, text: &[u8]) -> Result<(), Excess> {
    let mut counter = Counter {
        language,
        text,
        position: 0,
        line: 1,
        brackets: Vec::new(),
        levels: 0,
        aliases: HashMap::new(),
        current: None,
        continues: false,
    };
    counter.count()
}

/// An open bracket.
struct Bracket {
    kind: u8,
    /// Levels since the last comma inside of it.
    extra: usize,
}

/// What an alias stands for.
#[derive(Clone, Copy, Default)]
struct Meaning {
    levels: usize,
    size: usize,
}

struct Counter<'a> {
    language: InputKind,
    text: &'a [u8],
    position: usize,
    line: usize,
    brackets: Vec<Bracket>,
    levels: usize,
    aliases: HashMap<&'a [u8], Meaning>,
    /// The alias whose definition is being read.
    current: Option<(&'a [u8], Meaning)>,
    /// Whether the definition goes on in the next line for certain.
    continues: bool,
}

impl<'a> Counter<'a> {
    fn count(&mut self) -> Result<(), Excess> {
        loop {
            self.skip_the_rest_of_llvm_ir();
            let Some(byte) = self.next() else { return Ok(()) };
            let continued = std::mem::take(&mut self.continues);
            match byte {
                b'\n' => {
                    self.line += 1;
                    if self.brackets.is_empty() && !continued && !self.goes_on() {
                        self.end_alias();
                    }
                    self.continues = continued;
                }
                b' ' | b'\t' | b'\r' => self.continues = continued,
                b'"' => self.skip_string(),
                b';' if self.language == InputKind::Llvm => self.skip_line(),
                b'/' if self.language == InputKind::Mlir && self.peek() == Some(b'/') => {
                    self.skip_line();
                    self.continues = continued;
                }
                b'(' | b'[' | b'{' | b'<' => self.open(byte)?,
                b')' => self.close(b'('),
                b']' => self.close(b'['),
                b'}' => self.close(b'{'),
                b'>' => self.close(b'<'),
                b',' => self.comma(),
                // Arrows and comparisons are no brackets.
                b'-' | b'=' if self.peek() == Some(b'>') => {
                    self.position += 1;
                    self.continues = true;
                }
                b'=' | b':' => self.continues = true,
                b'+' | b'-' | b'*' => self.operator()?,
                b'!' | b'#' => self.alias()?,
                b'0'..=b'9' | b'?' => self.number()?,
                _ if is_name(byte) => self.word()?,
                _ => {}
            }
        }
    }

    /// Most of LLVM IR has neither brackets nor lines, strings and comments.
    fn skip_the_rest_of_llvm_ir(&mut self) {
        if self.language != InputKind::Llvm {
            return;
        }
        let rest = self.text.get(self.position..).unwrap_or_default();
        let tells = |byte: &u8| {
            matches!(
                byte,
                b'\n' | b'"' | b';' | b'(' | b'[' | b'{' | b'<' | b')' | b']' | b'}' | b'>' | b','
            )
        };
        self.position += rest.iter().position(tells).unwrap_or(rest.len());
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.position += 1;
        Some(byte)
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.position).copied()
    }

    /// The rest of a name of which `before` bytes have been read.
    fn name(&mut self, before: usize) -> &'a [u8] {
        let start = self.position - before;
        while self.peek().is_some_and(is_name) {
            self.position += 1;
        }
        self.text.get(start..self.position).unwrap_or_default()
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.position += 1;
        }
    }

    fn skip_string(&mut self) {
        while let Some(byte) = self.next() {
            match byte {
                b'"' => return,
                // LLVM IR writes a quote as \22.
                b'\\' if self.language == InputKind::Mlir => {
                    let escaped = self.next();
                    self.line += usize::from(escaped == Some(b'\n'));
                }
                b'\n' => self.line += 1,
                _ => {}
            }
        }
    }

    /// Whether the next line begins with what can only go on with a definition.
    fn goes_on(&self) -> bool {
        let rest = self.text.get(self.position..).unwrap_or_default();
        let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
        next.is_some_and(|byte| b"-<(:=/".contains(byte))
    }

    fn excess(&self, reason: String) -> Excess {
        Excess {
            line: self.line,
            reason,
        }
    }

    fn add(&mut self, levels: usize) -> Result<(), Excess> {
        self.levels += levels;
        self.reach(0)
    }

    /// Notes that `further` levels stand here.
    fn reach(&mut self, further: usize) -> Result<(), Excess> {
        let levels = self.levels.saturating_add(further);
        if levels > MAX_LEVELS {
            return Err(self.excess(format!(
                "it nests more than {MAX_LEVELS} levels deep in line {} (brackets, dimensions, operators of affine expressions and \
                 aliases within one another count): split what is nested into functions or values of their own",
                self.line
            )));
        }
        if let Some((_, meaning)) = &mut self.current {
            meaning.levels = meaning.levels.max(levels);
        }
        Ok(())
    }

    fn open(&mut self, kind: u8) -> Result<(), Excess> {
        // `<=` compares.
        if kind == b'<' && self.peek() == Some(b'=') {
            return Ok(());
        }
        self.brackets.push(Bracket { kind, extra: 0 });
        self.add(1)?;
        self.grow(1)
    }

    fn close(&mut self, kind: u8) {
        let Some(place) = self.brackets.iter().rposition(|bracket| bracket.kind == kind) else {
            return;
        };
        // A `>` alone may be a comparison; the other brackets end what was left open inside of them.
        if kind == b'<' && place + 1 != self.brackets.len() {
            return;
        }
        for bracket in self.brackets.drain(place..) {
            self.levels -= 1 + bracket.extra;
        }
    }

    fn comma(&mut self) {
        if let Some(bracket) = self.brackets.last_mut() {
            self.levels -= std::mem::take(&mut bracket.extra);
        }
    }

    /// One more level up to the next comma, where `kinds` are the brackets that are read.
    fn extra(&mut self, kinds: &[u8]) -> Result<(), Excess> {
        let Some(bracket) = self.brackets.last_mut() else {
            return Ok(());
        };
        if !kinds.contains(&bracket.kind) {
            return Ok(());
        }
        bracket.extra += 1;
        self.add(1)
    }

    fn operator(&mut self) -> Result<(), Excess> {
        self.extra(b"([")
    }

    fn word(&mut self) -> Result<(), Excess> {
        let word = self.name(1);
        if matches!(word, b"floordiv" | b"ceildiv" | b"mod") {
            return self.operator();
        }
        if word == b"array" {
            let rest = self.text.get(self.position..).unwrap_or_default();
            let element = rest
                .trim_ascii_start()
                .strip_prefix(b"<")
                .unwrap_or_default()
                .trim_ascii_start();
            // An alias may stand for it.
            if element.starts_with(b"index") || element.starts_with(b"!") {
                // The type has no width.
                return Err(self.excess(format!(
                    "an array of index in line {}: array<...> holds integers and floats, such as array<i64: 1>",
                    self.line
                )));
            }
        }
        Ok(())
    }

    /// A number or the dimensions of a shape, `4x?x8xf32`.
    fn number(&mut self) -> Result<(), Excess> {
        loop {
            while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                self.position += 1;
            }
            if self.peek() != Some(b'x') {
                return Ok(());
            }
            self.position += 1;
            self.extra(b"<")?;
            if !self.peek().is_some_and(|byte| byte == b'?' || byte.is_ascii_digit()) {
                return Ok(());
            }
            self.position += 1;
        }
    }

    /// A use or the definition of an alias; types and attributes of dialects, which have a dot, are neither.
    fn alias(&mut self) -> Result<(), Excess> {
        let name = self.name(1);
        if self.brackets.is_empty() && self.is_defined_here() {
            self.end_alias();
            self.current = Some((name, Meaning::default()));
            return Ok(());
        }
        let Some(meaning) = self.aliases.get(name).copied() else {
            return Ok(());
        };
        self.reach(meaning.levels + 1)?;
        self.grow(meaning.size + 1)
    }

    fn is_defined_here(&self) -> bool {
        let mut rest = self.text.get(self.position..).unwrap_or_default();
        loop {
            rest = rest.trim_ascii_start();
            match rest.strip_prefix(b"//") {
                Some(comment) => {
                    let end = comment.iter().position(|byte| *byte == b'\n').unwrap_or(comment.len());
                    rest = comment.get(end..).unwrap_or_default();
                }
                None => return rest.first() == Some(&b'=') && rest.get(1) != Some(&b'='),
            }
        }
    }

    fn grow(&mut self, by: usize) -> Result<(), Excess> {
        let Some((_, meaning)) = &mut self.current else {
            return Ok(());
        };
        meaning.size = meaning.size.saturating_add(by);
        if meaning.size > MAX_EXPANSION {
            return Err(self.excess(format!(
                "an alias in line {} stands for more than {MAX_EXPANSION} types and attributes, counted as often as they are \
                 named: name them less often",
                self.line
            )));
        }
        Ok(())
    }

    fn end_alias(&mut self) {
        if let Some((name, meaning)) = self.current.take() {
            self.aliases.insert(name, meaning);
        }
    }
}

const fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mlir(text: &str) -> Result<(), Excess> {
        check(InputKind::Mlir, text.as_bytes())
    }

    const DEEP: usize = MAX_LEVELS + 1;

    #[test]
    fn every_way_to_nest_is_counted() {
        for (open, close) in [
            ("tuple<", ">"),
            ("[", "]"),
            ("{a = ", "}"),
            ("(", ")"),
            ("callsite(unknown at ", ")"),
            ("scf.if %c {\n", "}\n"),
        ] {
            let text = |levels| format!("{}i32{}", open.repeat(levels), close.repeat(levels));
            assert_eq!(mlir(&text(MAX_LEVELS)), Ok(()), "{open}");
            assert!(mlir(&text(DEEP)).is_err(), "{open}");
        }
        let chain = |operator: &str| mlir(&format!("affine_map<(d0) -> ({}d0)>", operator.repeat(DEEP)));
        for operator in ["-", "d0 + ", "d0 mod 2 + ", "d0 floordiv "] {
            assert!(chain(operator).is_err(), "{operator}");
        }
        assert!(mlir(&format!("memref<{}f32>", "1x".repeat(DEEP))).is_err());
        assert!(mlir(&format!("memref<{}f32>", "?x".repeat(DEEP))).is_err());
    }

    #[test]
    fn what_stands_side_by_side_does_not_add_up() {
        let many = |text: &str| mlir(&text.repeat(5 * MAX_LEVELS));
        assert_eq!(many("%a = arith.constant -1 : i32\n"), Ok(()));
        assert_eq!(many("func.func @f(%a: memref<4x?xf32>) -> (i32) {\n}\n"), Ok(()));
        assert_eq!(mlir(&format!("dense<[{}0]>", "-1, ".repeat(5 * MAX_LEVELS))), Ok(()));
        assert_eq!(many("#map = affine_map<(d0) -> (d0 + 1)>\n"), Ok(()));
        assert_eq!(many("// (((\n\"(((\\\"(((\"\n"), Ok(()));
        assert_eq!(many("affine_set<(d0) : (d0 - 1 >= 0, d0 <= 7)>\n"), Ok(()));
        // The last alias of a file is used all over the code behind it.
        let uses = "%a = affine.apply #map(%b)\n".repeat(5 * MAX_LEVELS);
        assert_eq!(
            mlir(&format!("#map = affine_map<(d0) -> (d0)>\nmodule {{\n{uses}}}")),
            Ok(())
        );
    }

    #[test]
    fn an_alias_counts_for_what_it_stands_for() {
        use std::fmt::Write;
        for separator in ["\n", " ", "\n-> ", " // why\n"] {
            let mut text = "!a0 = i32\n".to_owned();
            for index in 1..=DEEP {
                let before = index - 1;
                let _ = match separator {
                    "\n-> " => writeln!(text, "!a{index} = ()\n->\n!a{before}"),
                    _ => write!(text, "!a{index} ={separator}tuple<!a{before}>{separator}"),
                };
            }
            assert!(mlir(&text).is_err(), "{separator:?}");
        }
        let doubled = |count: usize| {
            let mut text = "!a0 = i32\n".to_owned();
            for index in 1..=count {
                let before = index - 1;
                let _ = writeln!(text, "!a{index} = tuple<!a{before}, !a{before}>");
            }
            mlir(&text)
        };
        assert_eq!(doubled(10), Ok(()));
        assert_eq!(doubled(40).expect_err("refused").line, 20);
    }

    #[test]
    fn an_array_of_index_is_refused() {
        for text in [
            "array<index: 1>",
            "{a = array < index : 1>}",
            "!i = index\nmodule attributes {a = array<!i: 1>} {}",
        ] {
            let error = mlir(text).expect_err(text);
            assert!(error.reason.contains("array<i64: 1>"), "{error:?}");
        }
        assert_eq!(
            mlir("!llvm.array<4 x array<2 x index>> array<i32: 1> array<f32>"),
            Ok(())
        );
    }

    #[test]
    fn messages_name_the_line() {
        let error = mlir(&format!("module {{\n{}\n}}", "[".repeat(DEEP))).expect_err("refused");
        assert_eq!(
            error.reason,
            "it nests more than 1000 levels deep in line 2 (brackets, dimensions, operators of affine expressions and \
             aliases within one another count): split what is nested into functions or values of their own"
        );
    }

    #[test]
    fn llvm_ir_has_strings_and_comments_of_its_own() {
        let check = |text: &str| check(InputKind::Llvm, text.as_bytes());
        assert_eq!(check(&"; (((\n@x = constant [1 x i8] c\"\\\"\n".repeat(DEEP)), Ok(()));
        assert!(check(&format!("@x = global {}i8", "[1 x ".repeat(DEEP))).is_err());
        assert!(check(&"!{".repeat(DEEP)).is_err());
    }
}
