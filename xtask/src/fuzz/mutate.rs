//! Damage: texts of which tokens, lines and types were changed, so that most of what was right stays right, and bytes.
//!
//! The same generator gives the same damage.

use std::collections::BTreeSet;

use fastrand::Rng;

/// Types of MLIR, the usual ones and those that passes forget about.
pub const MLIR_TYPES: &[&str] = &[
    "i1",
    "i2",
    "i7",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "i1024",
    "si32",
    "ui8",
    "index",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f80",
    "f128",
    "tf32",
    "f8E4M3FN",
    "f8E5M2",
    "f8E4M3FNUZ",
    "f8E8M0FNU",
    "f4E2M1FN",
    "f6E2M3FN",
    "none",
    "complex<f32>",
    "vector<4xf32>",
    "vector<1xi1>",
    "vector<[4]xf32>",
    "vector<2x3xf16>",
    "vector<f32>",
    "vector<65536xi8>",
    "memref<f32>",
    "memref<?xf32>",
    "memref<0xf32>",
    "memref<*xf32>",
    "memref<4x?xi1>",
    "memref<?xf32, strided<[?], offset: ?>>",
    "memref<4xf32, affine_map<(d0) -> (d0 floordiv 2)>>",
    "memref<?xf32, #gpu.address_space<workgroup>>",
    "memref<4xf32, 3>",
    "memref<2147483648x4xf64>",
    "tensor<4xf32>",
    "!llvm.ptr",
    "!llvm.ptr<3>",
    "!llvm.ptr<5>",
    "!llvm.struct<(i32, f32)>",
    "!llvm.array<4 x i8>",
    "!llvm.struct<\"s\", opaque>",
    "!llvm.void",
    "!llvm.token",
    "!gpu.async.token",
    "!gpu.mma_matrix<16x16xf16, \"AOp\">",
    "!nvgpu.device.async.token",
    "tuple<i32>",
    "(i32) -> i32",
    "!foo.bar",
];

/// Types of LLVM IR.
const LLVM_TYPES: &[&str] = &[
    "i1",
    "i8",
    "i16",
    "i32",
    "i64",
    "i128",
    "i129",
    "i7",
    "half",
    "bfloat",
    "float",
    "double",
    "fp128",
    "x86_fp80",
    "ptr",
    "ptr addrspace(1)",
    "ptr addrspace(3)",
    "ptr addrspace(5)",
    "ptr addrspace(7)",
    "ptr addrspace(4242)",
    "<4 x float>",
    "<3 x i1>",
    "<1 x i128>",
    "<64 x half>",
    "<vscale x 4 x i32>",
    "[0 x i8]",
    "[4 x i8]",
    "{ i32, ptr }",
    "<{ i8, i64 }>",
    "token",
    "metadata",
    "void",
    "label",
    "x86_amx",
    "target(\"amdgcn.named.barrier\", 0)",
];

/// Numbers at the edges.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "3",
    "7",
    "8",
    "31",
    "32",
    "33",
    "63",
    "64",
    "127",
    "128",
    "255",
    "256",
    "1023",
    "1024",
    "1025",
    "4096",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "1.0",
    "-0.0",
    "1.0e40",
    "0x7FC00000",
    "0xFFFFFFFFFFFFFFFF",
];

const SYMBOLS: &[&str] = &[
    "@\"\"",
    "@\"a b\"",
    "@llvm.trap",
    "@llvm.nvvm.barrier0",
    "@llvm.amdgcn.s.barrier",
    "@llvm.foo",
    "@__nvvm_reflect",
    "@printf",
    "@vprintf",
    "@malloc",
    "@__nv_expf",
    "@__ocml_exp_f32",
    "@llvm.used",
    "@llvm.global_ctors",
    "@main",
    "@\"é\"",
    "@\"a\\00b\"",
];

/// Whose text is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    Mlir,
    LlvmIr,
    /// PTX, option strings, and everything else.
    Other,
}

/// Words of all seeds of a language, to be put in the places of others of their kind.
#[derive(Debug, Default)]
pub struct Vocabulary {
    operations: Vec<String>,
    attributes: Vec<String>,
    values: Vec<String>,
    words: Vec<String>,
}

