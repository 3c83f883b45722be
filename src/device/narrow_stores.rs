//! Stores of the low part of a register that holds a float.
//!
//! LLVM's NVPTX back end declares registers by size alone, and lets a store take a register that is wider than what it
//! stores: `st.global.b32 [%rd1], %rd2` for the low half of an `i64`. Where an instruction on floats made that register
//! (`add.rn.f64 %rd2, ...`, and the `i64` is its bits), ptxas takes the register for a float and *converts* it: machine code
//! has an `F2I`, and memory the integer part in place of the bits. (Seen with ptxas 13.0, all chips, all levels; PTX ISA,
//! "Operand Size Exceeding Instruction-Type Size", wants equal sizes for float registers.) A `mov` to a register of its own
//! says that bits are meant. It costs no instruction.

use std::{collections::HashSet, ops::Range};

use super::for_ptxas::Edit;

/// Makes the narrow stores of a body go through registers without a type, where they are of float registers.
pub(super) fn through_untyped_registers(text: &str, body: Range<usize>, stores: &[Range<usize>]) -> Vec<Edit> {
    // Few bodies have any.
    match text.get(body.clone()) {
        Some(lines) if !stores.is_empty() => changed(text, lines, body.start, stores).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn changed(text: &str, body: &str, start: usize, stores: &[Range<usize>]) -> Option<Vec<Edit>> {
    let floats: HashSet<&str> = body
        .lines()
        .filter_map(Instruction::parse)
        .flat_map(|one| one.floats())
        .collect();
    let mut edits = Vec::new();
    let mut spare = Spare::default();
    for range in stores {
        let line = text.get(range.clone())?;
        let (mut moves, mut store) = (String::new(), line.to_owned());
        for register in Instruction::parse(line)?.narrowed() {
            if floats.contains(register) {
                let (class, new) = spare.like(register, body)?;
                moves += &format!("\tmov.b{} \t{new}, {register};\n", class.bits);
                store = with_register(&store, register, &new);
            }
        }
        if !moves.is_empty() {
            edits.push(Edit {
                range: range.clone(),
                text: moves + &store,
            });
        }
    }
    edits.extend(spare.declarations(start));
    Some(edits)
}

/// Registers of one size, as LLVM names them (`NVPTXRegisterInfo.cpp`).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Class {
    prefix: &'static str,
    bits: u32,
}

const CLASSES: [Class; 3] = [
    Class {
        prefix: "%rd",
        bits: 64,
    },
    Class {
        prefix: "%rs",
        bits: 16,
    },
    Class { prefix: "%r", bits: 32 },
];

impl Class {
    fn of(register: &str) -> Option<Self> {
        CLASSES.into_iter().find(|class| {
            let number = register.strip_prefix(class.prefix);
            number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
        })
    }

    /// Where a body says how many registers there are, and how many.
    fn count(self, body: &str) -> Option<(Range<usize>, usize)> {
        let declaration = format!(".reg .b{} \t{}<", self.bits, self.prefix);
        let start = body.find(&declaration)? + declaration.len();
        let (count, _) = body.get(start..)?.split_once('>')?;
        Some((start..start + count.len(), count.parse().ok()?))
    }
}

/// One more register for each narrow store.
#[derive(Default)]
struct Spare {
    /// Of each class, where the body says how many it has, and how many it has now.
    classes: Vec<(Class, Range<usize>, usize)>,
}

impl Spare {
    fn like(&mut self, register: &str, body: &str) -> Option<(Class, String)> {
        let class = Class::of(register)?;
        let at = match self.classes.iter().position(|(known, ..)| *known == class) {
            Some(at) => at,
            None => {
                let (range, count) = class.count(body)?;
                self.classes.push((class, range, count));
                self.classes.len() - 1
            }
        };
        let (.., count) = self.classes.get_mut(at)?;
        *count += 1;
        Some((class, format!("{}{}", class.prefix, *count - 1)))
    }

    fn declarations(self, start: usize) -> impl Iterator<Item = Edit> {
        self.classes.into_iter().map(move |(_, range, count)| Edit {
            range: range.start + start..range.end + start,
            text: count.to_string(),
        })
    }
}

/// A line with one instruction.
pub(super) struct Instruction<'t> {
    /// `st.global.b32`, without a predicate.
    opcode: &'t str,
    operands: &'t str,
}

impl<'t> Instruction<'t> {
    pub(super) fn parse(line: &'t str) -> Option<Self> {
        let mut text = line.trim().strip_suffix(';')?;
        if text.starts_with('@') {
            text = text.split_once(char::is_whitespace)?.1.trim_start();
        }
        if text.contains(';') {
            return None;
        }
        let (opcode, operands) = text.split_once(char::is_whitespace)?;
        Some(Self {
            opcode,
            operands: operands.trim_start(),
        })
    }

    /// Whether it stores a part of a register.
    pub(super) fn is_narrow_store(&self) -> bool {
        !self.narrowed().is_empty()
    }

    /// The registers that it makes as floats.
    fn floats(&self) -> Vec<&'t str> {
        let mut types = self.opcode.split('.').filter(|part| is_type(part));
        // The first type of a conversion is the result's.
        let makes_floats = match self.opcode.starts_with("cvt.") {
            true => types.next().is_some_and(is_float),
            false => types.any(is_float),
        };
        if !makes_floats || self.opcode.starts_with("st.") {
            return Vec::new();
        }
        let result = match self.operands.strip_prefix('{') {
            Some(several) => several.split('}').next(),
            None => self.operands.split(',').next(),
        };
        registers(result.unwrap_or_default())
    }

    /// The registers of which it stores a part.
    fn narrowed(&self) -> Vec<&'t str> {
        if !self.opcode.starts_with("st.") {
            return Vec::new();
        }
        let stored = self
            .opcode
            .split('.')
            .next_back()
            .and_then(|part| part.get(1..)?.parse::<u32>().ok());
        let (Some(bits), Some((_, values))) = (stored, self.operands.split_once("],")) else {
            return Vec::new();
        };
        let mut narrowed = registers(values);
        narrowed.retain(|register| Class::of(register).is_some_and(|class| class.bits > bits));
        narrowed.sort_unstable();
        narrowed.dedup();
        narrowed
    }
}

/// The registers in a list of operands.
fn registers(operands: &str) -> Vec<&str> {
    let words = operands.split([',', '{', '}', ' ', '\t', '[', ']', '|', '+']);
    words.filter(|word| Class::of(word).is_some()).collect()
}

/// The line with one register, where it is a whole word, replaced in what is stored.
fn with_register(line: &str, register: &str, new: &str) -> String {
    let Some((address, values)) = line.split_once("],") else {
        return line.to_owned();
    };
    let mut changed = format!("{address}],");
    let mut rest = values;
    while let Some(at) = rest.find(register) {
        let end = at + register.len();
        let is_whole = !rest[end..].starts_with(|next: char| next.is_ascii_digit());
        changed += &rest[..at];
        changed += if is_whole { new } else { register };
        rest = &rest[end..];
    }
    changed + rest
}

fn is_type(part: &str) -> bool {
    let digits = part.trim_start_matches(|letter: char| letter.is_ascii_lowercase());
    digits.len() < part.len() && digits.starts_with(|first: char| first.is_ascii_digit())
}

fn is_float(part: &str) -> bool {
    part.starts_with('f') || part.starts_with("bf") || part.starts_with("tf")
}
