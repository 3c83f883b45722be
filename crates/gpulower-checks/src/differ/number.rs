//! What the operations compute, on bits: integers of any width, and floats by float64 and one rounding.

#![allow(
    clippy::redundant_pattern_matching,
    reason = "`cmpf!` takes patterns, two of which have shorter names"
)]

use std::cmp::Ordering;

use super::kernel::{Cast, Elem};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    Even,
    Away,
    Up,
    Down,
    Zero,
}

impl Rounding {
    pub fn text(self) -> &'static str {
        match self {
            Self::Even => "",
            Self::Away => " to_nearest_away",
            Self::Up => " upward",
            Self::Down => " downward",
            Self::Zero => " toward_zero",
        }
    }
}

/// What operands an operation takes, and what has to be kept away from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Two integers or indices.
    Int,
    /// Two integers, indices or i1.
    Bits,
    /// The second is made smaller than the width.
    Shift,
    /// The second is made positive and odd, or negative and even.
    DivS,
    /// The second is made odd.
    DivU,
    /// One integer.
    Int1,
    /// Two integers; the second of two results.
    High,
    CmpI,
    CmpF,
    Float1,
    Float2,
    /// Zeros and signalling NaNs are taken away from both.
    Number2,
    /// The second is replaced where it is not a number.
    CopySign,
    Float3,
    /// From a float to i1.
    Test,
}

/// A type with its width.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub elem: Elem,
    pub bits: u32,
}