impl Vocabulary {
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut kinds = [const { BTreeSet::new() }; 4];
        for text in texts {
            for token in tokens(text) {
                let kind = match kind(token) {
                    Kind::Operation => 0,
                    Kind::Attribute => 1,
                    Kind::Value => 2,
                    Kind::Word => 3,
                    _ => continue,
                };
                kinds[kind].insert(token.to_owned());
            }
        }
        let [operations, attributes, values, words] = kinds.map(|kind| kind.into_iter().collect());
        Self {
            operations,
            attributes,
            values,
            words,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    Number,
    /// `4x?xf32`
    Shape,
    Type,
    /// `arith.addf`
    Operation,
    /// `#gpu.address_space`
    Attribute,
    /// `%a`
    Value,
    /// `@f`
    Symbol,
    Word,
    Mark,
}

fn kind(token: &str) -> Kind {
    let Some(first) = token.chars().next() else {
        return Kind::Space;
    };
    match first {
        _ if first.is_whitespace() => Kind::Space,
        '%' => Kind::Value,
        '@' => Kind::Symbol,
        '#' => Kind::Attribute,
        '!' => Kind::Type,
        '0'..='9' | '?' => {
            if token.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
                Kind::Number
            } else {
                Kind::Shape
            }
        }
        _ if MLIR_TYPES.contains(&token) || LLVM_TYPES.contains(&token) => Kind::Type,
        _ if first.is_alphabetic() && token.contains('.') => Kind::Operation,
        _ if first.is_alphanumeric() || first == '_' || first == '.' => Kind::Word,
        _ => Kind::Mark,
    }
}

/// The tokens of a text, spaces included: together they are the text.
fn tokens(text: &str) -> Vec<&str> {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let from_second = &rest[first.len_utf8()..];
        let length = if first.is_whitespace() {
            rest.find(|c: char| !c.is_whitespace())
        } else if first == '?' || inside(first) {
            rest.find(|c: char| !inside(c) && c != '?')
        } else if matches!(first, '%' | '@' | '#' | '!' | '^') {
            from_second.find(|c: char| !inside(c)).map(|length| length + 1)
        } else {
            Some(first.len_utf8())
        };
        let (token, behind) = rest.split_at(length.unwrap_or(rest.len()));
        tokens.push(token);
        rest = behind;
    }
    tokens
}

/// One of a list that is not empty.
pub fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(0..choices.len())]
}

/// Damages bytes.
pub fn bytes(rng: &mut Rng, seed: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..one_of(rng, &[1, 1, 1, 2, 4]) {
        if bytes.is_empty() {
            return bytes;
        }
        let place = rng.usize(0..bytes.len());
        match rng.u8(0..10) {
            0..=2 => bytes[place] ^= 1 << rng.u8(0..8),
            3 | 4 => bytes[place] = rng.u8(..),
            5 => bytes[place] = one_of(rng, &[0, 0xff, 0x7f, 0x80]),
            6 => bytes.truncate(place),
            7 => {
                let end = (place + rng.usize(1..64)).min(bytes.len());
                let part = bytes[place..end].to_vec();
                let to = rng.usize(0..bytes.len());
                bytes.splice(to..to, part);
            }
            8 => {
                let end = (place + rng.usize(1..64)).min(bytes.len());
                bytes.drain(place..end);
            }
            _ => {
                let from = rng.usize(0..=other.len());
                let end = (from + rng.usize(1..256)).min(other.len());
                let to = (place + end - from).min(bytes.len());
                bytes.splice(place..to, other[from..end].iter().copied());
            }
        }
    }
    bytes
}

/// Damages a text; parts of `other` may be mixed in.
///
/// Most changes keep to the grammar, and are few: what the parser refuses gets no further.
pub fn text(rng: &mut Rng, language: Language, seed: &str, other: &str, vocabulary: &Vocabulary) -> String {
    let mut text = seed.to_owned();
    for _ in 0..one_of(rng, &[0, 1, 1, 1, 1, 1, 2, 2, 3, 6]) {
        text = match rng.u8(0..100) {
            0..=17 => lines(rng, &text, other),
            18..=44 => everywhere(rng, language, &text),
            45 => String::from_utf8_lossy(&bytes(rng, text.as_bytes(), other.as_bytes())).into_owned(),
            46 => nested(rng, language, &text),
            47..=74 => token(rng, language, &text, vocabulary, &[Kind::Number, Kind::Shape]),
            75..=84 => token(
                rng,
                language,
                &text,
                vocabulary,
                &[Kind::Value, Kind::Symbol, Kind::Operation],
            ),
            _ => token(rng, language, &text, vocabulary, &[]),
        };
    }
    text
}

