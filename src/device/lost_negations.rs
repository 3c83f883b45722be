//! Negations that ptxas loses.
//!
//! Some chips have an instruction for the least and the greatest of three numbers, `VIMNMX3`, whose operands cannot be negated. ptxas
//! takes the negation of one for a part of it all the same: `max(max(a, -b), c)` becomes that of `a`, `b` and `c`. (Seen with ptxas
//! 13.0 from its first level on, for sm_90, sm_100 and sm_103; wrong on an H200. Of numbers without a sign none is lost.) A difference from what
//! ptxas knows to be zero is a negation for it, a complement to which one is added is none.

use std::collections::{HashMap, HashSet};

use super::ptx_lines::{divided, instruction, registers};

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
    /// What ptxas knows to be zero, in a block of one row as well.
    zeros: HashSet<&'t str>,
}

impl<'t> Registers<'t> {
    pub(super) fn of(body: &'t str) -> Self {
        let mut definitions: HashMap<&str, Vec<Definition<'_>>> = HashMap::new();
        for (opcode, operands) in body.lines().filter_map(instruction) {
            let Some((to, from)) = divided(operands) else { continue };
            for register in registers(to) {
                let from = registers(from).collect();
                definitions
                    .entry(register)
                    .or_default()
                    .push(Definition { opcode, from });
            }
        }
        Self {
            compared: compared(body, &definitions),
            zeros: zeros(&definitions),
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

/// One of the instructions that write a register.
struct Definition<'t> {
    opcode: &'t str,
    from: Vec<&'t str>,
}

impl Definition<'_> {
    /// Whether the result is zero, if it is known which operands are.
    fn is_zero(&self, is_zero: impl Fn(&str) -> bool) -> bool {
        let mut zeros = self.from.iter().map(|operand| is_zero(operand));
        match self.opcode.split('.').next() {
            Some("mov" | "cvt" | "add" | "or" | "sub" | "neg") => zeros.all(|zero| zero),
            Some("shl" | "shr") => zeros.next() == Some(true),
            Some("mul" | "and") => zeros.any(|zero| zero),
            Some("mad") => self.from.last().is_some_and(|last| is_zero(last)) && zeros.take(2).any(|zero| zero),
            _ => false,
        }
    }
}

/// The operands of minima and maxima, those of inline assembly too, and what is moved to them, in whole or in part.
fn compared<'t>(body: &'t str, definitions: &HashMap<&'t str, Vec<Definition<'t>>>) -> HashSet<&'t str> {
    let mut waiting = Vec::new();
    for piece in body.split([';', '{', '}', '\n']) {
        let mut words = piece.split([',', ' ', '\t']).filter(|word| !word.is_empty());
        if words.any(|word| ["max.s32", "min.s32"].contains(&word)) {
            // The first is the result.
            waiting.extend(words.skip(1));
        }
    }
    let mut found = HashSet::new();
    while let Some(register) = waiting.pop() {
        if found.insert(register) {
            let made = definitions.get(register).into_iter().flatten();
            waiting.extend(
                made.filter(|one| one.opcode.starts_with("mov."))
                    .flat_map(|one| &one.from),
            );
        }
    }
    found
}

/// Registers that are zero whichever instruction has written them.
fn zeros<'t>(definitions: &HashMap<&'t str, Vec<Definition<'t>>>) -> HashSet<&'t str> {
    let mut found = HashSet::from(["0", "%tid.y", "%tid.z"]);
    loop {
        let is_zero =
            |made: &Vec<Definition<'_>>| made.iter().all(|one| one.is_zero(|operand| found.contains(operand)));
        let more = definitions
            .iter()
            .filter(|(register, made)| !found.contains(*register) && is_zero(made));
        let more: Vec<&str> = more.map(|(register, _)| *register).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
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
    fn inline_assembly_compares_too() {
        let body = "\t// begin inline asm\n\t{.reg .b32 t; max.s32 t,%r1,\t%r2;\n@%p1 min.s32\t%r3, t, %r4;}\n\t// end inline asm\n";
        let found = Registers::of(body).compared;
        assert!(["%r1", "%r2", "%r4"].iter().all(|register| found.contains(register)));
    }

    #[test]
    fn what_is_computed_of_zero_is_zero() {
        let body = "\tmov.u32 \t%r1, %tid.y;\n\tshl.b32 \t%r2, %r1, 2;\n\tmul.lo.s32 \t%r3, %r2, %r9;\n\tmad.lo.s32 \t%r4, %r9, %r3, %r1;\n\
                    \tadd.s32 \t%r5, %r4, 1;\n\tmad.lo.s32 \t%r6, %r1, %r1, %r9;\n\tmov.b32 \t%r7, 0;\n\tadd.s32 \t%r7, %r7, 1;\n";
        let found = Registers::of(body).zeros;
        for (register, is) in [
            ("%r2", true),
            ("%r3", true),
            ("%r4", true),
            ("%r5", false),
            ("%r6", false),
            ("%r7", false),
        ] {
            assert_eq!(found.contains(register), is, "{register}");
        }
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
