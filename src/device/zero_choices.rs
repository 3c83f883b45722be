//! Choices of floats between -0 and another constant.
//!
//! ptxas takes the result of `selp.f32` between -0 and a positive number for one without a sign, and drops an absolute value of it.
//! Between -0 and 1 it makes a comparison that has a float as its result (`FSET.BF`): 1 or 0, not -0. (Seen with ptxas 13.0, the
//! latter for sm_75 to sm_120, the former for sm_90.) Of `selp.b32` it does neither.

/// Chooses between the bits of -0 and another constant.
pub(super) fn by_bits(line: &str) -> Option<String> {
    let is_one = line.contains("selp.f32") && line.contains("0f80000000") && line.matches("0f").count() == 2;
    is_one.then(|| line.replace("selp.f32", "selp.b32").replace("0f", "0x"))
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
}
