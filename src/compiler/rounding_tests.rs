//! Conversions between floats with every rounding mode, against neighbours that are found without looking at bits.

use std::fmt::Write;

use super::*;
use crate::target::Target;

const MODES: [&str; 5] = ["tonearest", "upward", "downward", "towardzero", "tonearestaway"];

/// A format, as LLVM writes it, its bits, those of its fraction, and what a number of it is.
struct Format {
    name: &'static str,
    bits: u32,
    fraction: u32,
}

const F16: Format = Format {
    name: "half",
    bits: 16,
    fraction: 10,
};
const BF16: Format = Format {
    name: "bfloat",
    bits: 16,
    fraction: 7,
};
const F32: Format = Format {
    name: "float",
    bits: 32,
    fraction: 23,
};

impl Format {
    fn infinity(&self) -> u64 {
        ((1 << (self.bits - 1 - self.fraction)) - 1) << self.fraction
    }

    /// The number with these bits, below infinity; above, what would follow.
    fn value(&self, bits: u64) -> f64 {
        let bias = (1 << (self.bits - 2 - self.fraction)) - 1;
        let exponent = (bits >> self.fraction) as i32;
        let fraction = (bits & ((1 << self.fraction) - 1)) as f64;
        let whole = f64::from(1_u32 << self.fraction);
        let (significand, exponent) = if exponent == 0 {
            (fraction, 1)
        } else {
            (whole + fraction, exponent)
        };
        significand * 2_f64.powi(exponent - bias - self.fraction as i32)
    }

    /// The bits of a number, rounded.
    fn round(&self, number: f64, mode: &str) -> u64 {
        let sign = u64::from(number.is_sign_negative()) << (self.bits - 1);
        let size = number.abs();
        let infinity = self.infinity();
        if size.is_infinite() {
            return sign | infinity;
        }
        // The largest number that is not larger, among those below infinity.
        let (mut low, mut high) = (0, infinity);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.value(middle) <= size {
                low = middle
            } else {
                high = middle
            }
        }
        let (below, above) = (self.value(low), self.value(low + 1));
        if below == size {
            return sign | low;
        }
        let half = below + (above - below) / 2.0;
        let up = match mode {
            "upward" => sign == 0,
            "downward" => sign != 0,
            "towardzero" => false,
            "tonearestaway" => size >= half,
            _ => size > half || size == half && low % 2 == 1,
        };
        sign | (low + u64::from(up))
    }
}

/// Numbers around those of a format: exact ones, halves, the next ones to both sides, the largest, the smallest; any others.
fn inputs(format: &Format) -> Vec<f64> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let infinity = format.infinity();
    let mut places = vec![
        0,
        1,
        2,
        infinity - 2,
        infinity - 1,
        1 << format.fraction,
        (1 << format.fraction) - 1,
    ];
    places.extend((0..20).map(|_| random() % infinity));
    let mut numbers = vec![f64::INFINITY, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1e-40, 1e39];
    for place in places {
        let (below, above) = (format.value(place), format.value(place + 1));
        let half = below + (above - below) / 2.0;
        for number in [below, half] {
            numbers.extend([
                number,
                number.next_up(),
                number.next_down(),
                f64::from(number as f32).next_up(),
            ]);
        }
    }
    numbers.extend(
        (0..20)
            .map(|_| f64::from_bits(random()))
            .filter(|number| number.is_finite()),
    );
    numbers.iter().flat_map(|&number| [number, -number]).collect()
}

