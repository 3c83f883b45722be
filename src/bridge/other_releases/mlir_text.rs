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
#[path = "mlir_text_tests.rs"]
mod tests;
