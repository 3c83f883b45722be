//! Stores of the low part of a register that holds a float.
//!
//! LLVM's NVPTX back end declares registers by size alone, and lets a store take a register that is wider than what it
//! stores: `st.global.b32 [%rd1], %rd2` for the low half of an `i64`. Where an instruction on floats made that register
//! (`add.rn.f64 %rd2, ...`, and the `i64` is its bits), ptxas takes the register for a float and *converts* it: machine code
//! has an `F2I`, and memory the integer part in place of the bits. (Seen with ptxas 13.0, all chips, all levels; PTX ISA,
//! "Operand Size Exceeding Instruction-Type Size", wants equal sizes for float registers.) A `mov` to a register of its own
//! says that bits are meant. It costs no instruction.

use std::collections::HashSet;

/// The registers of a body that instructions on floats make.
pub(super) fn floats(body: &str) -> HashSet<&str> {
    body.lines()
        .filter_map(Instruction::parse)
        .flat_map(|one| one.floats())
        .collect()
}

/// A store of parts of registers goes through registers without a type, in a scope of its own, if some are floats.
pub(super) fn through_untyped_registers(line: &str, floats: &HashSet<&str>) -> Option<String> {
    let mut narrowed = Instruction::parse(line)?.narrowed();
    narrowed.retain(|register| floats.contains(register));
    let (mut moves, mut store) = (String::new(), line.trim().to_owned());
    for (number, register) in narrowed.into_iter().enumerate() {
        let bits = Class::of(register)?.bits;
        moves += &format!(".reg .b{bits} %low{number}; mov.b{bits} %low{number}, {register}; ");
        store = with_register(&store, register, &format!("%low{number}"));
    }
    (!moves.is_empty()).then(|| format!("\t{{ {moves}{store} }}\n"))
}

/// Registers of one size, as LLVM names them (`NVPTXRegisterInfo.cpp`).
#[derive(Clone, Copy)]
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