impl Kind {
    pub fn mask(self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    pub fn signed(self, bits: u64) -> i64 {
        let shift = 64 - self.bits;
        ((bits << shift) as i64) >> shift
    }

    /// The value of a float, exactly.
    pub fn float(self, bits: u64) -> f64 {
        match self.elem {
            Elem::F64 => f64::from_bits(bits),
            Elem::F32 => f64::from(f32::from_bits(bits as u32)),
            Elem::BF16 => f64::from(f32::from_bits((bits as u32) << 16)),
            _ => {
                let (sign, exponent, mantissa) = (bits >> 15 & 1, bits >> 10 & 31, (bits & 1023) as f64);
                let magnitude = match exponent {
                    0 => mantissa * 2f64.powi(-24),
                    31 if mantissa == 0.0 => f64::INFINITY,
                    31 => f64::NAN,
                    _ => (1024.0 + mantissa) * 2f64.powi(exponent as i32 - 25),
                };
                if sign == 1 { -magnitude } else { magnitude }
            }
        }
    }

    /// Bits of the mantissa that are stored, and the exponents of the smallest and the largest normal number.
    fn format(self) -> (u32, i32, i32) {
        match self.elem {
            Elem::F16 => (10, -14, 15),
            Elem::BF16 => (7, -126, 127),
            Elem::F32 => (23, -126, 127),
            _ => (52, -1022, 1023),
        }
    }

    pub fn not_a_number(self) -> u64 {
        let (mantissa, _, _) = self.format();
        (self.mask() >> 1) & !((1 << (mantissa - 1)) - 1)
    }

    /// Rounds once.
    pub fn encode(self, value: f64, rounding: Rounding) -> u64 {
        if value.is_nan() {
            return self.not_a_number();
        }
        if self.elem == Elem::F64 {
            return value.to_bits();
        }
        let (mantissa, least, most) = self.format();
        let negative = value.is_sign_negative();
        let sign = u64::from(negative) << (self.bits - 1);
        let infinity = ((most - least + 2) as u64) << mantissa;
        let magnitude = value.abs();
        if magnitude == 0.0 || magnitude.is_infinite() {
            return sign | if magnitude == 0.0 { 0 } else { infinity };
        }
        let exponent = (((magnitude.to_bits() >> 52) as i32) - 1023).max(least);
        // Two steps, since 2^-q may be no float64.
        let q = exponent - mantissa as i32;
        let scaled = magnitude * 2f64.powi(-q / 2) * 2f64.powi(-q - -q / 2);
        let (whole, rest) = (scaled.floor(), scaled - scaled.floor());
        let up = match rounding {
            Rounding::Even => rest > 0.5 || rest == 0.5 && whole % 2.0 == 1.0,
            Rounding::Away => rest >= 0.5,
            Rounding::Up => !negative && rest > 0.0,
            Rounding::Down => negative && rest > 0.0,
            Rounding::Zero => false,
        };
        let steps = whole as u64 + u64::from(up);
        let bits = (((exponent - least) as u64) << mantissa) + steps;
        let overflows = bits >= infinity;
        let stays_finite = match rounding {
            Rounding::Even | Rounding::Away => false,
            Rounding::Up => negative,
            Rounding::Down => !negative,
            Rounding::Zero => true,
        };
        sign | match (overflows, stays_finite) {
            (true, true) => infinity - 1,
            (true, false) => infinity,
            (false, _) => bits,
        }
    }

    fn is_nan(self, bits: u64) -> bool {
        self.float(bits).is_nan()
    }
}

/// An operation of the dialects arith and math.
#[derive(Debug)]
pub struct Operation {
    pub name: &'static str,
    pub shape: Shape,
    pub eval: fn(Kind, &[u64]) -> u64,
}

const fn op(name: &'static str, shape: Shape, eval: fn(Kind, &[u64]) -> u64) -> Operation {
    Operation { name, shape, eval }
}

fn compare(kind: Kind, a: &[u64]) -> Option<Ordering> {
    kind.float(a[0]).partial_cmp(&kind.float(a[1]))
}

fn two(kind: Kind, a: &[u64], f: fn(f64, f64) -> f64) -> u64 {
    kind.encode(f(kind.float(a[0]), kind.float(a[1])), Rounding::Even)
}

fn one(kind: Kind, a: &[u64], f: fn(f64) -> f64) -> u64 {
    kind.encode(f(kind.float(a[0])), Rounding::Even)
}

/// Of two floats that are not NaN, by order, -0 before +0.
fn larger(kind: Kind, a: &[u64], wanted: Ordering) -> u64 {
    let (x, y) = (kind.float(a[0]), kind.float(a[1]));
    a[usize::from(x.total_cmp(&y) != wanted)]
}

fn divisor_s(kind: Kind, divisor: u64, negative: bool) -> i128 {
    let most = most_positive(kind.elem, kind.bits);
    let made = if negative {
        (divisor | !most) & !1
    } else {
        divisor & most | 1
    };
    i128::from(kind.signed(made & kind.mask()))
}

/// The largest value of a signed type; of `index` the one that it has at any width.
pub fn most_positive(elem: Elem, bits: u32) -> u64 {
    let bits = if elem == Elem::Index { 32 } else { bits };
    (1 << (bits - 1)) - 1
}

/// The largest amount that shifts an integer; of `index` the one that it has at any width.
pub fn most_shift(elem: Elem, bits: u32) -> u64 {
    u64::from(if elem == Elem::Index { 31 } else { bits - 1 })
}

/// What is kept of the operands of an operation that is not to wrap: less than half of the bits of each, or an amount that shifts.
pub fn no_wrap_masks(name: &str, elem: Elem) -> [u64; 2] {
    let half = elem.bits(32) / 2 - 1;
    let most = (1 << half) - 1;
    [most, if name == "arith.shli" { u64::from(half) } else { most }]
}

/// The quotient and the remainder of signed division; the lowest bit of the third operand is the guard.
fn divided(kind: Kind, a: &[u64]) -> (i128, i128, i128) {
    let (x, y) = (i128::from(kind.signed(a[0])), divisor_s(kind, a[1], a[2] == 1));
    (x / y, x % y, y)
}

fn fused(kind: Kind, a: &[u64]) -> u64 {
    let (x, y, z) = (kind.float(a[0]), kind.float(a[1]), kind.float(a[2]));
    match kind.elem {
        Elem::F64 => kind.encode(x.mul_add(y, z), Rounding::Even),
        Elem::F32 => kind.encode(f64::from((x as f32).mul_add(y as f32, z as f32)), Rounding::Even),
        _ => {
            // The product is exact; the sum is rounded to odd, so that the last rounding sees on which side it was.
            let product = x * y;
            let sum = product + z;
            let back = sum - product;
            let error = (product - (sum - back)) + (z - back);
            let odd = if error != 0.0 && error.is_finite() && sum.to_bits() & 1 == 0 {
                if (error > 0.0) == (sum > 0.0) {
                    sum.to_bits() + 1
                } else {
                    sum.to_bits() - 1
                }
            } else {
                sum.to_bits()
            };
            kind.encode(f64::from_bits(odd), Rounding::Even)
        }
    }
}

macro_rules! cmpi {
    ($name:literal, $get:ident, $op:tt) => {
        op(concat!("arith.cmpi ", $name), Shape::CmpI, |k, a| u64::from(k.$get(a[0]) $op k.$get(a[1])))
    };
}

macro_rules! cmpf {
    ($name:literal, $orderings:pat) => {
        op(concat!("arith.cmpf ", $name), Shape::CmpF, |k, a| {
            u64::from(matches!(compare(k, a), $orderings))
        })
    };
}

impl Kind {
    fn unsigned(self, bits: u64) -> u64 {
        bits & self.mask()
    }
}

use Ordering::{Equal, Greater, Less};
use Shape::{Bits, CopySign, DivS, DivU, Float1, Float2, Float3, High, Int, Int1, Number2, Shift, Test};

/// The operations. Results of integers are cut to their width afterwards.
pub static OPERATIONS: &[Operation] = &[
    op("arith.addi", Int, |_, a| a[0].wrapping_add(a[1])),
    op("arith.subi", Int, |_, a| a[0].wrapping_sub(a[1])),
    op("arith.muli", Int, |_, a| a[0].wrapping_mul(a[1])),
    op("arith.maxsi", Int, |k, a| k.signed(a[0]).max(k.signed(a[1])) as u64),
    op("arith.minsi", Int, |k, a| k.signed(a[0]).min(k.signed(a[1])) as u64),
    op("arith.maxui", Int, |_, a| a[0].max(a[1])),
    op("arith.minui", Int, |_, a| a[0].min(a[1])),
    op("arith.andi", Bits, |_, a| a[0] & a[1]),
    op("arith.ori", Bits, |_, a| a[0] | a[1]),
    op("arith.xori", Bits, |_, a| a[0] ^ a[1]),
    op("arith.shli", Shift, |k, a| a[0] << (a[1] & most_shift(k.elem, k.bits))),
    op("arith.shrui", Shift, |k, a| a[0] >> (a[1] & most_shift(k.elem, k.bits))),
    op("arith.shrsi", Shift, |k, a| {
        (k.signed(a[0]) >> (a[1] & most_shift(k.elem, k.bits))) as u64
    }),
    op("arith.divsi", DivS, |k, a| divided(k, a).0 as u64),
    op("arith.remsi", DivS, |k, a| divided(k, a).1 as u64),
    op("arith.floordivsi", DivS, |k, a| {
        let (quotient, rest, y) = divided(k, a);
        (quotient - i128::from(rest != 0 && (rest < 0) != (y < 0))) as u64
    }),
    op("arith.ceildivsi", DivS, |k, a| {
        let (quotient, rest, y) = divided(k, a);
        (quotient + i128::from(rest != 0 && (rest < 0) == (y < 0))) as u64
    }),
    op("arith.divui", DivU, |_, a| a[0] / (a[1] | 1)),
    op("arith.remui", DivU, |_, a| a[0] % (a[1] | 1)),
    op("arith.ceildivui", DivU, |_, a| a[0].div_ceil(a[1] | 1)),
    op("math.ctpop", Int1, |_, a| u64::from(a[0].count_ones())),
    op("math.ctlz", Int1, |k, a| {
        u64::from(a[0].leading_zeros() - (64 - k.bits))
    }),
    op("math.cttz", Int1, |k, a| u64::from(a[0].trailing_zeros().min(k.bits))),
    op("math.absi", Int1, |k, a| k.signed(a[0]).unsigned_abs()),
    op("arith.mulsi_extended", High, |k, a| {
        ((i128::from(k.signed(a[0])) * i128::from(k.signed(a[1]))) >> k.bits) as u64
    }),
    op("arith.mului_extended", High, |k, a| {
        ((u128::from(a[0]) * u128::from(a[1])) >> k.bits) as u64
    }),
    cmpi!("eq", unsigned, ==),
    cmpi!("ne", unsigned, !=),
    cmpi!("slt", signed, <),
    cmpi!("sle", signed, <=),
    cmpi!("sgt", signed, >),
    cmpi!("sge", signed, >=),
    cmpi!("ult", unsigned, <),
    cmpi!("ule", unsigned, <=),
    cmpi!("ugt", unsigned, >),
    cmpi!("uge", unsigned, >=),
    cmpf!("oeq", Some(Equal)),
    cmpf!("ogt", Some(Greater)),
    cmpf!("oge", Some(Greater | Equal)),
    cmpf!("olt", Some(Less)),
    cmpf!("ole", Some(Less | Equal)),
    cmpf!("one", Some(Less | Greater)),
    cmpf!("ord", Some(_)),
    cmpf!("ueq", None | Some(Equal)),
    cmpf!("ugt", None | Some(Greater)),
    cmpf!("uge", None | Some(Greater | Equal)),
    cmpf!("ult", None | Some(Less)),
    cmpf!("ule", None | Some(Less | Equal)),
    cmpf!("une", None | Some(Less | Greater)),
    cmpf!("uno", None),
    op("arith.addf", Float2, |k, a| two(k, a, |x, y| x + y)),
    op("arith.subf", Float2, |k, a| two(k, a, |x, y| x - y)),
    op("arith.mulf", Float2, |k, a| two(k, a, |x, y| x * y)),
    op("arith.divf", Float2, |k, a| two(k, a, |x, y| x / y)),
    op("arith.maximumf", Float2, |k, a| match compare(k, a) {
        None => k.not_a_number(),
        Some(_) => larger(k, a, Greater),
    }),
    op("arith.minimumf", Float2, |k, a| match compare(k, a) {
        None => k.not_a_number(),
        Some(_) => larger(k, a, Less),
    }),
    op("arith.maxnumf", Number2, |k, a| number(k, a, f64::max)),
    op("arith.minnumf", Number2, |k, a| number(k, a, f64::min)),
    op("arith.negf", Float1, |k, a| a[0] ^ (1 << (k.bits - 1))),
    op("math.absf", Float1, |k, a| a[0] & (k.mask() >> 1)),
    op("math.sqrt", Float1, |k, a| one(k, a, f64::sqrt)),
    op("math.floor", Float1, |k, a| one(k, a, f64::floor)),
    op("math.ceil", Float1, |k, a| one(k, a, f64::ceil)),
    op("math.trunc", Float1, |k, a| one(k, a, f64::trunc)),
    op("math.round", Float1, |k, a| one(k, a, f64::round)),
    op("math.roundeven", Float1, |k, a| one(k, a, f64::round_ties_even)),
    op("math.copysign", CopySign, |k, a| {
        let sign = if k.is_nan(a[1]) { 0 } else { a[1] };
        a[0] & (k.mask() >> 1) | sign & (1 << (k.bits - 1))
    }),
    op("math.fma", Float3, fused),
    op("math.isnan", Test, |k, a| u64::from(k.float(a[0]).is_nan())),
    op("math.isinf", Test, |k, a| u64::from(k.float(a[0]).is_infinite())),
    op("math.isfinite", Test, |k, a| u64::from(k.float(a[0]).is_finite())),
];

/// The operation of this name.
pub fn named(name: &str) -> &'static Operation {
    OPERATIONS
        .iter()
        .find(|operation| operation.name == name)
        .unwrap_or(&OPERATIONS[0])
}

