//! Negations of 16 bits.
//!
//! For ptxas the result of `neg.s16` is never the least number, though that is what the least number gives: it negates in 32 bits,
//! and `shr.s16`, `cvt.s32.s16`, `div.s16` and their like read 32,768 where they should read -32,768. (Seen with ptxas 13.0 for
//! sm_90, at all levels.) Of `sub.u16` it assumes nothing.

/// Writes negations of 16 bits as differences without a sign.
pub(super) fn as_differences(text: String) -> String {
    const NEGATION: &str = "neg.s16 ";
    // Few texts have any.
    if !text.contains(NEGATION) {
        return text;
    }
    let mut pieces = text.split(NEGATION);
    let mut result = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once(", ") {
            Some((register, rest)) if !register.contains(['\n', ';']) => {
                result += "sub.u16 ";
                result += register;
                result += ", 0, ";
                result += rest;
            }
            _ => {
                result += NEGATION;
                result += piece;
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negations_of_16_bits_are_differences() {
        let text = "\tneg.s16 \t%rs2, %rs1;\n\tneg.s32 \t%r2, %r1;\n\tneg.s16 \t%rs4, %rs3;\n";
        let changed = "\tsub.u16 \t%rs2, 0, %rs1;\n\tneg.s32 \t%r2, %r1;\n\tsub.u16 \t%rs4, 0, %rs3;\n";
        assert_eq!(as_differences(text.to_owned()), changed);
        for other in ["", "// neg.s16 \n, a", "neg.s16 a;\nb, c"] {
            assert_eq!(as_differences(other.to_owned()), other);
        }
    }
}
