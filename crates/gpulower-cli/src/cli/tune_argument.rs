//! An argument of a kernel as the command line says it: a number, or memory with numbers in it.

use std::str::FromStr;

/// Bytes of memory of one argument, at most.
const MOST_BYTES: usize = 64 << 30;

/// So many numbers are made, and repeated: a large buffer is soon full.
const PERIOD: usize = 1 << 18;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Float(u32),
    Bfloat,
    Integer(u32),
    Index,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// `f32=2.5`
    Number {
        #[doc(hidden)]
        kind: NumberType,
        value: f64,
    },
    /// `1024x64xf32=0..1`
    Memory {
        sizes: Vec<i64>,
        #[doc(hidden)]
        kind: NumberType,
        range: (f64, f64),
        /// A bare pointer, not a memref.
        is_bare: bool,
    },
}

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberType(Type);

impl NumberType {
    fn bytes(self, index_bits: u32) -> usize {
        let bits = match self.0 {
            Type::Float(bits) | Type::Integer(bits) => bits,
            Type::Bfloat => 16,
            Type::Index => index_bits,
        };
        bits as usize / 8
    }

    /// The bytes of a value.
    fn encode(self, value: f64, index_bits: u32) -> Vec<u8> {
        let all = match self.0 {
            Type::Float(64) => value.to_bits(),
            Type::Float(16) => u64::from(half(value as f32)),
            Type::Float(_) => u64::from((value as f32).to_bits()),
            Type::Bfloat => u64::from((value as f32).to_bits() >> 16),
            Type::Integer(_) | Type::Index => (value as i64).cast_unsigned(),
        };
        all.to_le_bytes().into_iter().take(self.bytes(index_bits)).collect()
    }

    fn decode(self, bytes: &[u8]) -> f64 {
        let mut all = [0; 8];
        for (place, byte) in all.iter_mut().zip(bytes) {
            *place = *byte;
        }
        let all = u64::from_le_bytes(all);
        let low = all as u32;
        match self.0 {
            Type::Float(64) => f64::from_bits(all),
            Type::Float(16) => from_half(low as u16),
            Type::Float(_) => f64::from(f32::from_bits(low)),
            Type::Bfloat => f64::from(f32::from_bits(low << 16)),
            Type::Integer(_) | Type::Index => all as f64,
        }
    }

    /// How far results may be apart that were added in another order, of the largest.
    fn tolerance(self) -> f64 {
        match self.0 {
            Type::Float(64) => 1e-12,
            Type::Float(16) => 1e-2,
            Type::Bfloat => 5e-2,
            Type::Float(_) => 1e-5,
            Type::Integer(_) | Type::Index => 0.0,
        }
    }
}

/// A number of 16 bits, cut off: what is near is as good here.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let exponent = i32::try_from(bits >> 23 & 0xff).unwrap_or(0) - 127 + 15;
    match exponent {
        ..=0 => sign,
        31.. => sign | 0x7bff,
        _ => sign | (exponent as u16) << 10 | (bits >> 13 & 0x3ff) as u16,
    }
}

