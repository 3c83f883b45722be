//! Minima and maxima of 16 bits, in 32.
//!
//! For sm_90 and later, ptxas makes one instruction of a `max.u16` and a comparison of its result with an operand: `VIMNMX.U16x2
//! R0, P0, P0`, which computes with both halves of a register and writes what it says of the upper half over what it says of
//! the lower one. So `max(x, 2) == 2` holds whatever `x` is. (Seen with ptxas 13.0 for `min` and `max` of `u16` and `s16`;
//! right on an H200 with 32 bits.) Of pairs, `max.u16x2`, there are no such comparisons.

/// Computes a minimum or maximum of single numbers of 16 bits with 32.
pub(super) fn widened(line: &str) -> Option<String> {
    Extreme::parse(line).map(|extreme| extreme.widened())
}

/// One instruction, such as `max.u16 %rs3, %rs2, 2`.
struct Extreme<'t> {
    name: &'t str,
    sign: &'t str,
    operands: [&'t str; 3],
}

impl<'t> Extreme<'t> {
    fn parse(line: &'t str) -> Option<Self> {
        let (opcode, operands) = line.trim().strip_suffix(';')?.split_once(char::is_whitespace)?;
        let (name, ty) = opcode.split_once('.')?;
        let sign = ty.strip_suffix("16")?;
        let mut operands = operands.split(',').map(str::trim);
        let three = [operands.next()?, operands.next()?, operands.next()?];
        let known = ["min", "max"].contains(&name) && ["s", "u"].contains(&sign) && operands.next().is_none();
        known.then_some(Self {
            name,
            sign,
            operands: three,
        })
    }

    /// In a scope with registers of its own.
    fn widened(&self) -> String {
        let Self { name, sign, operands } = self;
        let [result, first, second] = operands;
        let load = |number: u32, operand: &str| match operand.parse::<i64>() {
            // LLVM writes constants of both kinds with a sign.
            Ok(constant) if *sign == "u" => format!("mov.b32 %wide{number}, {};", constant & 0xFFFF),
            Ok(constant) => format!("mov.b32 %wide{number}, {constant};"),
            Err(_) => format!("cvt.{sign}32.{sign}16 %wide{number}, {operand};"),
        };
        format!(
            "\t{{ .reg .b32 %wide<2>; {} {} {name}.{sign}32 %wide0, %wide0, %wide1; cvt.u16.u32 {result}, %wide0; }}\n",
            load(0, first),
            load(1, second)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_numbers_of_16_bits_alone_change() {
        for same in [
            "\tmax.u16x2 \t%r3, %r1, %r2;\n",
            "\tmin.u32 \t%r3, %r1, 2;\n",
            "\tmax.f16 \t%rs1, %rs2, %rs3;\n",
        ] {
            assert_eq!(widened(same), None);
        }
        assert_eq!(
            widened("\tmax.u16 \t%rs3, %rs2, -1;\n").as_deref(),
            Some(
                "\t{ .reg .b32 %wide<2>; cvt.u32.u16 %wide0, %rs2; mov.b32 %wide1, 65535; max.u32 %wide0, %wide0, %wide1; \
                 cvt.u16.u32 %rs3, %wide0; }\n"
            )
        );
    }
}
