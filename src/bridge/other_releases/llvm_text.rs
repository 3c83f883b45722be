//! The floating-point literals of LLVM 23's text: `+inf`, `-qnan`, `+nan(0x1)`, `f0x7FC00000`, and decimal numbers that are not
//! exact in their type (`float 1.000000e-01`). LLVM 22 reads bits instead: `float 0x3FB99999A0000000`.

/// A type that literals can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Float {
    Half,
    Bfloat,
    Single,
    Double,
}

impl Float {
    fn named(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"half" => Self::Half,
            b"bfloat" => Self::Bfloat,
            b"float" => Self::Single,
            b"double" => Self::Double,
            _ => return None,
        })
    }

    /// Bits of the whole, and of the fraction.
    const fn bits(self) -> (u32, u32) {
        match self {
            Self::Half => (16, 10),
            Self::Bfloat => (16, 7),
            Self::Single => (32, 23),
            Self::Double => (64, 52),
        }
    }

    const fn infinity(self) -> u64 {
        let (bits, fraction) = self.bits();
        ((1 << (bits - 1 - fraction)) - 1) << fraction
    }

    /// As LLVM 22 writes it: a `float` by the bits of the `double` of its value.
    fn written(self, bits: u64) -> String {
        match self {
            Self::Half => format!("0xH{bits:04X}"),
            Self::Bfloat => format!("0xR{bits:04X}"),
            Self::Double => format!("0x{bits:016X}"),
            Self::Single => format!("0x{:016X}", widened(bits)),
        }
    }

    /// The value of a decimal number in this type, rounded to nearest.
    fn decimal(self, text: &str) -> Option<u64> {
        let text = text.strip_prefix('+').unwrap_or(text);
        Some(match self {
            Self::Double => text.parse::<f64>().ok()?.to_bits(),
            Self::Single => text.parse::<f32>().ok()?.to_bits().into(),
            // What is written is close to a value of the type, and far from the middle of two: rounding twice is no matter.
            Self::Half | Self::Bfloat => narrowed(text.parse::<f64>().ok()?, self),
        })
    }
}

/// The bits of a `float` as those of a `double`, the payload of a NaN included: by hand, since hardware makes NaNs quiet.
const fn widened(bits: u64) -> u64 {
    let (sign, exponent, fraction) = ((bits >> 31) << 63, (bits >> 23) & 0xff, bits & 0x7f_ffff);
    match exponent {
        0xff => sign | (0x7ff << 52) | (fraction << 29),
        0 if fraction == 0 => sign,
        0 => {
            // A number that is denormal as a float has a leading one as a double.
            let shift = fraction.leading_zeros() as u64 - 40;
            sign | ((897 - shift) << 52) | (((fraction << shift) & 0x7f_ffff) << 29)
        }
        _ => sign | ((exponent + 896) << 52) | (fraction << 29),
    }
}

/// A finite number in a type of 16 bits, to nearest, ties to even.
fn narrowed(value: f64, to: Float) -> u64 {
    let (bits, fraction) = to.bits();
    let sign = u64::from(value.is_sign_negative()) << (bits - 1);
    let bias = (1_i32 << (bits - 2 - fraction)) - 1;
    let value = value.abs();
    if value == 0.0 {
        return sign;
    }
    let exponent = ((value.to_bits() >> 52) as i32 - 1023).max(1 - bias);
    // In units of the last place, which a double holds exactly.
    let units = value * 2_f64.powi(fraction as i32 - exponent);
    let rounded = units.round_ties_even() as u64;
    let carried = rounded + (((exponent + bias - 1) as u64) << fraction);
    sign | carried.min(to.infinity())
}