/// Functions are folded as they are written: what is left are numbers.
fn results(target: &str, from: &str, to: &Format, inputs: &[f64]) -> Vec<u64> {
    let (name, bits) = (to.name, to.bits);
    let width = if from == "double" { 64 } else { 32 };
    let mut text = format!(
        "define {} @k(ptr %p) {{\n",
        if target.starts_with("sm") {
            "ptx_kernel void"
        } else {
            "amdgpu_kernel void"
        }
    );
    let mut count = 0;
    for number in inputs {
        for mode in MODES {
            let bits_of = if width == 64 {
                number.to_bits()
            } else {
                u64::from((*number as f32).to_bits())
            };
            writeln!(
                text,
                "%a{count} = bitcast i{width} {bits_of} to {from}
                %r{count} = call {name} @f(\n{from} %a{count}, metadata !\"round.{mode}\", metadata !\"fpexcept.ignore\")
                %b{count} = bitcast {name} %r{count} to i{bits}\nstore volatile i{bits} %b{count}, ptr %p"
            )
            .expect("writes");
            count += 1;
        }
    }
    let (short, long) = (
        match name {
            "half" => "f16",
            "bfloat" => "bf16",
            _ => "f32",
        },
        format!("f{width}"),
    );
    let intrinsic = format!("@llvm.experimental.constrained.fptrunc.{short}.{long}");
    let text = text.replace("@f(\n", &format!("{intrinsic}("))
        + &format!("ret void }}\ndeclare {name} {intrinsic}({from}, metadata, metadata)\n");
    let targets = Target::parse_list(target).expect("a target");
    let compiled = Compiler::builder()
        .build()
        .compile_source("k.ll", text.as_bytes(), &targets, Emit::Llvm);
    let ir = String::from_utf8(compiled.expect("compiles").artifacts.remove(0).bytes).expect("text");
    let store = format!("store volatile i{bits} ");
    let numbers = ir.lines().filter_map(|line| {
        line.trim()
            .strip_prefix(store.as_str())?
            .split(',')
            .next()?
            .parse::<i64>()
            .ok()
    });
    numbers
        .map(|number| number as u64 & (u64::MAX >> (64 - bits)))
        .collect()
}

#[test]
fn every_mode_rounds_to_the_right_neighbour() {
    for (from, to) in [
        ("float", &F16),
        ("float", &BF16),
        ("double", &F16),
        ("double", &BF16),
        ("double", &F32),
    ] {
        for target in ["sm_90", "gfx942"] {
            // NVIDIA has an instruction for this one.
            if target == "sm_90" && (from, to.name) == ("double", "float") {
                continue;
            }
            let inputs: Vec<f64> = inputs(to)
                .into_iter()
                .map(|number| {
                    if from == "float" {
                        f64::from(number as f32)
                    } else {
                        number
                    }
                })
                .collect();
            let got = results(target, from, to, &inputs);
            assert_eq!(got.len(), inputs.len() * MODES.len(), "{target}: {from} to {}", to.name);
            let expected = inputs.iter().flat_map(|&number| MODES.map(|mode| (number, mode)));
            for ((number, mode), got) in expected.zip(got) {
                let wanted = to.round(number, mode);
                assert_eq!(
                    got,
                    wanted,
                    "{target}: {number:e} ({:x}) from {from} to {} {mode}: {got:x}, not {wanted:x}",
                    number.to_bits(),
                    to.name
                );
            }
        }
    }
}

#[test]
fn a_mode_without_an_instruction_is_refused_with_the_function() {
    let text = "define amdgpu_kernel void @k(ptr %p, float %a) {
        %r = call float @llvm.experimental.constrained.fadd.f32(float %a, float %a, metadata !\"round.upward\", metadata !\"fpexcept.ignore\")
        store float %r, ptr %p ret void }
        declare float @llvm.experimental.constrained.fadd.f32(float, float, metadata, metadata)";
    let targets = Target::parse_list("gfx942").expect("a target");
    let error = Compiler::builder()
        .build()
        .compile_source("k.ll", text.as_bytes(), &targets, Emit::Asm);
    let error = error.expect_err("refused").to_string();
    assert!(
        error.contains("in function k: llvm.experimental.constrained.fadd.f32 asks for round.upward"),
        "{error}"
    );
}