fn from_half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff) / 1024.0);
    let size = match exponent {
        0 => fraction * 2f64.powi(-14),
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

impl Argument {
    /// Bytes of memory; `None` for a number.
    pub fn bytes(&self) -> Option<usize> {
        match self {
            Self::Number { .. } => None,
            Self::Memory { sizes, kind, .. } => Some(sizes.iter().product::<i64>() as usize * kind.bytes(64)),
        }
    }

    /// The bytes of a number.
    pub fn number(&self, index_bits: u32) -> Vec<u8> {
        match self {
            Self::Number { kind, value } => kind.encode(*value, index_bits),
            Self::Memory { .. } => Vec::new(),
        }
    }

    /// What is in memory at first, the same in every run.
    pub fn contents(&self, seed: u64) -> Vec<u8> {
        let Self::Memory {
            kind,
            range: (low, high),
            ..
        } = self
        else {
            return Vec::new();
        };
        let size = kind.bytes(64).max(1);
        let bytes = self.bytes().unwrap_or(0);
        let count = (bytes / size).min(PERIOD);
        // A generator of Knuth's; its upper bits are good.
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
        let mut period = Vec::with_capacity(count * size);
        for _ in 0..count {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let part = (state >> 40) as f64 / f64::from(1u32 << 24);
            let value = match kind.0 {
                Type::Integer(_) | Type::Index => (low + part * (high - low + 1.0)).floor().min(*high),
                Type::Float(_) | Type::Bfloat => low + part * (high - low),
            };
            period.extend(kind.encode(value, 64));
        }
        let mut contents = Vec::with_capacity(bytes);
        while contents.len() < bytes {
            let left = bytes - contents.len();
            contents.extend_from_slice(period.get(..left.min(period.len())).unwrap_or_default());
        }
        contents
    }

    /// Whether two results are the same, but for the order of additions.
    pub fn is_like(&self, one: &[u8], other: &[u8]) -> bool {
        let Self::Memory { kind, .. } = self else { return true };
        if one == other || kind.tolerance() == 0.0 {
            return one == other;
        }
        let size = kind.bytes(64).max(1);
        let numbers = |bytes: &'_ [u8]| -> Vec<f64> { bytes.chunks(size).map(|bytes| kind.decode(bytes)).collect() };
        let (one, other) = (numbers(one), numbers(other));
        let largest = one
            .iter()
            .filter(|value| value.is_finite())
            .fold(0.0, |most: f64, value| most.max(value.abs()));
        let mut both = one.iter().zip(&other);
        both.all(|(one, other)| {
            one.to_bits() == other.to_bits()
                || one.is_nan() && other.is_nan()
                || (one - other).abs() <= kind.tolerance() * largest
        })
    }
}

impl FromStr for Argument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected f32=2.5, index=1024, 1024x64xf32, 4096xi32=0..63 or *1024xf32".to_owned();
        let (shape, value) = match text.split_once('=') {
            Some((shape, value)) => (shape, Some(value)),
            None => (text, None),
        };
        let (is_bare, shape) = match shape.strip_prefix('*') {
            Some(rest) => (true, rest),
            None => (false, shape),
        };
        // `index` ends with an x.
        let (sizes, kind) = match shape.strip_suffix("index") {
            Some("") => (None, "index"),
            Some(rest) => (Some(rest.strip_suffix('x').ok_or_else(wrong)?), "index"),
            None => match shape.rsplit_once('x') {
                Some((sizes, kind)) => (Some(sizes), kind),
                None => (None, shape),
            },
        };
        let bits = |text: &str| text.parse::<u32>().ok().filter(|bits| matches!(bits, 8 | 16 | 32 | 64));
        let kind = match kind.split_at_checked(1) {
            _ if kind == "index" => Some(Type::Index),
            _ if kind == "bf16" => Some(Type::Bfloat),
            Some(("f", rest)) => bits(rest).filter(|bits| *bits > 8).map(Type::Float),
            Some(("i", rest)) => bits(rest).map(Type::Integer),
            _ => None,
        };
        let kind = NumberType(kind.ok_or_else(wrong)?);
        let number = |text: &str| {
            text.parse::<f64>()
                .ok()
                .filter(|value| value.is_finite())
                .ok_or_else(wrong)
        };
        let Some(sizes) = sizes else {
            return match (is_bare, value) {
                (false, Some(value)) => Ok(Self::Number {
                    kind,
                    value: number(value)?,
                }),
                _ => Err(wrong()),
            };
        };
        let sizes = sizes
            .split('x')
            .map(|size| size.parse::<i64>().ok().filter(|size| *size > 0));
        let sizes: Vec<i64> = sizes.collect::<Option<_>>().ok_or_else(wrong)?;
        let count = sizes.iter().try_fold(1i64, |all, size| all.checked_mul(*size));
        let bytes = count.and_then(|count| usize::try_from(count).ok()?.checked_mul(kind.bytes(64)));
        if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
            return Err("more memory than any GPU has".to_owned());
        }
        let range = match (value, kind.0) {
            (Some(range), _) => match range.split_once("..") {
                Some((low, high)) => (number(low)?, number(high)?),
                None => (number(range)?, number(range)?),
            },
            (None, Type::Integer(_) | Type::Index) => (0.0, 0.0),
            (None, _) => (-1.0, 1.0),
        };
        Ok(Self::Memory {
            sizes,
            kind,
            range,
            is_bare,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Argument {
        text.parse().expect("an argument")
    }

    #[test]
    fn arguments_are_numbers_or_memory() {
        assert_eq!(read("f32=2.5").number(64), 2.5f32.to_le_bytes());
        assert_eq!(read("index=7").number(32), 7i32.to_le_bytes());
        assert_eq!(read("i8=-1").number(64), [0xff]);
        assert_eq!(read("f16=1").number(64), [0x00, 0x3c]);
        assert_eq!(read("16x4xf64").bytes(), Some(512));
        assert_eq!(
            read("3xindex=5").contents(0),
            [5i64, 5, 5].map(i64::to_le_bytes).concat()
        );
        let Argument::Memory { sizes, is_bare, .. } = read("*8x2xbf16") else {
            panic!("memory")
        };
        assert!(is_bare && sizes == [8, 2]);
        for wrong in [
            "",
            "f32",
            "f8=1",
            "0xf32",
            "-1xf32",
            "4xq32",
            "4index=1",
            "*f32=1",
            "4xi32=a..b",
            "99999999999x99999999999xf32",
        ] {
            wrong.parse::<Argument>().expect_err(wrong);
        }
    }

    #[test]
    fn contents_are_of_the_range_and_the_same_each_time() {
        let indices = read("1000xi32=3..5");
        let bytes = indices.contents(1);
        assert_eq!(bytes, indices.contents(1));
        let numbers: Vec<i32> = bytes
            .chunks(4)
            .map(|bytes| i32::from_le_bytes(bytes.try_into().expect("four")))
            .collect();
        assert_eq!((numbers.iter().min(), numbers.iter().max()), (Some(&3), Some(&5)));
        assert_ne!(read("100xf32").contents(1), read("100xf32").contents(2));
    }

    #[test]
    fn results_may_differ_in_the_order_of_additions_alone() {
        let memory = read("2xf32");
        let bytes = |values: [f32; 2]| values.map(f32::to_le_bytes).concat();
        assert!(memory.is_like(&bytes([1.0, 100.0]), &bytes([1.0, 100.000_01])));
        assert!(!memory.is_like(&bytes([1.0, 100.0]), &bytes([1.0, 101.0])));
        assert!(memory.is_like(&bytes([f32::NAN, 1.0]), &bytes([f32::NAN, 1.0])));
        assert!(!read("2xi32").is_like(&[1, 0, 0, 0], &[2, 0, 0, 0]));
    }
}
