//! MLIR's generic form gives the properties of operations by name: `"gpu.func"() <{kernel, sym_name = "k"}>`. A name that the
//! operation does not have is passed over by MLIR's parser without a word, and what it said is lost.
//!
//! In any form, MLIR's parser refuses some words of other releases before there is an operation to change.

use std::collections::BTreeSet;

use melior::Context;

use crate::bridge::contain::Bytes;

unsafe extern "C-unwind" {
    fn gpulowerMayHaveProperty(context: mlir_sys::MlirContext, operation: Bytes, property: Bytes) -> bool;
}

/// A property that has a rule in `cpp/other_releases.cpp`.
struct Rule {
    operation: &'static str,
    property: &'static str,
    /// Of which values.
    when: fn(&str) -> bool,
    /// The name under which an operation that has one is parsed, of the same length, so that places stay what they are.
    parsed_as: &'static str,
}

const RULES: [Rule; 6] = [
    Rule {
        operation: "llvm.intr.lifetime.start",
        property: "size",
        when: |_| true,
        parsed_as: "llvm.intr.lifetime.Start",
    },
    Rule {
        operation: "llvm.intr.lifetime.end",
        property: "size",
        when: |_| true,
        parsed_as: "llvm.intr.lifetime.End",
    },
    Rule {
        operation: "gpu.func",
        property: "kernel",
        when: |_| true,
        parsed_as: "gpu.Func",
    },
    Rule {
        operation: "gpu.func",
        property: "workgroup_attributions",
        when: |_| true,
        parsed_as: "gpu.Func",
    },
    Rule {
        operation: "nvvm.barrier",
        property: "operandSegmentSizes",
        when: |sizes| sizes.matches(',').count() == 1,
        parsed_as: "nvvm.Barrier",
    },
    Rule {
        operation: "vector.multi_reduction",
        property: "reduction_dims",
        when: |dimensions| dimensions.starts_with('['),
        parsed_as: "vector.Multi_reduction",
    },
];

/// Operations whose kinds have other numbers in older releases, and the names under which they are parsed in generic form: in custom
/// form the kinds are words.
const NUMBERED: [(&str, &str); 2] = [
    ("memref.atomic_rmw", "memref.Atomic_rmw"),
    ("affine.parallel", "affine.Parallel"),
];

/// The value of a property that says nothing: to have lost it is no loss.
const NOTHING: &str = "#arith.fastmath<none>";

/// How MLIR 19 and older begin what is known of the numbers of a thread, at operations of ROCDL. From MLIR 20 on it is written in
/// another way, and it was wrong: the size of a group may be one more.
const RANGE: &str = "range = array<i32: ";
const BARRIER: &str = "nvvm.barrier ";

/// What a rule makes of the text that follows: how much of it is passed over, and the words in its place if they are others.
type Respelled = Option<(usize, Option<String>)>;

/// How words begin, and what becomes of them.
type Word = (&'static str, fn(&str) -> Respelled);

/// Words of custom form that MLIR 22 does not read, by how they begin. What comes behind decides, a line or so.
const WORDS: [Word; 14] = [
    ("gpu.printf \"", printf),
    ("llvm.intr.lifetime.", lifetime),
    ("nvvm.mbarrier.", of_shared_memory),
    ("nvvm.cp.async.mbarrier.arrive.", of_shared_memory),
    ("nvvm.vote.ballot.sync ", ballot),
    ("nvvm.prefetch.tensormap ", |rest| {
        renamed(rest, "nvvm.prefetch.tensormap ", "nvvm.prefetch tensormap, ")
    }),
    ("rocdl.waitcnt ", |rest| {
        renamed(rest, "rocdl.waitcnt ", "rocdl.s.waitcnt ")
    }),
    ("#llvm.memory_effects<", memory_effects),
    ("!llvm.vec<", |rest| {
        llvm_vector("", rest.strip_prefix("!llvm.")?, "!llvm.".len())
    }),
    ("(vec<", |rest| llvm_vector("(", rest.strip_prefix("(")?, 1)),
    ("x vec<", |rest| llvm_vector("x ", rest.strip_prefix("x ")?, 2)),
    // Behind a comma.
    (" vec<", |rest| llvm_vector(" ", rest.strip_prefix(" ")?, 1)),
    ("amdgpu.mfma ", mfma),
    ("amdgpu.wmma ", wmma),
];

/// How much of a text a rule of [`WORDS`] looks at.
const LOOKED_AT: usize = 1024;

/// A property that MLIR 22 would pass over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LostProperty {
    pub(crate) operation: String,
    pub(crate) property: String,
    /// Where the operation stands, in bytes.
    pub(crate) at: usize,
}

/// The text as MLIR 22 is to parse it; `None` where it is as it should be.
pub(crate) fn bring_over(context: &Context, text: &[u8]) -> Result<Option<Vec<u8>>, LostProperty> {
    let renamed = rename(context, text)?;
    Ok(respell(renamed.as_deref().unwrap_or(text)).or(renamed))
}

/// Words that MLIR 22 reads in another way, in text in any form.
fn respell(text: &[u8]) -> Option<Vec<u8>> {
    let whole = std::str::from_utf8(text).ok()?;
    let is_respelled = |(word, rule): &Word| {
        whole
            .match_indices(word)
            .any(|(at, _)| rule(whole.get(at..).unwrap_or_default()).is_some())
    };
    if !(whole.contains(RANGE) || whole.contains(BARRIER) && whole.contains("loc(") || WORDS.iter().any(is_respelled)) {
        return None;
    }
    let mut scanner = Scanner { text, at: 0 };
    let (mut result, mut copied) = (String::new(), 0);
    // For each bracket that is open whether it is that of the attributes of an operation of ROCDL.
    let mut brackets = Vec::new();
    while scanner.at < text.len() {
        let (at, before) = (scanner.at, whole.get(copied..scanner.at).unwrap_or_default());
        let rest = whole.get(at..).unwrap_or_default();
        let words = match () {
            () if brackets.last() == Some(&true) && rest.starts_with([',', 'r']) => without_range(before, rest),
            () if rest.starts_with(BARRIER) && before.ends_with(char::is_whitespace) => barrier(rest),
            () if before.ends_with(is_name) || before.ends_with(['"', '@', '%', '^']) => None,
            () => WORDS
                .iter()
                .find(|(word, _)| rest.starts_with(word))
                .and_then(|(_, rule)| rule(rest)),
        };
        if let Some((length, words)) = words {
            scanner.at = at + length;
            if let Some(words) = words {
                result.extend([before, &words]);
                copied = scanner.at;
            }
            continue;
        }
        match scanner.token() {
            Some(b'{') => brackets.push(is_of_rocdl(whole.get(..at).unwrap_or_default())),
            Some(b'(' | b'[' | b'<') => brackets.push(false),
            Some(b')' | b']' | b'}' | b'>') => drop(brackets.pop()),
            _ => {}
        }
    }
    result.push_str(whole.get(copied..)?);
    (copied > 0).then(|| result.into_bytes())
}

