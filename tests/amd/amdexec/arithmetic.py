"""Arithmetic that the pseudo-code names and numpy lacks, for all lanes at once.

Every function takes and returns numpy arrays, or numpy scalars for the scalar unit.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from typing import Any

import numpy as np

# A value of all lanes, or of the scalar unit. numpy's types do not say more than that here.
Lanes = Any

U8, U16, U32, U64 = np.uint8, np.uint16, np.uint32, np.uint64
I8, I16, I32, I64 = np.int8, np.int16, np.int32, np.int64
F16, F32, F64 = np.float16, np.float32, np.float64

where = np.where

_LIBM = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
_LIBM.fma.restype = ctypes.c_double
_LIBM.fma.argtypes = [ctypes.c_double] * 3
_LIBM.fesetround.argtypes = [ctypes.c_int]

# MODE.round, two bits, to <fenv.h> on x86-64: nearest even, to +inf, to -inf, to zero.
_ROUNDING = (0x000, 0x800, 0x400, 0xC00)


class Rounding:
    """Rounds as one of the four modes says, within a `with` block."""

    def __init__(self, mode: int) -> None:
        self.mode = mode

    def __enter__(self) -> None:
        set_rounding(self.mode)

    def __exit__(self, *_: object) -> None:
        set_rounding(0)


_rounding = 0


def set_rounding(mode: int) -> None:
    global _rounding
    if mode != _rounding:
        if _LIBM.fesetround(_ROUNDING[mode]) != 0:
            raise OSError("fesetround failed")
        _rounding = mode


def _odd_sum(product: Lanes, addend: Lanes) -> Lanes:
    """product + addend in double, rounded to odd: rounding it once more to a narrower type is then right."""
    total = product + addend
    if _rounding != 0:
        return total  # directed rounding twice in one direction is directed rounding once
    back = total - product
    lost = (product - (total - back)) + (addend - back)
    bits = np.asarray(total).view(U64)
    step = np.where((lost > 0) == (total > 0), U64(1), U64(0xFFFFFFFFFFFFFFFF))
    adjust = (lost != 0) & (bits & U64(1) == 0) & np.isfinite(total)
    return np.where(adjust, bits + step, bits).view(F64)


def fma32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a * b is exact in double: 24 + 24 bits."""
    return _odd_sum(a.astype(F64) * b.astype(F64), c.astype(F64)).astype(F32)