/// Drops, doubles, moves or swaps lines, or takes some over from another text.
fn lines(rng: &mut Rng, text: &str, other: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.is_empty() {
        return text.to_owned();
    }
    let place = rng.usize(0..lines.len());
    let other_place = rng.usize(0..lines.len());
    match rng.u8(0..6) {
        // Brackets stay in pairs.
        0 if !lines[place].contains(['{', '}']) => {
            lines.remove(place);
        }
        0 | 1 => lines.insert(other_place, lines[place]),
        2 => lines.swap(place, other_place),
        3 => {
            let line = lines.remove(place);
            lines.insert(other_place.min(lines.len()), line);
        }
        _ => {
            let others: Vec<&str> = other.lines().collect();
            let from = rng.usize(0..=others.len());
            let end = (from + rng.usize(1..4)).min(others.len());
            lines.splice(place..place, others[from..end].iter().copied());
        }
    }
    lines.join("\n")
}

/// Puts one type, or one other word, in the place of another everywhere, so that uses still fit.
fn everywhere(rng: &mut Rng, language: Language, text: &str) -> String {
    let tokens = tokens(text);
    let there: BTreeSet<&str> = tokens
        .iter()
        .filter_map(|token| match kind(token) {
            Kind::Type | Kind::Number => Some(*token),
            // The element type of a shape.
            Kind::Shape => token
                .rsplit_once('x')
                .map(|(_, element)| element)
                .filter(|element| !element.is_empty()),
            _ => None,
        })
        .collect();
    let Some(old) = rng.choice(there) else {
        return text.to_owned();
    };
    let new = match kind(old) {
        Kind::Number => one_of(rng, NUMBERS),
        _ => a_type(rng, language),
    };
    let changed = tokens.iter().map(|token| match token.strip_suffix(old) {
        Some("") => new.to_owned(),
        Some(dimensions) if dimensions.ends_with('x') && kind(token) == Kind::Shape => format!("{dimensions}{new}"),
        _ => (*token).to_owned(),
    });
    changed.collect()
}

fn a_type(rng: &mut Rng, language: Language) -> &'static str {
    let types = match language {
        Language::LlvmIr => LLVM_TYPES,
        Language::Mlir | Language::Other => MLIR_TYPES,
    };
    one_of(rng, types)
}

/// Changes one token of these kinds, or of any, to another of its kind, or drops, doubles or swaps it.
fn token(rng: &mut Rng, language: Language, text: &str, vocabulary: &Vocabulary, kinds: &[Kind]) -> String {
    let mut tokens: Vec<String> = tokens(text).into_iter().map(str::to_owned).collect();
    let places: Vec<usize> = (0..tokens.len())
        .filter(|place| match kind(&tokens[*place]) {
            Kind::Space => false,
            kind => kinds.is_empty() || kinds.contains(&kind),
        })
        .collect();
    let (Some(place), Some(other)) = (rng.choice(&places).copied(), rng.choice(&places).copied()) else {
        return text.to_owned();
    };
    match rng.u8(0..30) {
        0 => tokens[place].clear(),
        1 => tokens[place] = tokens[place].repeat(2),
        2 => tokens.swap(place, other),
        _ => tokens[place] = another(rng, language, &tokens[place], &tokens, vocabulary),
    }
    tokens.concat()
}

/// Another token of the same kind.
fn another(rng: &mut Rng, language: Language, token: &str, tokens: &[String], vocabulary: &Vocabulary) -> String {
    let from = |rng: &mut Rng, words: &[String]| rng.choice(words).cloned().unwrap_or_default();
    match kind(token) {
        Kind::Space => token.to_owned(),
        Kind::Number => one_of(rng, NUMBERS).to_owned(),
        Kind::Shape => shape(rng, language, token),
        Kind::Type => a_type(rng, language).to_owned(),
        Kind::Operation => from(rng, &vocabulary.operations),
        Kind::Attribute => from(rng, &vocabulary.attributes),
        Kind::Value => {
            let here: Vec<&String> = tokens.iter().filter(|token| kind(token) == Kind::Value).collect();
            match rng.u8(0..8) {
                0 => from(rng, &vocabulary.values),
                _ => rng.choice(here).cloned().unwrap_or_default(),
            }
        }
        Kind::Symbol => {
            let here: Vec<&String> = tokens.iter().filter(|token| kind(token) == Kind::Symbol).collect();
            match rng.bool() {
                true => one_of(rng, SYMBOLS).to_owned(),
                false => rng.choice(here).cloned().unwrap_or_default(),
            }
        }
        Kind::Word => from(rng, &vocabulary.words),
        Kind::Mark => one_of(
            rng,
            &[
                "(", ")", "<", ">", "[", "]", "{", "}", ",", ":", "=", "->", "-", "*", "\"", "",
            ],
        )
        .to_owned(),
    }
}