/// Whether what comes next is the attributes of an operation of ROCDL, in custom or generic form.
fn is_of_rocdl(before: &str) -> bool {
    let operation = before.trim_end().trim_end_matches("()").trim_end_matches('"');
    let operation = operation.rsplit(|character| !is_name(character)).next();
    operation.is_some_and(|operation| operation.starts_with("rocdl."))
}

fn is_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || "._".contains(character)
}

/// How long the range of `{range = array<i32: 0, 256>, a}` or `{a, range = array<i32: 0, 256>}` is with a comma, and as many blanks.
fn without_range(before: &str, rest: &str) -> Option<(usize, Option<String>)> {
    let number = |text: &'_ str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let after = digits.trim_start_matches(|character: char| character.is_ascii_digit());
        (after.len() < digits.len()).then_some(text.len() - after.len())
    };
    let is_first = before.ends_with('{');
    let after = if is_first { rest } else { rest.strip_prefix(", ")? };
    let after = after.strip_prefix(RANGE)?;
    let after = after.get(number(after)?..)?.strip_prefix(", ")?;
    let after = after.get(number(after)?..)?.strip_prefix('>')?;
    let length = rest.len() - after.len() + usize::from(is_first && after.starts_with(','));
    after
        .starts_with([',', '}'])
        .then(|| (length, Some(" ".repeat(length))))
}

/// `nvvm.barrier id = %0 {a = 1} loc(...)`, whose location MLIR 22 and 23 take for the kind of a reduction, up to the location. Without
/// one the attributes are passed over.
fn barrier(rest: &str) -> Option<(usize, Option<String>)> {
    let mut after = rest.strip_prefix(BARRIER)?;
    let mut operands = Vec::new();
    for name in ["id = ", "number_of_threads = "] {
        if let Some(operand) = after.strip_prefix(name) {
            let (operand, rest) = operand.split_once(char::is_whitespace)?;
            operands.push(operand);
            after = rest;
        }
    }
    let mut scanner = Scanner {
        text: after.as_bytes(),
        at: 0,
    };
    if after.starts_with('{') {
        scanner.skip_group();
        scanner.skip_blanks();
    }
    let (attributes, after) = after.split_at_checked(scanner.at)?;
    let length = rest.len() - after.len();
    if !after.starts_with("loc(") {
        return (!attributes.is_empty()).then_some((length, None));
    }
    let (count, types) = (operands.len(), vec!["i32"; operands.len()].join(", "));
    let sizes = format!("array<i32: {}, {}, 0>", usize::from(count > 0), usize::from(count > 1));
    let operands = operands.join(", ");
    let properties = format!("<{{operandSegmentSizes = {sizes}}}>");
    let words = format!("\"nvvm.barrier\"({operands}) {properties} {attributes}: ({types}) -> () ");
    Some((length, Some(words)))
}

/// What a rule may look at: no rule reads to the end of a long text for each of its words.
fn near(rest: &str) -> &str {
    let end = (0..=LOOKED_AT.min(rest.len()))
        .rev()
        .find(|end| rest.is_char_boundary(*end));
    rest.get(..end.unwrap_or_default()).unwrap_or_default()
}

/// An operation under another name, before its first operand or number.
fn renamed(rest: &str, from: &str, to: &str) -> Respelled {
    let after = rest.strip_prefix(from)?;
    after
        .trim_start_matches(' ')
        .starts_with(|first: char| first == '%' || first.is_ascii_digit())
        .then(|| (from.len(), Some(to.to_owned())))
}

/// `gpu.printf "..." %a : i32` of MLIR 19, which has a comma since.
fn printf(rest: &str) -> Respelled {
    let mut scanner = Scanner {
        text: rest.as_bytes(),
        at: "gpu.printf ".len(),
    };
    scanner.string();
    // On the same line: the next operation may begin with the name of a result.
    let skip_blanks = |scanner: &mut Scanner<'_>| {
        scanner.at += scanner
            .rest()
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
    };
    let mut end = scanner.at;
    skip_blanks(&mut scanner);
    if scanner.rest().starts_with(b"{") {
        scanner.skip_group_in(LOOKED_AT)?;
        end = scanner.at;
        skip_blanks(&mut scanner);
    }
    let head = rest.get(..end)?;
    (scanner.rest().first() == Some(&b'%')).then(|| (end, Some(format!("{head},"))))
}

/// `llvm.intr.lifetime.start 4, %p` of MLIR 21, without the size.
fn lifetime(rest: &str) -> Respelled {
    let (name, after) = near(rest).split_once(' ')?;
    let (size, _) = after.split_once(", %")?;
    let is_size = ["llvm.intr.lifetime.start", "llvm.intr.lifetime.end"].contains(&name) && size.parse::<i64>().is_ok();
    is_size.then(|| {
        (
            name.len() + 1 + size.len() + 1,
            Some(format!("{name} {}", " ".repeat(size.len() + 1))),
        )
    })
}