def fma16(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return _odd_sum(a.astype(F64) * b.astype(F64), c.astype(F64)).astype(F16)


def fma64(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    a, b, c = np.broadcast_arrays(a, b, c)
    fma = _LIBM.fma
    flat = [fma(x, y, z) for x, y, z in zip(a.flat, b.flat, c.flat, strict=True)]
    return np.array(flat, F64).reshape(a.shape)[()]


def flush32(x: Lanes) -> Lanes:
    """Denormals become zeros of their sign."""
    bits = np.asarray(x).view(U32)
    return np.where(bits & U32(0x7F800000) == 0, bits & U32(0x80000000), bits).view(F32)[()]


def flush16(x: Lanes) -> Lanes:
    bits = np.asarray(x).view(U16)
    return np.where(bits & U16(0x7C00) == 0, bits & U16(0x8000), bits).view(F16)[()]


def flush64(x: Lanes) -> Lanes:
    bits = np.asarray(x).view(U64)
    return np.where(bits & U64(0x7FF << 52) == 0, bits & U64(1 << 63), bits).view(F64)[()]


def exponent(x: Lanes) -> Lanes:
    """The biased exponent field, as an i32."""
    if x.dtype == F32:
        return (np.asarray(x).view(U32) >> U32(23) & U32(0xFF)).astype(I32)
    if x.dtype == F64:
        return (np.asarray(x).view(U64) >> U64(52) & U64(0x7FF)).astype(I32)
    return (np.asarray(x).view(U16) >> U16(10) & U16(0x1F)).astype(I32)


def mantissa(x: Lanes) -> Lanes:
    """As frexp: in [0.5, 1), with the sign."""
    return np.frexp(x)[0]


def frexp_exponent(x: Lanes) -> Lanes:
    return np.where(np.isfinite(x), np.frexp(x)[1], 0).astype(I32)


def is_denormal(x: Lanes) -> Lanes:
    return (x != 0) & (np.abs(x) < np.finfo(x.dtype).tiny)


def is_signalling(x: Lanes) -> Lanes:
    if x.dtype == F32:
        return np.isnan(x) & (np.asarray(x).view(U32) & U32(1 << 22) == 0)
    if x.dtype == F64:
        return np.isnan(x) & (np.asarray(x).view(U64) & U64(1 << 51) == 0)
    return np.isnan(x) & (np.asarray(x).view(U16) & U16(1 << 9) == 0)


def quiet(x: Lanes) -> Lanes:
    return np.where(np.isnan(x), x + x.dtype.type(0), x)


def less_with_zeros(a: Lanes, b: Lanes) -> Lanes:
    """a < b, with -0.0 < +0.0."""
    return (a < b) | ((a == 0) & (b == 0) & np.signbit(a) & ~np.signbit(b))


def minimum_number(a: Lanes, b: Lanes) -> Lanes:
    """The smaller one; a NaN loses against a number."""
    smaller = np.where(less_with_zeros(a, b), a, b)
    return np.where(np.isnan(a), quiet(b), np.where(np.isnan(b), a, smaller))


def maximum_number(a: Lanes, b: Lanes) -> Lanes:
    larger = np.where(less_with_zeros(b, a), a, b)
    return np.where(np.isnan(a), quiet(b), np.where(np.isnan(b), a, larger))


def minimum(a: Lanes, b: Lanes) -> Lanes:
    """The smaller one; a NaN wins."""
    smaller = np.where(less_with_zeros(a, b), a, b)
    return np.where(np.isnan(a), quiet(a), np.where(np.isnan(b), quiet(b), smaller))


def maximum(a: Lanes, b: Lanes) -> Lanes:
    larger = np.where(less_with_zeros(b, a), a, b)
    return np.where(np.isnan(a), quiet(a), np.where(np.isnan(b), quiet(b), larger))


def to_integer(x: Lanes, kind: Any) -> Lanes:
    """Towards zero, saturating; NaN is 0."""
    info = np.iinfo(kind)
    wide = x.astype(F64)
    inside = np.clip(np.nan_to_num(wide, nan=0.0, posinf=math.inf, neginf=-math.inf), float(info.min), float(info.max))
    return np.trunc(inside).astype(I64).astype(kind)


def to_bfloat16(x: Lanes) -> Lanes:
    """The bits of the nearest bfloat16, as u32."""
    bits = np.asarray(x.astype(F32)).view(U32)
    rounded = bits + (U32(0x7FFF) + (bits >> U32(16) & U32(1)))
    return np.where(np.isnan(x), bits >> U32(16) | U32(0x40), rounded >> U32(16))


def from_bfloat16(bits: Lanes) -> Lanes:
    return (np.asarray(bits).astype(U32) << U32(16)).view(F32)


def fp8_to_float(bits: Lanes, exponent_bits: int, fnuz: bool) -> Lanes:
    """An 8-bit float (e4m3 or e5m2) as f32; `fnuz` is the form of gfx942."""
    mantissa_bits = 7 - exponent_bits
    bits = np.asarray(bits).astype(I64) & 0xFF
    sign = np.where(bits & 0x80, -1.0, 1.0)
    field, fraction = bits >> mantissa_bits & ((1 << exponent_bits) - 1), bits & ((1 << mantissa_bits) - 1)
    bias = (1 << exponent_bits - 1) - (0 if fnuz else 1)
    scale = 2.0**-mantissa_bits
    value = np.where(
        field == 0,
        fraction * scale * 2.0 ** (1 - bias),
        (1 + fraction * scale) * np.exp2((field - bias).astype(F64)),
    )
    value = sign * value
    if fnuz:
        value = np.where(bits == 0x80, np.nan, value)
    elif exponent_bits == 4:
        value = np.where(bits & 0x7F == 0x7F, np.nan, value)
    else:
        value = np.where(field == 31, np.where(fraction == 0, sign * np.inf, np.nan), value)
    return value.astype(F32)


def float_to_fp8(x: Lanes, exponent_bits: int, fnuz: bool) -> Lanes:
    """f32 as an 8-bit float, rounded to nearest even. What is too large is infinite, or no number where there is no infinity."""
    fraction_bits = 7 - exponent_bits
    bias = (1 << exponent_bits - 1) - (0 if fnuz else 1)
    size = np.abs(np.asarray(x)).astype(F64)
    finite = np.where(np.isfinite(size), size, 0)
    field = np.where(finite == 0, 1 - bias, np.maximum(np.frexp(finite)[1] - 1, 1 - bias))
    steps = np.rint(np.ldexp(finite, fraction_bits - field)).astype(I64)
    # A sum that carries into the field above is the number that it should be.
    bits = steps + ((field + bias - 1).astype(I64) << fraction_bits)
    sign = np.where(np.signbit(x), 0x80, 0)
    if fnuz:
        bits = np.where((bits > 0x7F) | ~np.isfinite(size), 0x80, np.where(bits == 0, 0, bits | sign))
    elif exponent_bits == 4:
        bits = np.where((bits > 0x7E) | ~np.isfinite(size), 0x7F, bits) | sign
    else:
        bits = np.where(np.isnan(size), 0x7F, np.where((bits > 0x7B) | np.isinf(size), 0x7C, bits)) | sign
    return bits.astype(U32)


def reverse_bits32(x: Lanes) -> Lanes:
    x = np.asarray(x).astype(U32)
    for shift, mask in ((1, 0x55555555), (2, 0x33333333), (4, 0x0F0F0F0F), (8, 0x00FF00FF)):
        x = (x >> U32(shift) & U32(mask)) | (x & U32(mask)) << U32(shift)
    return (x >> U32(16) | x << U32(16))[()]


def bit_count(x: Lanes) -> Lanes:
    return np.bitwise_count(x).astype(U32)


def sign_bits(x: Lanes) -> Lanes:
    """The number of bits from the top that are like the first; -1 when all are."""
    signed = np.asarray(x).view(I32)
    return leading_zeros((signed ^ signed >> I32(31)).view(U32), 32)


def leading_zeros(x: Lanes, width: int) -> Lanes:
    """The number of zeros before the first one, from the top; -1 when there is none."""
    wide = np.asarray(x)
    high = np.zeros(wide.shape, I32)
    value = wide.copy()
    shift = width // 2
    while shift:
        upper = value >> value.dtype.type(shift)
        more = upper != 0
        high = high + np.where(more, I32(shift), I32(0))
        value = np.where(more, upper, value)
        shift //= 2
    return np.where(wide == 0, I32(-1), I32(width - 1) - high)[()]


def trailing_zeros(x: Lanes, width: int) -> Lanes:
    wide = np.asarray(x)
    one = wide.dtype.type(1)
    count = np.bitwise_count((wide & (~wide + one)) - one).astype(I32)
    return np.where(wide == 0, I32(-1), count)[()]


def sin_turns(x: Lanes) -> Lanes:
    """sin(2 pi x), as the hardware takes its argument; 0 outside of +-256."""
    turns = x.astype(F64)
    return np.where(np.abs(turns) <= 256, np.sin(2 * np.pi * (turns - np.rint(turns))), 0.0 * turns).astype(x.dtype)


def cos_turns(x: Lanes) -> Lanes:
    turns = x.astype(F64)
    return np.where(np.abs(turns) <= 256, np.cos(2 * np.pi * (turns - np.rint(turns))), 1.0 + 0.0 * turns).astype(x.dtype)


def exp2_wide(x: Lanes) -> Lanes:
    return np.exp2(x.astype(F64)).astype(x.dtype)


def log2_wide(x: Lanes) -> Lanes:
    return np.log2(x.astype(F64)).astype(x.dtype)


def select_bytes(high: Lanes, low: Lanes, selectors: Lanes) -> Lanes:
    """v_perm_b32."""
    data = np.asarray(high).astype(U64) << U64(32) | np.asarray(low).astype(U64)
    result = np.zeros(np.broadcast(data, selectors).shape, U64)
    for position in range(4):
        selector = np.asarray(selectors).astype(U64) >> U64(8 * position) & U64(0xFF)
        plain = data >> (U64(8) * (selector & U64(7))) & U64(0xFF)
        sign_byte = data >> (U64(16) * (selector & U64(3)) + U64(15)) & U64(1)
        byte = np.where(selector < 8, plain, np.where(selector < 12, sign_byte * U64(0xFF), U64(0xFF)))
        byte = np.where(selector == 12, U64(0), byte)
        result |= byte << U64(8 * position)
    return result.astype(U32)[()]