/// -0 counts as +0, and the result of a NaN is the other operand.
fn number(kind: Kind, a: &[u64], f: fn(f64, f64) -> f64) -> u64 {
    kind.encode(f(kind.float(a[0]) + 0.0, kind.float(a[1]) + 0.0), Rounding::Even)
}

/// What float-to-integer conversions take, as the exponent of the first power of two that they do not; `None` for infinity.
pub fn limit(from: Kind, to: Kind, cast: Cast) -> Option<i32> {
    let exponent = to.bits as i32 - i32::from(cast == Cast::FPToSI);
    (exponent <= from.format().2).then_some(exponent)
}

pub fn convert(cast: Cast, from: Kind, to: Kind, bits: u64) -> u64 {
    let integer = |magnitude: u64, negative: bool| -> u64 {
        // float64 takes 53 bits; what is below them is kept as one odd bit for the only rounding.
        let value = match (to.elem, magnitude >> 53) {
            (Elem::F64, _) | (_, 0) => magnitude as f64,
            _ => ((magnitude >> 11) | u64::from(magnitude & 2047 != 0)) as f64 * 2048.0,
        };
        to.encode(if negative { -value } else { value }, Rounding::Even)
    };
    let in_range = |x: f64| x.abs() < limit(from, to, cast).map_or(f64::INFINITY, |exponent| 2f64.powi(exponent));
    match cast {
        Cast::TruncI | Cast::ExtUI | Cast::IndexCastUI => bits,
        Cast::ExtSI | Cast::IndexCast => from.signed(bits) as u64,
        Cast::SIToFP => integer(from.signed(bits).unsigned_abs(), from.signed(bits) < 0),
        Cast::UIToFP => integer(bits, false),
        Cast::FPToSI => match from.float(bits) {
            x if in_range(x) => x as i64 as u64,
            _ => 0,
        },
        Cast::FPToUI => match from.float(bits) {
            x if in_range(x) => x.abs() as u64,
            _ => 0,
        },
        Cast::ExtF => to.encode(from.float(bits), Rounding::Even),
        Cast::TruncF(rounding) => to.encode(from.float(bits), rounding),
        Cast::Bitcast if from.elem.is_float() && from.is_nan(bits) => 0,
        Cast::Bitcast => bits,
    }
}
