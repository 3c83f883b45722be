//! Negations that ptxas loses.
//!
//! Some chips have an instruction for the least and the greatest of three numbers, `VIMNMX3`, whose operands cannot be negated. ptxas
//! takes the negation of one for a part of it all the same: `max(max(a, -b), c)` becomes that of `a`, `b` and `c`. (Seen with ptxas
//! 13.0 at all levels, for sm_90, sm_100 and sm_103; wrong on an H200. Of numbers without a sign none is lost.) A complement to which
//! one is added is no negation for it.

use std::collections::{HashMap, HashSet};

/// Chips that have such instructions.
const CHIPS: [&str; 3] = [".target sm_90", ".target sm_100", ".target sm_103"];

/// Whether what is made for the chip of a text has such instructions.
pub(super) fn may_be_lost(text: &str) -> bool {
    text.lines()
        .find(|line| line.starts_with(".target"))
        .is_some_and(|line| {
            CHIPS.iter().any(|chip| {
                line.strip_prefix(chip)
                    .is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
            })
        })
}

/// The registers of a body that a minimum or maximum of numbers with a sign gets, also by way of other registers.
pub(super) fn compared(body: &str) -> HashSet<&str> {
    let mut moved: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut waiting = Vec::new();
    for line in body.lines() {
        let Some((opcode, operands)) = line
            .trim()
            .strip_suffix(';')
            .and_then(|line| line.split_once(char::is_whitespace))
        else {
            continue;
        };
        let mut operands = operands.split(',').map(str::trim);
        match opcode {
            "max.s32" | "min.s32" => waiting.extend(operands.skip(1)),
            "mov.b32" => {
                if let (Some(to), Some(from)) = (operands.next(), operands.next()) {
                    moved.entry(to).or_default().push(from);
                }
            }
            _ => {}
        }
    }
    let mut found = HashSet::new();
    while let Some(register) = waiting.pop() {
        if found.insert(register) {
            waiting.extend(moved.get(register).into_iter().flatten());
        }
    }
    found
}

/// Writes the negation of 32 bits that makes one of `registers` as a complement and an addition.
pub(super) fn as_complement(line: &str, registers: &HashSet<&str>) -> Option<String> {
    let (register, operand) = line
        .trim()
        .strip_prefix("neg.s32")?
        .strip_suffix(';')?
        .split_once(',')?;
    let (register, operand) = (register.trim(), operand.trim());
    registers
        .contains(register)
        .then(|| format!("\tnot.b32 \t{register}, {operand};\n\tadd.s32 \t{register}, {register}, 1;\n"))
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
            assert_eq!(
                may_be_lost(&format!(".version 8.6\n.target {chip}\n.address_size 64\n")),
                is,
                "{chip}"
            );
        }
        assert!(!may_be_lost(""));
    }

    #[test]
    fn what_is_compared_is_found_by_way_of_moves() {
        let body = "\tneg.s32 \t%r2, %r1;\n\tmov.b32 \t%r3, %r2;\n\tmov.b32 \t%r4, %r3;\n\tmov.b32 \t%r3, %r4;\n\tmax.s32 \t%r6, %r5, %r4;\n";
        let found = compared(body);
        for register in ["%r2", "%r3", "%r4", "%r5"] {
            assert!(found.contains(register), "{register}");
        }
        assert!(!found.contains("%r1") && !found.contains("%r6"));
    }

    #[test]
    fn negations_of_what_is_compared_are_complements() {
        let compared = HashSet::from(["%r2"]);
        assert_eq!(
            as_complement("\tneg.s32 \t%r2, %r1;\n", &compared).as_deref(),
            Some("\tnot.b32 \t%r2, %r1;\n\tadd.s32 \t%r2, %r2, 1;\n")
        );
        for other in [
            "\tneg.s32 \t%r3, %r2;\n",
            "\tneg.s64 \t%r2, %rd1;\n",
            "\tneg.f32 \t%r2, %r1;\n",
            "\tneg.s32 \n",
        ] {
            assert_eq!(as_complement(other, &compared), None);
        }
    }
}