/// The text as LLVM 22 reads it; `None` where no literal is of the new kind.
pub(crate) fn bring_over(text: &str) -> Option<String> {
    let mut result = String::new();
    let mut copied = 0;
    let mut at = 0;
    let mut kind = None;
    let bytes = text.as_bytes();
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let length = match byte {
            b'"' => 2 + rest[1..].iter().take_while(|byte| **byte != b'"').count(),
            b';' => rest.iter().take_while(|byte| **byte != b'\n').count(),
            b'\n' => {
                kind = None;
                1
            }
            // Names of values, types, metadata and attributes are none of ours.
            b'%' | b'@' | b'!' | b'#' | b'$' => 1 + rest[1..].iter().take_while(|byte| in_word(**byte)).count(),
            _ if in_word(byte) || byte == b'+' => {
                let mut length = 1 + rest[1..]
                    .iter()
                    .take_while(|byte| in_word(**byte) || **byte == b'+')
                    .count();
                if rest.get(length) == Some(&b'(') && matches!(&rest[1..length], b"nan" | b"snan") {
                    length += rest[length..].iter().take_while(|byte| **byte != b')').count() + 1;
                }
                let word = text.get(at..at + length).unwrap_or_default();
                if let Some(named) = Float::named(word.as_bytes()) {
                    kind = Some(named);
                } else if let Some(literal) = kind.and_then(|kind| literal(kind, word)) {
                    result.push_str(&text[copied..at]);
                    result.push_str(&literal);
                    copied = at + length;
                }
                length
            }
            _ => 1,
        };
        at += length.max(1);
    }
    if copied == 0 {
        return None;
    }
    result.push_str(text.get(copied..)?);
    Some(result)
}

/// Whether a text has pointers to types, `float*`, which LLVM wrote until release 16. Its reader takes them still, and not all that
/// such a release wrote beside them.
pub(crate) fn is_older(text: &str) -> bool {
    let is_type = |before: &str| {
        let word = before
            .rsplit(|character: char| !character.is_ascii_alphanumeric())
            .next()
            .unwrap_or_default();
        let is_integer = word
            .strip_prefix('i')
            .is_some_and(|bits| !bits.is_empty() && bits.parse::<u32>().is_ok());
        is_integer || Float::named(word.as_bytes()).is_some() || before.ends_with([']', '}', '>'])
    };
    text.lines()
        .map(|line| line.split(';').next().unwrap_or_default())
        .any(|line| {
            line.match_indices('*')
                .any(|(at, _)| line.get(..at).is_some_and(is_type))
        })
}

const fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-')
}

/// A literal of the new kind as the old one.
fn literal(kind: Float, word: &str) -> Option<String> {
    let (bits, fraction) = kind.bits();
    if let Some(digits) = word.strip_prefix("f0x") {
        return Some(kind.written(u64::from_str_radix(digits, 16).ok()?));
    }
    let sign = u64::from(word.starts_with('-')) << (bits - 1);
    let quiet = 1_u64 << (fraction - 1);
    if let Some(name) = word.strip_prefix(['+', '-']) {
        let special = match name {
            "inf" => Some(0),
            "qnan" => Some(quiet),
            _ => name
                .strip_suffix(')')
                .and_then(|name| name.split_once("(0x"))
                .and_then(|(name, digits)| {
                    let payload = u64::from_str_radix(digits, 16).ok()?;
                    match name {
                        "nan" => Some(quiet | payload),
                        "snan" => Some(payload),
                        _ => None,
                    }
                }),
        };
        if let Some(special) = special {
            return Some(kind.written(sign | kind.infinity() | special));
        }
    }
    // A decimal number that LLVM 22 reads stays: it has to be exact.
    let is_decimal = word.contains('.')
        && word
            .trim_start_matches(['+', '-'])
            .starts_with(|first: char| first.is_ascii_digit());
    let value = kind.decimal(word).filter(|_| is_decimal && kind != Float::Double)?;
    let exact = word.trim_start_matches('+').parse::<f64>().ok()?;
    (wide(kind, value) != exact).then(|| kind.written(value))
}

