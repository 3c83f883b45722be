//! Negations that ptxas loses.
//!
//! Some chips have an instruction for the least and the greatest of three numbers, `VIMNMX3`, whose operands cannot be negated. ptxas
//! takes the negation of one for a part of it all the same: `max(max(a, -b), c)` becomes that of `a`, `b` and `c`. (Seen with ptxas
//! 13.0 at all levels, for sm_90, sm_100 and sm_103; wrong on an H200. Of numbers without a sign none is lost.) A difference from what
//! ptxas knows to be zero is a negation for it, a complement to which one is added is none.

use std::collections::{HashMap, HashSet};

/// Chips that have such instructions.
const CHIPS: [&str; 3] = [".target sm_90", ".target sm_100", ".target sm_103"];

/// Whether what is made for the chip of a text has such instructions.
pub(super) fn may_be_lost(text: &str) -> bool {
    let is_one = |line: &str| {
        CHIPS.iter().any(|chip| {
            line.strip_prefix(chip)
                .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        })
    };
    text.lines()
        .find(|line| line.starts_with(".target"))
        .is_some_and(is_one)
}

/// What a body does with registers, as far as a negation may come from it or be lost in it.
pub(super) struct Registers<'t> {
    /// What a minimum or maximum of numbers with a sign gets, also by way of other registers.
    compared: HashSet<&'t str>,
    /// What ptxas may know to be zero: constants, and the id of a thread in a block of one row.
    zeros: HashSet<&'t str>,
}

impl<'t> Registers<'t> {
    pub(super) fn of(body: &'t str) -> Self {
        // By what is moved to it, in whole or in part.
        let mut moved: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut computed = HashSet::new();
        let mut waiting = Vec::new();
        for (opcode, operands) in body.lines().filter_map(instruction) {
            let Some((to, from)) = divided(operands) else { continue };
            if opcode.starts_with("mov.") {
                for register in registers(to) {
                    moved.entry(register).or_default().extend(registers(from));
                }
                continue;
            }
            computed.extend(registers(to));
            if ["max.s32", "min.s32"].contains(&opcode) {
                waiting.extend(registers(from));
            }
        }
        let mut compared = HashSet::new();
        while let Some(register) = waiting.pop() {
            if compared.insert(register) {
                waiting.extend(moved.get(register).into_iter().flatten());
            }
        }
        let is_zero = |from: &Vec<&str>| from.iter().all(|from| ["0", "%tid.y", "%tid.z"].contains(from));
        let zeros = moved
            .iter()
            .filter(|(to, from)| !computed.contains(*to) && is_zero(from))
            .map(|(to, _)| *to);
        Self {
            zeros: zeros.collect(),
            compared,
        }
    }

    /// Writes a negation or a difference of 32 bits that is compared, and may be lost, as a complement and additions.
    pub(super) fn as_complement(&self, line: &str) -> Option<String> {
        let (opcode, operands) = instruction(line)?;
        let (result, operands) = divided(operands)?;
        let (from, operand) = match opcode {
            "neg.s32" => (None, operands),
            "sub.s32" => {
                let (from, operand) = divided(operands)?;
                (Some(from).filter(|from| *from != "0"), operand)
            }
            _ => return None,
        };
        let may_be_lost = from.is_none_or(|from| self.zeros.contains(from));
        if !may_be_lost || !self.compared.contains(result) {
            return None;
        }
        let difference = from
            .map(|from| format!("add.s32 %not, %not, {from}; "))
            .unwrap_or_default();
        Some(format!(
            "\t{{ .reg .b32 %not; not.b32 %not, {operand}; {difference}add.s32 \t{result}, %not, 1; }}\n"
        ))
    }
}

/// The opcode and the operands of a line with one instruction that has no predicate.
fn instruction(line: &str) -> Option<(&str, &str)> {
    let (opcode, operands) = line.trim().strip_suffix(';')?.split_once(char::is_whitespace)?;
    Some((opcode, operands.trim()))
}

/// The first of several operands, which may be several registers in braces, and the others.
fn divided(operands: &str) -> Option<(&str, &str)> {
    let end = if operands.starts_with('{') {
        operands.find('}')?
    } else {
        0
    };
    let (first, others) = operands.split_at(end + operands.get(end..)?.find(',')?);
    Some((first.trim(), others.strip_prefix(',')?.trim()))
}

/// The registers and numbers among operands.
fn registers(operands: &str) -> impl Iterator<Item = &str> {
    operands
        .split([',', '{', '}', ' '])
        .filter(|operand| !operand.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chips_with_the_instruction_lose_negations() {
        for (chip, is) in [
            ("sm_90", true),
            ("sm_90a", true),
            ("sm_100f", true),
            ("sm_103", true),
            ("sm_89", false),
            ("sm_120", false),
        ] {
            let text = format!(".version 8.6\n.target {chip}\n.address_size 64\n");
            assert_eq!(may_be_lost(&text), is, "{chip}");
        }
        assert!(!may_be_lost(""));
    }

    #[test]
    fn what_is_compared_is_found_by_way_of_moves() {
        let body = "\tneg.s32 \t%r2, %r1;\n\tmov.b32 \t%r3, %r2;\n\tmov.b64 \t%rd1, {%r3, %r8};\n\tmov.b64 \t%rd2, %rd1;\n\
                    \tmov.b64 \t{%r9, %r4}, %rd2;\n\tmov.b32 \t%r3, %r4;\n\tmax.s32 \t%r6, %r5, %r4;\n";
        let found = Registers::of(body).compared;
        for register in ["%r2", "%r3", "%r4", "%r5", "%r8", "%rd1"] {
            assert!(found.contains(register), "{register}");
        }
        assert!(!found.contains("%r1") && !found.contains("%r6") && !found.contains("%r9"));
    }

    #[test]
    fn negations_of_what_is_compared_are_complements() {
        let body = "\tmov.u32 \t%r7, %tid.y;\n\tmov.b32 \t%r8, 0;\n\tmov.b32 \t%r9, 0;\n\tmov.b32 \t%r9, %r6;\n\tmov.b32 \t%r10, 0;\n\
                    \tadd.s32 \t%r10, %r10, 1;\n\tmin.s32 \t%r3, %r2, 5;\n";
        let registers = Registers::of(body);
        let changed = |line: &str| registers.as_complement(&format!("\t{line};\n"));
        assert_eq!(
            changed("neg.s32 \t%r2, %r1").as_deref(),
            Some("\t{ .reg .b32 %not; not.b32 %not, %r1; add.s32 \t%r2, %not, 1; }\n")
        );
        assert_eq!(changed("sub.s32 \t%r2, 0, %r1"), changed("neg.s32 \t%r2, %r1"));
        assert_eq!(
            changed("sub.s32 \t%r2, %r7, %r1").as_deref(),
            Some("\t{ .reg .b32 %not; not.b32 %not, %r1; add.s32 %not, %not, %r7; add.s32 \t%r2, %not, 1; }\n")
        );
        assert!(changed("sub.s32 \t%r2, %r8, %r1").is_some());
        for other in [
            "neg.s32 \t%r3, %r2",
            "neg.s64 \t%r2, %rd1",
            "neg.f32 \t%r2, %r1",
            "neg.s32",
            "sub.s32 \t%r2, %r6, %r1",
            "sub.s32 \t%r2, %r9, %r1",
            "sub.s32 \t%r2, %r10, %r1",
            "sub.s32 \t%r3, %r7, %r1",
        ] {
            assert_eq!(changed(other), None, "{other}");
        }
    }
}