/// `nvvm.mbarrier.init.shared`, whose pointer tells.
fn of_shared_memory(rest: &str) -> Respelled {
    let (name, operands) = near(rest).split_once(' ')?;
    if !operands.starts_with('%') {
        return None;
    }
    let short = name
        .strip_suffix(".shared")
        .filter(|short| short.chars().all(is_name))?;
    renamed(rest, name, short)
}

/// `nvvm.vote.ballot.sync %mask, %predicate : i32` is a kind of `nvvm.vote.sync`.
fn ballot(rest: &str) -> Respelled {
    let line = near(rest).lines().next()?;
    let (operands, _) = line.strip_prefix("nvvm.vote.ballot.sync ")?.split_once(" : i32")?;
    if !operands.starts_with('%') {
        return None;
    }
    let length = line.len() - line.split_once(" : i32")?.1.len();
    Some((length, Some(format!("nvvm.vote.sync ballot {operands} -> i32"))))
}

/// Kinds of memory that MLIR 21 does not know were parts of others: `errno` of the rest, a target's own of what is not accessible.
fn memory_effects(rest: &str) -> Respelled {
    let (effects, _) = near(rest).split_once('>')?;
    let of = |kind: &str| {
        let (_, value) = effects.split_once(kind)?;
        Some(value.split(',').next()?.trim())
    };
    let (other, inaccessible) = (of("other = ")?, of("inaccessibleMem = ")?);
    (!effects.contains("errnoMem")).then(|| {
        let more = format!("errnoMem = {other}, targetMem0 = {inaccessible}, targetMem1 = {inaccessible}");
        (effects.len(), Some(format!("{effects}, {more}")))
    })
}

/// `!llvm.vec<4 x ptr<1>>` and `!llvm.vec<? x 4 x ptr>` are vectors like others, as are `vec<4 x ptr>` inside of other types of LLVM's:
/// behind so many bytes, of which these words are kept.
fn llvm_vector(kept: &str, rest: &str, bytes: usize) -> Respelled {
    let mut scanner = Scanner {
        text: rest.as_bytes(),
        at: "vec".len(),
    };
    scanner.skip_group_in(LOOKED_AT)?;
    let inner = rest.get("vec<".len()..scanner.at.checked_sub(1)?)?;
    let (scalable, inner) = match inner.strip_prefix("? x ") {
        Some(inner) => (true, inner),
        None => (false, inner),
    };
    let (count, element) = inner.split_once(" x ")?;
    count.parse::<u64>().ok()?;
    let count = if scalable {
        format!("[{count}]")
    } else {
        count.to_owned()
    };
    let of_llvm = if element.starts_with(['!', 'i', 'f', 'b']) {
        ""
    } else {
        "!llvm."
    };
    Some((
        bytes + scanner.at,
        Some(format!("{kept}vector<{count}x{of_llvm}{element}>")),
    ))
}

/// `amdgpu.mfma %a * %b + %c {k = 1 : i32, m = 32 : i32, n = 32 : i32}` of MLIR 21, with its shape in front.
fn mfma(rest: &str) -> Respelled {
    let (head, _) = near(rest).split_once('}')?;
    let (operands, attributes) = head.strip_prefix("amdgpu.mfma ")?.split_once('{')?;
    if !operands.starts_with('%') {
        return None;
    }
    let (mut sizes, mut others) = ([None; 3], Vec::new());
    for attribute in attributes.split(',') {
        let (name, value) = attribute.split_once('=').unwrap_or((attribute, ""));
        match ["m", "n", "k"].iter().position(|size| *size == name.trim()) {
            Some(at) => *sizes.get_mut(at)? = value.trim().strip_suffix(" : i32"),
            None => others.push(attribute),
        }
    }
    let [Some(m), Some(n), Some(k)] = sizes else {
        return None;
    };
    let words = format!("amdgpu.mfma {m}x{n}x{k} {operands}{{{}}}", others.join(","));
    Some((head.len() + 1, Some(words)))
}

/// `amdgpu.wmma %a * %b + %c : ...` of MLIR 21, which has one shape, but for integers of 4 bits.
fn wmma(rest: &str) -> Respelled {
    let name = "amdgpu.wmma ";
    let (_, types) = near(rest.strip_prefix(name)?).split_once(" : ")?;
    let types = types.lines().next()?;
    (rest.get(name.len()..)?.starts_with('%') && !types.contains("xi4>"))
        .then(|| (name.len(), Some(format!("{name}16x16x16 "))))
}

/// The operations in generic form by the names under which they are to be parsed.
fn rename(context: &Context, text: &[u8]) -> Result<Option<Vec<u8>>, LostProperty> {
    // Without it no operation is in generic form.
    if !text.windows(2).any(|pair| pair == b"\"(") {
        return Ok(None);
    }
    let mut renamed: Option<Vec<u8>> = None;
    let mut scanner = Scanner { text, at: 0 };
    let mut known = BTreeSet::new();
    while let Some((at, operation)) = scanner.next_operation() {
        let numbered = NUMBERED.iter().find(|(name, _)| *name == operation);
        let mut to = numbered.map(|(_, parsed_as)| *parsed_as);
        for (property, value) in scanner.properties() {
            let applies = |rule: &&Rule| (rule.operation, rule.property) == (operation, property) && (rule.when)(value);
            if let Some(rule) = RULES.iter().find(applies) {
                to = Some(rule.parsed_as);
            } else if value != NOTHING && known.insert((operation, property)) && !may_have(context, operation, property)
            {
                return Err(LostProperty {
                    operation: operation.to_owned(),
                    property: property.to_owned(),
                    at,
                });
            }
        }
        if let Some(name) = to {
            let copy = renamed.get_or_insert_with(|| text.to_vec());
            if let Some(place) = copy.get_mut(at + 1..at + 1 + name.len()) {
                place.copy_from_slice(name.as_bytes());
            }
        }
    }
    Ok(renamed)
}

fn may_have(context: &Context, operation: &str, property: &str) -> bool {
    let (operation, property) = (Bytes::new(operation.as_bytes()), Bytes::new(property.as_bytes()));
    // SAFETY: the context is alive, and the strings live during the call.
    unsafe { gpulowerMayHaveProperty(context.to_raw(), operation, property) }
}

