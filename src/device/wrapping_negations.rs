//! Negations of 16 bits.
//!
//! For ptxas the result of `neg.s16` is never the least number, though that is what the least number gives: it negates in 32 bits,
//! and `shr.s16`, `cvt.s32.s16`, `div.s16` and their like read 32,768 where they should read -32,768. (Seen with ptxas 13.0 for
//! sm_90, at all levels.) Of `sub.u16` it assumes nothing.

/// Writes a negation of 16 bits as a difference without a sign.
pub(super) fn as_difference(line: &str) -> Option<String> {
    let (before, operands) = line.split_once("neg.s16 ")?;
    let (register, operand) = operands.split_once(", ")?;
    Some(format!("{before}sub.u16 {register}, 0, {operand}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negations_of_16_bits_are_differences() {
        assert_eq!(
            as_difference("\tneg.s16 \t%rs2, %rs1;\n").as_deref(),
            Some("\tsub.u16 \t%rs2, 0, %rs1;\n")
        );
        for other in ["\tneg.s32 \t%r2, %r1;\n", "\tneg.s16 \n"] {
            assert_eq!(as_difference(other), None);
        }
    }
}