/// The value of a finite number of a type.
fn wide(kind: Float, bits: u64) -> f64 {
    let (all, fraction) = kind.bits();
    match kind {
        Float::Double => f64::from_bits(bits),
        Float::Single => f64::from_bits(widened(bits)),
        Float::Half | Float::Bfloat => {
            let sign = if bits >> (all - 1) == 1 { -1.0 } else { 1.0 };
            let exponent = ((bits & kind.infinity()) >> fraction) as i32;
            let low = (bits & ((1 << fraction) - 1)) as f64;
            let bias = (1 << (all - 2 - fraction)) - 1;
            let (lead, exponent) = if exponent == 0 { (0.0, 1) } else { (1.0, exponent) };
            sign * (lead + low / f64::from(1_u32 << fraction)) * 2_f64.powi(exponent - bias)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_become_bits() {
        for (new, old) in [
            ("store float +inf, ptr %p", "store float 0x7FF0000000000000, ptr %p"),
            ("fadd double %x, -inf", "fadd double %x, 0xFFF0000000000000"),
            ("fadd half %x, -inf", "fadd half %x, 0xHFC00"),
            ("fadd bfloat %x, +qnan", "fadd bfloat %x, 0xR7FC0"),
            ("fadd float %x, +qnan", "fadd float %x, 0x7FF8000000000000"),
            ("fadd float %x, +nan(0x1)", "fadd float %x, 0x7FF8000020000000"),
            ("fadd float %x, -snan(0x1)", "fadd float %x, 0xFFF0000020000000"),
            ("fadd float %x, f0x7FC00000", "fadd float %x, 0x7FF8000000000000"),
            ("fadd half %x, f0x3E00", "fadd half %x, 0xH3E00"),
            (
                "fadd double %x, f0x3FB999999999999A",
                "fadd double %x, 0x3FB999999999999A",
            ),
            ("fadd float %x, 1.000000e-01", "fadd float %x, 0x3FB99999A0000000"),
            ("fadd float %x, -1.000000e-45", "fadd float %x, 0xB6A0000000000000"),
            ("fadd half %x, 9.997560e-02", "fadd half %x, 0xH2E66"),
            ("fadd bfloat %x, 1.000000e-01", "fadd bfloat %x, 0xR3DCD"),
            (
                "call float @f(double %d, half +inf, float -inf)",
                "call float @f(double %d, half 0xH7C00, float 0xFFF0000000000000)",
            ),
            (
                "phi <2 x float> [ splat (float +inf), %a ]",
                "phi <2 x float> [ splat (float 0x7FF0000000000000), %a ]",
            ),
        ] {
            assert_eq!(bring_over(new).as_deref(), Some(old), "{new}");
        }
    }

    #[test]
    fn what_llvm_22_reads_stays() {
        for text in [
            "fadd float %x, 1.500000e+00",
            "fadd double %x, 1.000000e-01",
            "fadd half %x, 0xH3E00",
            "store i32 -1, ptr %inf",
            "; float +inf",
            "@s = constant [9 x i8] c\"float +inf\"",
            "call void @float(i32 1)",
            "%half = add i32 1, -2",
            "br label %float.0",
        ] {
            assert_eq!(bring_over(text), None, "{text}");
        }
    }

    #[test]
    fn typed_pointers_are_seen() {
        for text in [
            "define void @k(float* %p) {",
            "%q = bitcast [4 x i8]* %p to i8*",
            "load i32 addrspace(1)*, i64* %p",
        ] {
            assert!(is_older(text), "{text}");
        }
        for text in [
            "define void @k(ptr %p) {",
            "; int *p",
            "@s = constant [2 x i8] c\"**\"",
            "!DIExpression(DW_OP_mul)",
        ] {
            assert!(!is_older(text), "{text}");
        }
    }

    #[test]
    fn widening_is_what_hardware_does_with_numbers() {
        let mut bits = 1_u32;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for bits in [bits, bits & 0x807f_ffff, bits & 0x8000_00ff] {
                let value = f32::from_bits(bits);
                if !value.is_nan() {
                    assert_eq!(widened(bits.into()), f64::from(value).to_bits(), "{bits:08x}");
                }
            }
        }
        for bits in 0..0x7c00_u64 {
            assert_eq!(narrowed(wide(Float::Half, bits), Float::Half), bits);
        }
        for bits in 0..0x7f80_u64 {
            assert_eq!(narrowed(wide(Float::Bfloat, bits), Float::Bfloat), bits);
        }
        assert_eq!(narrowed(65520.0, Float::Half), 0x7c00);
        assert_eq!(narrowed(65519.0, Float::Half), 0x7bff);
    }
}
