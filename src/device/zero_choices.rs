//! Choices of floats between -0 and 1.
//!
//! ptxas makes a comparison that has a float as its result (`FSET.BF`) of `selp.f32` between the two: 1 or 0, not -0. (Seen with
//! ptxas 13.0 for sm_75 to sm_120.) Of `selp.b32` it does not; between 0 and 1, `FSET.BF` is right.

/// Chooses between the bits of -0 and 1.
pub(super) fn by_bits(line: &str) -> Option<String> {
    let is_one = line.contains("selp.f32") && line.contains("0f80000000") && line.contains("0f3F800000");
    is_one.then(|| line.replace("selp.f32", "selp.b32").replace("0f", "0x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_between_minus_zero_and_one_alone_change() {
        assert_eq!(
            by_bits("\tselp.f32 \t%r2, 0f80000000, 0f3F800000, %p1;\n").as_deref(),
            Some("\tselp.b32 \t%r2, 0x80000000, 0x3F800000, %p1;\n")
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