/// Walks over tokens: strings and comments are passed over as wholes.
struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_blanks(&mut self) {
        self.at += self.rest().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    /// The contents of the string that begins here, which is passed over.
    fn string(&mut self) -> &'a [u8] {
        let start = self.at + 1;
        let mut end = start;
        while let Some(byte) = self.text.get(end).filter(|byte| **byte != b'"') {
            end += if *byte == b'\\' { 2 } else { 1 };
        }
        self.at = end.saturating_add(1).min(self.text.len());
        self.text.get(start..end).unwrap_or_default()
    }

    /// Passes over a token: a string, a comment, an arrow, a comparison, or one character. Gives its first byte, 0 for those
    /// that are no bracket.
    fn token(&mut self) -> Option<u8> {
        let rest = self.rest();
        let length = match rest {
            [] => return None,
            [b'"', ..] => {
                self.string();
                return Some(0);
            }
            [b'/', b'/', ..] => rest.iter().take_while(|byte| **byte != b'\n').count(),
            [b'-', b'>', ..] | [b'>' | b'<', b'=', ..] => 2,
            [byte, ..] => {
                self.at += 1;
                return Some(*byte);
            }
        };
        self.at += length;
        Some(0)
    }

    /// The next operation in generic form that has properties or kinds, and where its name begins; the properties come next.
    fn next_operation(&mut self) -> Option<(usize, &'a str)> {
        loop {
            if self.rest().first() != Some(&b'"') {
                self.token()?;
                continue;
            }
            let start = self.at;
            let name = self.string();
            if self.rest().first() != Some(&b'(') {
                continue;
            }
            self.skip_group();
            self.skip_blanks();
            if self.rest().first() == Some(&b'[') {
                self.skip_group();
                self.skip_blanks();
            }
            if let Ok(name) = std::str::from_utf8(name)
                && (self.rest().starts_with(b"<{") || NUMBERED.iter().any(|(numbered, _)| *numbered == name))
            {
                return Some((start, name));
            }
        }
    }

    /// Passes over brackets and what is in them.
    fn skip_group(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.token() {
            match byte {
                b'(' | b'[' | b'{' | b'<' => depth += 1,
                b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// The same, if they close within so many bytes.
    fn skip_group_in(&mut self, limit: usize) -> Option<()> {
        let start = self.at;
        let text = self.text;
        self.text = text.get(..text.len().min(start.saturating_add(limit)))?;
        self.skip_group();
        self.text = text;
        matches!(text.get(self.at.checked_sub(1)?), Some(b'>' | b'}')).then_some(())
    }

    /// The names and values in `<{a = 1, b}>`, which is passed over if it begins here.
    fn properties(&mut self) -> Vec<(&'a str, &'a str)> {
        let mut properties = Vec::new();
        if !self.rest().starts_with(b"<{") {
            return properties;
        }
        self.at += 2;
        loop {
            self.skip_blanks();
            let name = match self.rest().first() {
                Some(b'"') => self.string(),
                _ => {
                    let rest = self.rest();
                    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.$-".contains(byte);
                    let length = rest.iter().take_while(|byte| is_name(byte)).count();
                    self.at += length;
                    rest.get(..length).unwrap_or_default()
                }
            };
            // The value, up to the next name.
            let start = self.at;
            let end = loop {
                match self.rest().first() {
                    None => break None,
                    Some(b'(' | b'[' | b'{' | b'<') if !self.rest().starts_with(b"<=") => self.skip_group(),
                    Some(end @ (b'}' | b',')) => break Some(*end),
                    Some(_) => {
                        self.token();
                    }
                }
            };
            let value = self.text.get(start..self.at).unwrap_or_default();
            if let (Ok(name), Ok(value)) = (std::str::from_utf8(name), std::str::from_utf8(value))
                && !name.is_empty()
            {
                properties.push((name, value.trim_start_matches([' ', '=']).trim_end()));
            }
            self.at = (self.at + 1).min(self.text.len());
            if end != Some(b',') {
                return properties;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compiler::{context, parse},
        device::lower::name_of,
    };
    use melior::ir::{
        BlockLike, Module,
        operation::{OperationLike, OperationPrintingFlags},
    };

    fn found(text: &str) -> Vec<(&str, Vec<&str>)> {
        let mut scanner = Scanner {
            text: text.as_bytes(),
            at: 0,
        };
        let mut all = Vec::new();
        while let Some((_, name)) = scanner.next_operation() {
            all.push((name, scanner.properties().into_iter().map(|(name, _)| name).collect()));
        }
        all
    }

    #[test]
    fn names_of_properties_are_found_behind_any_value() {
        let text = r#"// "a.b"() <{no}>
            "a.b"(%0, %1)[^bb1, ^bb2] <{map = affine_map<(d0) -> (d0)>, set = affine_set<(d0) : (d0 >= 0)>, "q w" = "}>, x",
              unit, type = (memref<?xf32>) -> (), list = [#x<1>, {y = 2}]}> ({ "c.d"() <{z}> : () -> () }) : () -> ()
            "e.f"() {"g" = "h"} : () -> ()
            %2 = "i.j"() <{}> : () -> i32"#;
        assert_eq!(
            found(text),
            [
                ("a.b", vec!["map", "set", "q w", "unit", "type", "list"]),
                ("c.d", vec!["z"]),
                ("i.j", vec![]),
            ]
        );
        // What is cut off ends.
        for end in 0..text.len() {
            found(&text[..end]);
        }
    }

    fn first_function<'c>(module: &Module<'c>) -> String {
        let gpu_module = module.body().first_operation().expect("an operation");
        use melior::ir::RegionLike;
        let block = gpu_module.region(0).expect("a region").first_block().expect("a block");
        let function = block.first_operation().expect("a function");
        assert_eq!(name_of(&function), "gpu.func");
        function.to_string()
    }

    #[test]
    fn kernels_of_mlir_23_are_kernels() {
        let context = context();
        // As MLIR 23.0.0git writes it.
        let text = br#""builtin.module"() ({
  "gpu.module"() <{sym_name = "m"}> ({
    "gpu.func"() <{function_type = (memref<?xi32>) -> (), kernel, known_block_size = array<i32: 256, 1, 1>, workgroup_attributions = 1 : i64}> ({
    ^bb0(%arg0: memref<?xi32>, %arg1: memref<256xi32, #gpu.address_space<workgroup>>):
      "gpu.return"() : () -> ()
    }) {sym_name = "k", workgroup_attrib_attrs = []} : () -> ()
  }) : () -> ()
}) : () -> ()"#;
        let text = String::from_utf8_lossy(text).replace(", workgroup_attrib_attrs = []", "");
        let module = parse(&context, "k.mlir", text.as_bytes()).expect("parses");
        let function = first_function(&module);
        assert!(
            function.contains(" kernel ") && function.contains("workgroup(%"),
            "{function}"
        );
        assert!(function.contains("known_block_size"), "{function}");
        // Where there is none, the number is left out, and MLIR's lowering of a reduction would crash.
        let text = text
            .replace(", workgroup_attributions = 1 : i64", "")
            .replace(", %arg1: memref<256xi32, #gpu.address_space<workgroup>>", "");
        let module = parse(&context, "k.mlir", text.as_bytes()).expect("parses");
        let flags = OperationPrintingFlags::new().print_generic_operation_form();
        let generic = module.as_operation().to_string_with_flags(flags).expect("prints");
        assert!(generic.contains("workgroup_attributions = 0 : i64"), "{generic}");
    }

    #[test]
    fn what_would_be_lost_is_refused_with_its_place() {
        let context = context();
        let text = "\"builtin.module\"() ({\n  \"gpu.module\"() <{sym_name = \"m\", color = 3 : i32}> ({}) : () -> ()\n}) : () -> ()";
        let error = parse(&context, "k.mlir", text.as_bytes())
            .map(drop)
            .expect_err("is refused");
        assert_eq!(error.location(), Some("\"k.mlir\":2:3"));
        let text = error.to_string();
        assert!(
            text.starts_with("gpu.module has no property 'color' in MLIR 22"),
            "{text}"
        );
    }

    /// What this release writes is read whatever it says: properties that are attributes, and others.
    #[test]
    fn generic_text_of_this_release_stays_as_it_is() {
        let context = context();
        let text = "gpu.module @m { llvm.func @k(%p: !llvm.ptr, %i: i64) -> i64 attributes {gpu.kernel, nvvm.kernel} {
            %q = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
            %v = llvm.load %q : !llvm.ptr -> i64
            %w = llvm.mul %v, %i overflow<nsw> : i64
            %x = llvm.call @k(%q, %w) : (!llvm.ptr, i64) -> i64
            llvm.return %x : i64 } }";
        let module = parse(&context, "k.mlir", text.as_bytes()).expect("parses");
        let flags = OperationPrintingFlags::new().print_generic_operation_form();
        let generic = module.as_operation().to_string_with_flags(flags).expect("prints");
        assert!(
            generic.contains("overflowFlags") && generic.contains("noWrapFlags"),
            "{generic}"
        );
        assert_eq!(bring_over(&context, generic.as_bytes()), Ok(None));
        // MLIR 19 does not say which operands of a call are arguments.
        let older = generic.replace(
            "op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 2, 0>, ",
            "",
        );
        let older = older.replace(
            ", op_bundle_sizes = array<i32>, operandSegmentSizes = array<i32: 2, 0>",
            "",
        );
        assert!(!older.contains("op_bundle_sizes"), "{older}");
        let module = parse(&context, "k.mlir", older.as_bytes()).expect("parses");
        let again = module.as_operation().to_string();
        assert!(
            again.contains("llvm.call @k(%2") || again.contains("llvm.call @k(%0"),
            "{again}"
        );
    }

    /// The operations of a module in custom form, as it is read.
    fn read(text: &str) -> String {
        let context = context();
        let module = parse(&context, "k.mlir", text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
        module.as_operation().to_string()
    }

    /// Read as they stand, these would be other operations: `maxs` as `maximumf`, `mins` as `maxu`, `assign` as `andi`.
    #[test]
    fn kinds_of_atomic_operations_have_other_numbers_before_mlir_22() {
        let older = [
            "addf", "addi", "assign", "maximumf", "maxs", "maxu", "minimumf", "mins", "minu", "mulf", "muli", "ori",
            "andi", "maxnumf", "minnumf",
        ];
        for (number, kind) in older.iter().enumerate() {
            let is_float = kind.ends_with('f');
            let value = if is_float { "f32" } else { "i32" };
            let text = |end: &str| {
                format!(
                    "\"builtin.module\"() ({{ \"gpu.module\"() <{{sym_name = \"m\"}}> ({{
                    \"gpu.func\"() <{{function_type = (memref<{value}>, {value}) -> ()}}> ({{
                    ^bb0(%p: memref<{value}>, %v: {value}):
                      %0 = \"memref.atomic_rmw\"(%v, %p) <{{kind = {number} : i64}}> : ({value}, memref<{value}>) -> {value}
                      \"gpu.return\"() : () -> ()
                    }}) {{gpu.kernel, sym_name = \"k\", workgroup_attributions = 0 : i64}} : () -> ()
                    {end}}}) : () -> () }}) : () -> ()"
                )
            };
            let module = read(&text("\"gpu.module_end\"() : () -> ()\n"));
            assert!(
                module.contains(&format!("memref.atomic_rmw {kind} ")),
                "{kind}: {module}"
            );
        }
    }

    #[test]
    fn what_lowered_modules_of_other_releases_say() {
        let kernel = |body: &str| {
            format!("gpu.module @m {{ llvm.func @k(%p: !llvm.ptr<3>, %i: i32) {{\n{body}\nllvm.return }} }}")
        };
        // MLIR 19.
        let module = read(&kernel("%0 = rocdl.workitem.id.x {range = array<i32: 0, 256>} : i32"));
        assert!(module.contains("rocdl.workitem.id.x : i32"), "{module}");
        let module = read(&kernel(
            "%0 = \"rocdl.workgroup.dim.x\"() {range = array<i32: 1, 255>} : () -> i32",
        ));
        assert!(module.contains("rocdl.workgroup.dim.x : i32"), "{module}");
        for attributes in [
            "range = array<i32: -1, 256>, tag",
            "a.b = {c}, range = array<i32: 0, 256>",
            "a, range = array<i32: 0, 1>, tag",
        ] {
            let module = read(&kernel(&format!(
                "%0 = rocdl.workitem.id.x {{{attributes}}} : i32\nllvm.store %0, %p : i32, !llvm.ptr<3>\n\
                 %1 = rocdl.workitem.id.y {{range = array<i32: 0, 256>}} : i32"
            )));
            assert!(module.contains("llvm.store") && !module.contains("range"), "{module}");
            assert_eq!(
                module.matches("tag").count(),
                attributes.matches("tag").count(),
                "{module}"
            );
            assert_eq!(
                module.matches("a.b = {c}").count(),
                attributes.matches("a.b").count(),
                "{module}"
            );
        }
        let load = "%0 = nvvm.ldmatrix %p {layout = #nvvm.mma_layout<row>, num = 1 : i32} : (!llvm.ptr<3>) -> i32";
        let module = read(&kernel(load));
        assert!(
            module.contains("eltType = #nvvm.ld_st_matrix_elt_type<b16>") && module.contains("<m = 8, n = 8>"),
            "{module}"
        );
        let call = "%0 = \"llvm.call_intrinsic\"(%i) <{fastmathFlags = #llvm.fastmath<none>, intrin = \"llvm.ctpop.i32\"}> : \
                    (i32) -> i32";
        assert!(read(&kernel(call)).contains("llvm.call_intrinsic \"llvm.ctpop.i32\"(%"));
        for (operands, sizes, types, read_as) in [
            ("", "0, 0", "", "nvvm.barrier\n"),
            ("%i", "1, 0", "i32", "nvvm.barrier id = %arg1\n"),
            (
                "%i, %i",
                "1, 1",
                "i32, i32",
                "nvvm.barrier id = %arg1 number_of_threads = %arg1\n",
            ),
        ] {
            let text = format!(
                "\"nvvm.barrier\"({operands}) <{{operandSegmentSizes = array<i32: {sizes}>}}> : ({types}) -> ()"
            );
            let module = read(&kernel(&text));
            assert!(module.contains(read_as), "{module}");
        }
        // MLIR 23, with locations, which it does not read itself.
        for (words, read_as) in [
            ("nvvm.barrier loc(#loc3)", "nvvm.barrier\n"),
            ("nvvm.barrier id = %i loc(#loc3)", "nvvm.barrier id = %arg1\n"),
            (
                "nvvm.barrier id = %i number_of_threads = %i loc(\"a\":1:2)",
                "nvvm.barrier id = %arg1 number_of_threads = %arg1\n",
            ),
            ("nvvm.barrier {x.y} loc(\"a\":1:1)", "nvvm.barrier {x.y}\n"),
            (
                "nvvm.barrier id = %i {a = \"}\", b = {c}} loc(#loc3)",
                "nvvm.barrier id = %arg1 {a = \"}\", b = {c}}\n",
            ),
        ] {
            let module = read(&format!("{}\n#loc3 = loc(\"b\":1:2)\n", kernel(words)));
            assert!(module.contains(read_as), "{module}");
        }
    }

    /// What MLIR 19 to 21 write in custom form, and what MLIR 22 writes of it.
    #[test]
    fn words_of_custom_form_that_changed() {
        let vector = "!llvm.vec<4 x ptr<1>>";
        for (body, read_as) in [
            (
                "%v = vector.splat %f : vector<4xf32>",
                vec!["vector.broadcast %arg0 : f32 to vector<4xf32>"],
            ),
            (
                "%v = vector.splat %f : vector<4xf32> loc(\"a\":1:2)\n%e = vector.extractelement %v[%i : i32] {a.b} : vector<4xf32>",
                vec![
                    "arith.index_castui %arg1 : i32 to index",
                    "vector.extract %0[%1] : f32 from vector<4xf32>",
                ],
            ),
            (
                "%v = vector.splat %f : vector<f32>\n%w = vector.insertelement %f, %v[] : vector<f32>\n\
                 %e = vector.extractelement %w[] : vector<f32>",
                vec![
                    "vector.insert %arg0, %0 [] : f32 into vector<f32>",
                    "vector.extract %1[] : f32 from vector<f32>",
                ],
            ),
            (
                "gpu.printf \"a, \\\" %b %f\" %f, %i : f32, i32\ngpu.printf \"gpu.printf %f\"",
                vec![
                    "gpu.printf \"a, \\22 %b %f\", %arg0, %arg1 : f32, i32",
                    "gpu.printf \"gpu.printf %f\"\n",
                ],
            ),
            (
                "gpu.printf \"%f\" {a.b = \"}\"} %f : f32",
                vec!["gpu.printf \"%f\" {a.b = \"}\"}, %arg0 : f32"],
            ),
            ("gpu.printf \"%f\"%f : f32", vec!["gpu.printf \"%f\", %arg0 : f32"]),
            (
                "%s = llvm.alloca %i x i32 : (i32) -> !llvm.ptr\nllvm.intr.lifetime.start 4, %s : !llvm.ptr\n\
                 llvm.intr.lifetime.end -1, %s : !llvm.ptr",
                vec!["llvm.intr.lifetime.start %0 : ", "llvm.intr.lifetime.end %0 : "],
            ),
            (
                "%s = llvm.alloca %i x i32 : (i32) -> !llvm.ptr\n\
                 \"llvm.intr.lifetime.start\"(%s) <{size = 4 : i64}> : (!llvm.ptr) -> ()",
                vec!["llvm.intr.lifetime.start %0 : "],
            ),
            // LLVM 22 has them for whole allocations alone.
            (
                "llvm.intr.lifetime.start 4, %q : !llvm.ptr",
                vec!["kernel {\n      gpu.return"],
            ),
            (
                "nvvm.mbarrier.init.shared %p, %i : !llvm.ptr<3>, i32\n%t = nvvm.mbarrier.arrive.shared %p : !llvm.ptr<3> -> i64",
                vec!["nvvm.mbarrier.init %arg3, %arg1 : ", "nvvm.mbarrier.arrive %arg3 : "],
            ),
            (
                "\"nvvm.mbarrier.inval.shared\"(%p) : (!llvm.ptr<3>) -> ()",
                vec!["nvvm.mbarrier.inval %arg3 : "],
            ),
            (
                "nvvm.cp.async.mbarrier.arrive.shared %p {noinc = true} : !llvm.ptr<3>",
                vec!["nvvm.cp.async.mbarrier.arrive %arg3 {noinc = true} : "],
            ),
            (
                "%b = arith.constant true\n%v = nvvm.vote.ballot.sync %i, %b : i32",
                vec!["nvvm.vote.sync  ballot %arg1, %true -> i32"],
            ),
            (
                "%b = arith.constant true\n%v = \"nvvm.vote.ballot.sync\"(%i, %b) : (i32, i1) -> i32",
                vec!["nvvm.vote.sync  ballot %arg1, %true -> i32"],
            ),
            (
                "nvvm.prefetch.tensormap %q : !llvm.ptr",
                vec!["nvvm.prefetch tensormap, %arg2 : "],
            ),
            (
                "\"nvvm.prefetch.tensormap\"(%q) : (!llvm.ptr) -> ()",
                vec!["nvvm.prefetch tensormap, %arg2 : "],
            ),
            (
                "rocdl.waitcnt 7\n\"rocdl.waitcnt\"() {bitfield = 8 : i32} : () -> ()",
                vec!["rocdl.s.waitcnt 7\n", "rocdl.s.waitcnt 8\n"],
            ),
            (
                &format!(
                    "%l = llvm.load %q : !llvm.ptr -> {vector}\n%m = llvm.load %q : !llvm.ptr -> !llvm.vec<? x 2 x i32>"
                ),
                vec!["-> vector<4x!llvm.ptr<1>>\n", "-> vector<[2]xi32>\n"],
            ),
            (
                "%l = llvm.load %q : !llvm.ptr -> !llvm.struct<(vec<2 x ptr>, array<4 x vec<? x 2 x ptr<3>>>, i32, vec<2 x i8>)>",
                vec![
                    "-> !llvm.struct<(vector<2x!llvm.ptr>, array<4 x vector<[2]x!llvm.ptr<3>>>, i32, vector<2xi8>)>\n",
                ],
            ),
            (
                "%a = vector.splat %f : vector<1xf32>\n%c = vector.splat %f : vector<16xf32>\n\
                 %d = amdgpu.mfma %f * %f + %c { abid = 0 : i32, k = 2 : i32, m = 32 : i32, n = 32 : i32 } blgp = none : f32, f32, vector<16xf32>",
                vec!["amdgpu.mfma 32x32x2 %arg0 * %arg0 + %1 blgp ="],
            ),
            (
                "%h = arith.constant dense<0.0> : vector<16xf16>\n%c = vector.splat %f : vector<8xf32>\n\
                 %d = amdgpu.wmma %h * %h + %c : vector<16xf16>, vector<16xf16>, vector<8xf32>\n\
                 %e = \"amdgpu.wmma\"(%h, %h, %c) : (vector<16xf16>, vector<16xf16>, vector<8xf32>) -> vector<8xf32>",
                vec![
                    "amdgpu.wmma 16x16x16 %cst * %cst + %0",
                    "amdgpu.wmma 16x16x16 %cst * %cst + %0",
                ],
            ),
        ] {
            let text = format!(
                "gpu.module @m {{ gpu.func @k(%f: f32, %i: i32, %q: !llvm.ptr, %p: !llvm.ptr<3>) kernel {{\n{body}\ngpu.return }} }}"
            );
            let module = read(&text);
            for words in read_as {
                assert!(module.contains(words), "{words}: {module}");
            }
        }
        let effects = "#llvm.memory_effects<other = none, argMem = readwrite, inaccessibleMem = read>";
        let module = read(&format!("llvm.func @f() attributes {{memory_effects = {effects}}}"));
        assert!(
            module.contains("inaccessibleMem = read, errnoMem = none, targetMem0 = read, targetMem1 = read>"),
            "{module}"
        );
    }

    /// An operation that no release wrote so is refused, and not passed over.
    #[test]
    fn removed_operations_in_another_form_are_refused() {
        let context = context();
        for words in [
            "%v = \"vector.splat\"(%f, %f) : (f32, f32) -> vector<4xf32>",
            "%v = \"vector.extractelement\"(%f) : (f32) -> f32",
            "%v = vector.splat %f : vector<2xf32>\n%e = \"vector.extractelement\"(%v) : (vector<2xf32>) -> f32",
        ] {
            let text = format!("gpu.module @m {{ gpu.func @k(%f: f32) kernel {{ {words}\n gpu.return }} }}");
            let error = parse(&context, "k.mlir", text.as_bytes())
                .map(drop)
                .expect_err("is refused");
            assert!(error.to_string().contains("vector."), "{error}");
        }
    }

    #[test]
    fn what_is_no_word_of_another_release_stays() {
        for text in [
            "\"a.b\"() {s = \"rocdl.x {range = array<i32: 0, 1>}\"} : () -> ()",
            "// rocdl.x {range = array<i32: 0, 1>}\n",
            "\"a.b\"() {range = array<i32: 0, 1>} : () -> ()",
            "rocdl.x {range = array<i32: 0, %0>}",
            "rocdl.x {range = array<i32: 0>}",
            "rocdl.x {range = array<i32: 0, 1> : i32}",
            "rocdl.x {range = array<i32: 0, 1, 2>}",
            "rocdl.x {tag} : i32 [a, range = array<i32: 0, 1>]",
            "rocdl.x {a = {b, range = array<i32: 0, 1>}}",
            "nvvm.barrier id = %0\n\"x.y\"() : () -> () loc(unknown)",
            "nvvm.barrier {x.y}\n\"x.y\"() : () -> () loc(unknown)",
            "%0 = nvvm.barrier #nvvm.reduction<and> %i -> i32 loc(unknown)",
            "gpu.printf \"a\", %0 : i32",
            "gpu.printf \"a\"\n}",
            "gpu.printf \"a\"\n%c = gpu.thread_id x",
            "gpu.func @nvvm.mbarrier.x.shared (%a: i32)",
            "%nvvm.mbarrier.a.shared = a.b",
            "{rocdl.waitcnt = 1}",
            "// gpu.printf \"a\" %0",
            "my.gpu.printf \"a\" %0",
            "nvvm.mbarrier.init %0, %1 : !llvm.ptr<3>, i32",
            "#llvm.memory_effects<other = none, argMem = none, inaccessibleMem = none, errnoMem = none, targetMem0 = none, targetMem1 = none>",
            "amdgpu.mfma 32x32x2 %0 * %0 + %1 {m = 1 : i32, n = 1 : i32, k = 1 : i32}",
            "amdgpu.wmma %0 * %0 + %1 : vector<16xi4>, vector<16xi4>, vector<8xi32>",
            "!llvm.vec<4 x",
        ] {
            assert_eq!(respell(text.as_bytes()), None, "{text}");
        }
    }

    /// A barrier's attributes are passed over once.
    #[test]
    fn respelling_takes_linear_time() {
        for part in [
            "nvvm.barrier {",
            "nvvm.barrier id = ",
            "rocdl.x {range = array<i32: 0, ",
            "{",
            "a, range = array<i32: 0, 1>",
            "gpu.printf \"",
            "llvm.intr.lifetime.",
            "nvvm.mbarrier.",
            "nvvm.vote.ballot.sync ",
            "!llvm.vec<",
            "amdgpu.mfma %",
            "#llvm.memory_effects<",
        ] {
            let text = format!("rocdl.{} {{{}loc(", "x".repeat(1 << 20), part.repeat(1 << 17));
            respell(text.as_bytes());
        }
    }

    /// The kinds of custom text are words, whatever ends the module.
    #[test]
    fn kinds_in_custom_text_stay() {
        let module = read(
            "gpu.module @m { gpu.func @k(%p: memref<4xi32>, %v: i32) kernel {
               %c = arith.constant 0 : index
               %0 = memref.atomic_rmw andi %v, %p[%c] : (i32, memref<4xi32>) -> i32
               %1 = \"memref.atomic_rmw\"(%v, %p, %c) {kind = 2 : i64} : (i32, memref<4xi32>, index) -> i32 loc(\"a\":1:1)
               %2 = affine.parallel (%i) = (0) to (4) reduce (\"muli\") -> (i32) { affine.yield %v : i32 }
               gpu.return }
             \"gpu.module_end\"() : () -> () }",
        );
        for words in ["atomic_rmw andi ", "atomic_rmw assign ", "reduce (\"muli\")"] {
            assert!(module.contains(words), "{words}: {module}");
        }
    }

    #[test]
    fn vectors_of_other_releases() {
        let function = |body: &str| {
            format!(
                "gpu.module @m {{ gpu.func @k(%v: vector<2x4xf32>, %a: vector<2xf32>, %b: vector<2xf32>, %f: f32) {{\n{body}\ngpu.return }} }}"
            )
        };
        // MLIR 19.
        let module = read(&function(
            "%0 = \"vector.multi_reduction\"(%v, %a) <{kind = #vector.kind<add>, reduction_dims = [1]}> : \
             (vector<2x4xf32>, vector<2xf32>) -> vector<2xf32>\n%1 = arith.addf %0, %a : vector<2xf32>",
        ));
        assert!(
            module.contains("vector.multi_reduction <add>, %arg0, %arg1 [1]"),
            "{module}"
        );
        // What is no list of numbers is left for MLIR to refuse.
        for dimensions in ["[unit]", "[\"x\"]", "[1 : i32, 0]", "[1 : si64]"] {
            let text = function(&format!(
                "%0 = \"vector.multi_reduction\"(%v, %a) <{{kind = #vector.kind<add>, reduction_dims = {dimensions}}}> : \
                 (vector<2x4xf32>, vector<2xf32>) -> vector<2xf32>"
            ));
            let context = context();
            let error = parse(&context, "k.mlir", text.as_bytes())
                .map(drop)
                .expect_err("is refused");
            assert!(error.to_string().contains("reduction_dims"), "{error}");
        }
        // MLIR 23.
        let contract = |flags: &str| {
            function(&format!(
                "%0 = \"vector.contract\"(%a, %b, %f) <{{fastmath = #arith.fastmath<{flags}>, indexing_maps = \
                 [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], \
                 iterator_types = [#vector.iterator_type<reduction>], kind = #vector.kind<add>}}> : \
                 (vector<2xf32>, vector<2xf32>, f32) -> f32"
            ))
        };
        assert!(read(&contract("none")).contains("vector.contract"));
        let context = context();
        let error = parse(&context, "k.mlir", contract("fast").as_bytes())
            .map(drop)
            .expect_err("is lost");
        assert!(error.to_string().contains("no property 'fastmath'"), "{error}");
    }

    #[test]
    fn the_end_of_a_module_of_mlir_19_is_passed_over() {
        let context = context();
        let text = br#""builtin.module"() ({
  "gpu.module"() <{sym_name = "m"}> ({
    "gpu.func"() <{function_type = () -> ()}> ({
      "gpu.return"() : () -> ()
    }) {gpu.kernel, sym_name = "k", workgroup_attributions = 0 : i64} : () -> ()
    "gpu.module_end"() : () -> ()
  }) : () -> ()
}) : () -> ()"#;
        let module = parse(&context, "k.mlir", text).expect("parses");
        assert!(first_function(&module).contains(" kernel"));
    }
}
