//! Stores of the low part of a register that holds a float.
//!
//! LLVM's NVPTX back end declares registers by size alone, and lets a store take a register that is wider than what it
//! stores: `st.global.b32 [%rd1], %rd2` for the low half of an `i64`. Where an instruction on floats made that register
//! (`add.rn.f64 %rd2, ...`, and the `i64` is its bits), ptxas takes the register for a float and *converts* it: machine code
//! has an `F2I`, and memory the integer part in place of the bits. (Seen with ptxas 13.0, all chips, all levels; PTX ISA,
//! "Operand Size Exceeding Instruction-Type Size", wants equal sizes for float registers.) A `mov` to a register of its own
//! says that bits are meant. It costs no instruction.

use std::collections::HashSet;

/// Makes narrow stores of float registers go through a register without a type.
pub(super) fn through_untyped_registers(text: String) -> String {
    let mut result = String::new();
    let mut rest = text.as_str();
    // A body is between lines of one brace.
    while let Some(start) = rest.find("\n{\n") {
        let (before, body_and_rest) = rest.split_at(start + 3);
        let end = body_and_rest.find("\n}\n").map_or(body_and_rest.len(), |end| end + 1);
        let (body, after) = body_and_rest.split_at(end);
        result += before;
        result += changed_body(body).as_deref().unwrap_or(body);
        rest = after;
    }
    if result.is_empty() {
        return text;
    }
    result + rest
}

/// The body of a function, if a store in it has to change.
fn changed_body(body: &str) -> Option<String> {
    // Few bodies have any.
    let is_narrow =
        |line: &str| line.contains("st.") && Instruction::parse(line).is_some_and(|one| !one.narrowed().is_empty());
    if !body.lines().any(is_narrow) {
        return None;
    }
    let floats: HashSet<&str> = body
        .lines()
        .filter_map(Instruction::parse)
        .flat_map(|one| one.floats())
        .collect();
    let narrow = |line| {
        let store = Instruction::parse(line)?;
        let stored: Vec<&str> = store
            .narrowed()
            .into_iter()
            .filter(|register| floats.contains(register))
            .collect();
        (!stored.is_empty()).then_some(stored)
    };
    if floats.is_empty() || !body.lines().any(|line| narrow(line).is_some()) {
        return None;
    }
    let mut spare = Spare::default();
    let mut changed = String::new();
    for line in body.lines() {
        let mut store = line.to_owned();
        for register in narrow(line).unwrap_or_default() {
            let (class, new) = spare.like(register, body)?;
            changed += &format!("\tmov.b{} \t{new}, {register};\n", class.bits);
            store = with_register(&store, register, &new);
        }
        changed += &store;
        changed.push('\n');
    }
    Some(spare.declared(&changed))
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

    /// Where a body says how many there are: the text around the number.
    fn declaration(self) -> String {
        format!(".reg .b{} \t{}<", self.bits, self.prefix)
    }

    fn count(self, body: &str) -> Option<usize> {
        let declaration = self.declaration();
        let (_, after) = body.split_once(&declaration)?;
        after.split_once('>')?.0.parse().ok()
    }
}

/// One more register for each narrow store.
#[derive(Default)]
struct Spare {
    /// What was taken of each class, and how many the body had.
    taken: Vec<(Class, usize, usize)>,
}

impl Spare {
    fn like(&mut self, register: &str, body: &str) -> Option<(Class, String)> {
        let class = Class::of(register)?;
        let at = match self.taken.iter().position(|(taken, ..)| *taken == class) {
            Some(at) => at,
            None => {
                self.taken.push((class, 0, class.count(body)?));
                self.taken.len() - 1
            }
        };
        let (_, taken, had) = self.taken.get_mut(at)?;
        let new = format!("{}{}", class.prefix, *had + *taken);
        *taken += 1;
        Some((class, new))
    }

    fn declared(&self, body: &str) -> String {
        let mut body = body.to_owned();
        for (class, taken, had) in &self.taken {
            let declaration = class.declaration();
            body = body.replacen(
                &format!("{declaration}{had}>"),
                &format!("{declaration}{}>", had + taken),
                1,
            );
        }
        body
    }
}

/// A line with one instruction.
struct Instruction<'t> {
    /// `st.global.b32`, without a predicate.
    opcode: &'t str,
    operands: &'t str,
}

impl<'t> Instruction<'t> {
    fn parse(line: &'t str) -> Option<Self> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn body(lines: &str) -> String {
        format!(
            ".visible .entry k()\n{{\n\t.reg .b16 \t%rs<4>;\n\t.reg .b32 \t%r<5>;\n\t.reg .b64 \t%rd<9>;\n\n{lines}\tret;\n}}\n"
        )
    }

    #[test]
    fn the_low_half_of_a_float_is_moved_first() {
        let changed = through_untyped_registers(body(
            "\tselp.f64 \t%rd4, %rd3, 0d0000000000000000, %p1;\n\tst.global.b32 \t[%rd4+4], %rd4;\n",
        ));
        assert!(changed.contains(".reg .b64 \t%rd<10>;"), "{changed}");
        assert!(
            changed.contains("\tmov.b64 \t%rd9, %rd4;\n\tst.global.b32 \t[%rd4+4], %rd9;\n"),
            "{changed}"
        );
    }

    #[test]
    fn so_is_what_a_block_further_down_makes_and_what_is_stored_in_vectors() {
        let changed = through_untyped_registers(body(
            "\t@%p1 st.shared.v2.b8 \t[%r1], {%rs1, %rs11};\n\tadd.rn.f16 \t%rs1, %rs2, %rs3;\n",
        ));
        assert!(
            changed.contains("\tmov.b16 \t%rs4, %rs1;\n\t@%p1 st.shared.v2.b8 \t[%r1], {%rs4, %rs11};\n"),
            "{changed}"
        );
        assert!(changed.contains("%rs<5>"), "{changed}");
    }

    #[test]
    fn integers_and_whole_floats_are_left_alone() {
        for lines in [
            "\tadd.s64 \t%rd4, %rd3, 1;\n\tst.global.b32 \t[%rd2], %rd4;\n",
            "\tadd.rn.f64 \t%rd4, %rd3, %rd3;\n\tst.global.b64 \t[%rd2], %rd4;\n",
            "\tcvt.rzi.s64.f64 \t%rd4, %rd3;\n\tst.global.b32 \t[%rd2], %rd4;\n",
            "\tadd.rn.f64 \t%rd2, %rd3, %rd3;\n\tst.global.b32 \t[%rd2], %rd4;\n",
            "\tsetp.lt.f64 \t%p4, %rd3, %rd3;\n\tst.global.b32 \t[%rd2], %rd4;\n",
        ] {
            assert_eq!(through_untyped_registers(body(lines)), body(lines));
        }
    }

    #[test]
    fn registers_are_of_one_body() {
        let first = body("\tadd.rn.f64 \t%rd4, %rd3, %rd3;\n");
        let second = body("\tst.global.b32 \t[%rd2], %rd4;\n");
        let text = format!("{first}{second}");
        assert_eq!(through_untyped_registers(text.clone()), text);
    }
}