/// Changes one dimension of `4x?xf32`, or the element.
fn shape(rng: &mut Rng, language: Language, token: &str) -> String {
    let mut parts: Vec<String> = token.split('x').map(str::to_owned).collect();
    let place = rng.usize(0..parts.len());
    if place + 1 == parts.len() {
        parts[place] = a_type(rng, language).to_owned();
    } else {
        match rng.u8(0..4) {
            0 => {
                parts.remove(place);
            }
            1 => parts.insert(place, "2".to_owned()),
            2 => parts[place] = "?".to_owned(),
            _ => parts[place] = one_of(rng, NUMBERS).to_owned(),
        }
    }
    parts.join("x")
}

/// Puts a token into as many brackets as no parser likes.
fn nested(rng: &mut Rng, language: Language, text: &str) -> String {
    let (open, close) = one_of(
        rng,
        match language {
            Language::LlvmIr => &[("[1 x ", "]"), ("{ ", " }"), ("(", ")"), ("!{", "}")][..],
            _ => &[
                ("tuple<", ">"),
                ("vector<1x", ">"),
                ("!llvm.array<1 x ", ">"),
                ("!llvm.struct<(", ")>"),
                ("[", "]"),
                ("{a = ", "}"),
                ("(", ")"),
                ("scf.execute_region {", "}"),
                ("-", ""),
            ],
        },
    );
    let levels = one_of(rng, &[3, 30, 300, 990, 3000, 100_000]);
    let mut tokens: Vec<String> = tokens(text).into_iter().map(str::to_owned).collect();
    if let Some(token) = rng.choice(&mut tokens) {
        *token = format!("{}{token}{}", open.repeat(levels), close.repeat(levels));
    }
    tokens.concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str =
        "gpu.func @k(%p: memref<4x?xf32>) kernel {\n  %c = arith.constant 1.0 : f32\n  gpu.return\n}\n";

    #[test]
    fn tokens_are_the_text() {
        for text in [KERNEL, "", "a", "é\u{2003}→ %é @\"x y\" ^bb0(?)"] {
            assert_eq!(tokens(text).concat(), text);
        }
        let kinds: Vec<Kind> = [
            "4x?xf32",
            "12",
            "f32",
            "arith.addf",
            "#gpu.x",
            "%a",
            "@f",
            "kernel",
            "{",
            "!llvm.ptr",
        ]
        .map(kind)
        .to_vec();
        use Kind::{Attribute, Mark, Number, Operation, Shape, Symbol, Type, Value, Word};
        assert_eq!(
            kinds,
            [
                Shape, Number, Type, Operation, Attribute, Value, Symbol, Word, Mark, Type
            ]
        );
    }

    #[test]
    fn the_same_generator_gives_the_same_damage() {
        let vocabulary = Vocabulary::of([KERNEL]);
        let damage = |seed| text(&mut Rng::with_seed(seed), Language::Mlir, KERNEL, KERNEL, &vocabulary);
        let first: Vec<String> = (0..200).map(damage).collect();
        let second: Vec<String> = (0..200).map(damage).collect();
        assert_eq!(first, second);
        let different: BTreeSet<&String> = first.iter().collect();
        assert!(different.len() > 100, "{}", different.len());
        let damage = |seed| bytes(&mut Rng::with_seed(seed), KERNEL.as_bytes(), b"other");
        assert_eq!(damage(3), damage(3));
    }

    #[test]
    fn a_type_is_changed_wherever_it_stands() {
        let changed = (0..1000)
            .map(|seed| everywhere(&mut Rng::with_seed(seed), Language::Mlir, KERNEL))
            .find(|text| text.contains(": bf16"))
            .expect("f32 becomes bf16 now and then");
        assert!(changed.contains("memref<4x?xbf16>"), "{changed}");
        assert!(!changed.contains("f32"), "{changed}");
    }

    #[test]
    fn damage_needs_no_text() {
        let vocabulary = Vocabulary::default();
        for seed in 0..500 {
            let mut rng = Rng::with_seed(seed);
            for language in [Language::Mlir, Language::LlvmIr, Language::Other] {
                text(&mut rng, language, "", "", &vocabulary);
            }
            bytes(&mut rng, b"", b"");
            bytes(&mut rng, b"x", b"");
        }
    }
}
