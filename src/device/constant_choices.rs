//! Choices between two constants that ptxas makes something else of.
//!
//! It takes the result of `selp.f32` between -0 and a positive number for one without a sign, and drops an absolute value of it.
//! Between -0 and 1 it makes a comparison that has a float as its result (`FSET.BF`): 1 or 0, not -0. (Seen with ptxas 13.0, the
//! latter for sm_75 to sm_120, the former for sm_90.) Of `selp.b32` it does neither.
//!
//! A choice between 1 and 0, or -1 and 0, is a truth value for it, and what converts, rounds, negates or multiplies that gets the
//! integer, not the float of these bits: `cvt.rni.f32.f32` of 1.4e-45 or 0 is 1.0 or 0. (Seen with ptxas 13.0 for sm_90, of 16 and 32
//! bits, where several conditions are joined; also where two such values are joined by `and` or `or` first.) It does not see that
//! through an exclusive or.

use std::collections::{HashMap, HashSet};

use super::ptx_lines::{divided, instruction, registers};

/// Chooses between the bits of -0 and another constant.
pub(super) fn by_bits(line: &str) -> Option<String> {
    let is_one = line.contains("selp.f32") && line.contains("0f80000000") && line.matches("0f").count() == 2;
    is_one.then(|| line.replace("selp.f32", "selp.b32").replace("0f", "0x"))
}

/// A choice between 1 or -1 and 0.
pub(super) struct TruthValue<'t> {
    opcode: &'t str,
    result: &'t str,
    constants: [&'t str; 2],
    predicate: &'t str,
}

impl<'t> TruthValue<'t> {
    pub(super) fn parse(line: &'t str) -> Option<Self> {
        let (opcode, operands) = instruction(line)?;
        if !["selp.b16", "selp.b32"].contains(&opcode) {
            return None;
        }
        let mut operands = operands.split(',').map(str::trim);
        let result = operands.next()?;
        let constants = [operands.next()?, operands.next()?];
        let predicate = operands.next()?;
        matches!(constants, ["1" | "-1", "0"] | ["0", "1" | "-1"]).then_some(Self {
            opcode,
            result,
            constants,
            predicate,
        })
    }

    /// The same with other constants and an exclusive or, if the result is among the bits of floats.
    pub(super) fn as_bits(&self, floats: &HashSet<&str>) -> Option<String> {
        if !floats.contains(self.result) {
            return None;
        }
        let (mask, all) = if self.opcode == "selp.b16" {
            (0x8000_u32, 0xFFFF)
        } else {
            (0x8000_0000, u32::MAX)
        };
        let [first, second] = self.constants.map(|constant| match constant {
            "1" => mask + 1,
            "-1" => all - mask,
            _ => mask,
        });
        let Self {
            opcode,
            result,
            predicate,
            ..
        } = self;
        let exclusive = opcode.replace("selp", "xor");
        Some(format!(
            "\t{opcode} \t{result}, {first:#X}, {second:#X}, {predicate};\n\t{exclusive} \t{result}, {result}, {mask:#X};\n"
        ))
    }
}

/// Registers of a body that floating-point instructions convert, negate or multiply, also by way of other registers.
pub(super) fn bits_of_floats(body: &str) -> HashSet<&str> {
    let mut made_of: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut waiting = Vec::new();
    for (opcode, operands) in body.lines().filter_map(instruction) {
        let Some((to, from)) = divided(operands) else { continue };
        let operation = opcode.split('.').next().unwrap_or_default();
        let source = opcode.rsplit('.').next().unwrap_or_default();
        match operation {
            "cvt" | "neg" | "abs" | "mul" if ["f32", "f16", "bf16"].contains(&source) => {
                waiting.extend(registers(from))
            }
            "mov" | "cvt" | "and" | "or" => {
                for register in registers(to) {
                    made_of.entry(register).or_default().extend(registers(from));
                }
            }
            _ => {}
        }
    }
    let mut found = HashSet::new();
    while let Some(register) = waiting.pop() {
        if found.insert(register) {
            waiting.extend(made_of.get(register).into_iter().flatten());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_between_minus_zero_and_a_constant_alone_change() {
        assert_eq!(
            by_bits("\tselp.f32 \t%r2, 0f80000000, 0f3F800000, %p1;\n").as_deref(),
            Some("\tselp.b32 \t%r2, 0x80000000, 0x3F800000, %p1;\n")
        );
        assert_eq!(
            by_bits("\tselp.f32 \t%r4, 0f40A6D814, 0f80000000, %p1;\n").as_deref(),
            Some("\tselp.b32 \t%r4, 0x40A6D814, 0x80000000, %p1;\n")
        );
        for other in [
            "\tselp.f32 \t%r2, 0f3F800000, 0f00000000, %p1;\n",
            "\tselp.f32 \t%r2, %r3, 0f80000000, %p1;\n",
            "\tsetp.lt.f32 \t%p1, %r1, 0f80000000;\n",
        ] {
            assert_eq!(by_bits(other), None);
        }
    }

    #[test]
    fn truth_values_whose_bits_are_a_float_become_an_exclusive_or() {
        let body = "\tselp.b16 \t%rs1, -1, 0, %p1;\n\tcvt.u32.u16 \t%r1, %rs1;\n\tmov.b32 \t%r2, %r1;\n\tneg.f32 \t%r3, %r2;\n\
                    \tmov.b32 \t{%rs2, _}, %r10;\n\tcvt.f32.f16 \t%r11, %rs2;\n\tor.b32 \t%r14, %r12, %r13;\n\tabs.f32 \t%r15, %r14;\n\
                    \tcvt.rn.f32.s32 \t%r5, %r4;\n\tadd.rn.f32 \t%r7, %r6, %r6;\n\tcvt.rni.f32.f32 \t%r9, %r8;\n";
        let floats = bits_of_floats(body);
        let changed = |line: &str| TruthValue::parse(line).and_then(|one| one.as_bits(&floats));
        assert_eq!(
            changed("\tselp.b16 \t%rs1, -1, 0, %p1;\n").as_deref(),
            Some("\tselp.b16 \t%rs1, 0x7FFF, 0x8000, %p1;\n\txor.b16 \t%rs1, %rs1, 0x8000;\n")
        );
        assert_eq!(
            changed("\tselp.b32 \t%r8, 0, 1, %p2;\n").as_deref(),
            Some("\tselp.b32 \t%r8, 0x80000000, 0x80000001, %p2;\n\txor.b32 \t%r8, %r8, 0x80000000;\n")
        );
        for register in ["%r10", "%r12", "%r13"] {
            assert!(
                changed(&format!("\tselp.b32 \t{register}, 1, 0, %p1;\n")).is_some(),
                "{register}"
            );
        }
        for other in [
            "\tselp.b32 \t%r4, 1, 0, %p1;\n",
            "\tselp.b32 \t%r6, 1, 0, %p1;\n",
            "\tselp.b32 \t%r8, 2, 0, %p1;\n",
            "\tselp.b64 \t%r8, 1, 0, %p1;\n",
        ] {
            assert_eq!(changed(other), None, "{other}");
        }
    }
}
