"""Instructions whose text in the manuals is prose, is wrong, or would be slow: written here, and compared in the tests.

Functions take (S0, S1, S2, D0, SCC, VCC, EXEC, lane, SIMM16, SIMM32) as the compiled ones do.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .arithmetic import (
    F16,
    F32,
    F64,
    I16,
    I32,
    I64,
    U16,
    U32,
    U64,
    Lanes,
    bit_count,
    cos_turns,
    exponent,
    float_to_fp8,
    flush32,
    fma32,
    fma64,
    fp8_to_float,
    frexp_exponent,
    is_denormal,
    leading_zeros,
    maximum,
    maximum_number,
    minimum,
    minimum_number,
    reverse_bits32,
    select_bytes,
    sign_bits,
    sin_turns,
    to_bfloat16,
    to_integer,
    trailing_zeros,
)

Function = Callable[..., tuple[Any, Any, Any, Any]]


def _value(compute: Callable[..., Lanes]) -> Function:
    """An instruction that yields D0 from S0, S1, S2 alone."""

    def run(s0: Any, s1: Any, s2: Any, d0: Any, scc: Any, vcc: Any, execute: Any, *_: Any) -> tuple[Any, Any, Any, Any]:
        return compute(s0, s1, s2), scc, None, execute

    return run


def _with_scc(compute: Callable[[Any, Any], Any]) -> Function:
    """A scalar instruction with SCC = (result is not 0)."""

    def run(s0: Any, s1: Any, s2: Any, d0: Any, scc: Any, vcc: Any, execute: Any, *_: Any) -> tuple[Any, Any, Any, Any]:
        result = compute(s0, s1)
        return result, result != 0, None, execute

    return run


def _f32(bits: Lanes) -> Lanes:
    return np.asarray(bits).view(F32)


def _f64(bits: Lanes) -> Lanes:
    return np.asarray(bits).astype(U64, copy=False).view(F64)


def _f16(bits: Lanes) -> Lanes:
    return np.asarray(bits).astype(U16).view(F16)


def _bits(value: Lanes) -> Lanes:
    if value.dtype == F16:
        return np.asarray(value).view(U16).astype(U32)
    return np.asarray(value).view(U64 if value.dtype == F64 else U32)


def _float32(compute: Callable[..., Lanes]) -> Function:
    return _value(lambda a, b, c: _bits(compute(_f32(a), _f32(b), _f32(c)).astype(F32)))


def _float16(compute: Callable[..., Lanes]) -> Function:
    return _value(lambda a, b, c: _bits(compute(_f16(a), _f16(b), _f16(c)).astype(F16)))


def _float64(compute: Callable[..., Lanes]) -> Function:
    return _value(lambda a, b, c: _bits(compute(_f64(a), _f64(b), _f64(c))))


def _two_floats(compute: Callable[[Lanes, Lanes], Lanes], names: tuple[str, ...]) -> dict[str, Function]:
    kinds = {"F16": _float16, "F32": _float32, "F64": _float64}
    return {
        f"{unit}_{name}_{kind}": make(lambda a, b, c, f=compute: f(a, b))
        for name in names
        for kind, make in kinds.items()
        for unit in ("V", "S")
    }


def _three_floats(first: Callable[..., Lanes], second: Callable[..., Lanes], names: tuple[str, ...]) -> dict[str, Function]:
    kinds = {"F16": _float16, "F32": _float32}
    return {f"V_{name}_{kind}": make(lambda a, b, c, f=first, g=second: g(f(a, b), c)) for name in names for kind, make in kinds.items()}


def _median(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    middle = maximum_number(minimum_number(a, b), minimum_number(maximum_number(a, b), c))
    lowest = minimum_number(minimum_number(a, b), c)
    return np.where(np.isnan(a) | np.isnan(b) | np.isnan(c), lowest, middle)


def _unfused(literal: int) -> Function:
    """v_mad_f32 and its like of gfx90a: the product is rounded, and denormals are flushed always. `literal` is its place, or -1."""

    def run(
        s0: Any, s1: Any, s2: Any, d0: Any, scc: Any, vcc: Any, execute: Any, lane: Any, simm16: Any, simm32: Any
    ) -> tuple[Any, Any, Any, Any]:
        operands = [s0, s1, s2] if literal < 0 else [s0, simm32, s1] if literal == 1 else [s0, s1, simm32]
        if literal == -2:
            operands[2] = d0
        a, b, c = (flush32(_f32(value)) for value in operands)
        return _bits(flush32((flush32((a * b).astype(F32)) + c).astype(F32))), scc, None, execute

    return run


def _wide_product(signed: bool) -> Function:
    """v_mad_u64_u32, v_mad_i64_i32: 64 bits and a carry."""

    def run(s0: Any, s1: Any, s2: Any, d0: Any, scc: Any, vcc: Any, execute: Any, *_: Any) -> tuple[Any, Any, Any, Any]:
        if signed:
            product = np.asarray(s0).view(I32).astype(I64) * np.asarray(s1).view(I32).astype(I64)
            total = (product + np.asarray(s2).view(I64)).astype(I64)
            overflow = ((product ^ total) & (np.asarray(s2).view(I64) ^ total)) < 0
            # Bit 64 of the exact sum, as the text says: the sign of the sum without overflow.
            return total.view(U64), scc, (total < 0) ^ overflow, execute
        unsigned = np.asarray(s0).astype(U64) * np.asarray(s1).astype(U64)
        result = unsigned + s2
        return result, scc, result < unsigned, execute

    return run


def _divide_scale(wide: bool) -> Function:
    """Operands of a division, away from the ends of the range. The text for f32 asks whether 1 / S1 is a denormal of f64."""
    far, steps, tiny = (768, 128, 53) if wide else (96, 64, 23)

    def run(s0: Any, s1: Any, s2: Any, d0: Any, scc: Any, vcc: Any, execute: Any, *_: Any) -> tuple[Any, Any, Any, Any]:
        real = _f64 if wide else _f32
        own, below, above = np.broadcast_arrays(real(s0), real(s1), real(s2))
        reciprocal, quotient = is_denormal((1 / below).astype(below.dtype)), is_denormal(above / below)
        is_below, is_above = own == below, own == above
        # (the case, by how much the operand is scaled, whether v_div_fmas scales back)
        cases = (
            (exponent(above) - exponent(below) >= far, np.where(is_below, steps, 0), True),
            (is_denormal(below), steps, False),
            # The text scales up, which overflows, and is what v_div_fmas scales up once more.
            (reciprocal & quotient, np.where(is_below, -steps, 0), True),
            (reciprocal, -steps, False),
            (quotient, np.where(is_above, steps, 0), True),
            (exponent(above) <= tiny, steps, False),
        )
        which = [case for case, _, _ in cases]
        scaled = np.ldexp(own, np.select(which, [by for _, by, _ in cases], 0).astype(I32))
        lanes = np.select(which, [back for _, _, back in cases], False)
        zero = (above == 0) | (below == 0)
        return _bits(np.where(zero, np.nan, scaled).astype(own.dtype)), scc, lanes & ~zero, execute

    return run


def _divide_fmas(wide: bool) -> Function:
    """The scale undoes what v_div_scale did: up when the numerator is large, else down. The text knows only one of the two.

    Rounded once: what is scaled down may become a denormal, and the quotient is the nearest one all the same."""

    def run(s0: Any, s1: Any, s2: Any, d0: Any, scc: Any, vcc: Any, execute: Any, *_: Any) -> tuple[Any, Any, Any, Any]:
        real, fused, steps, bias = (_f64, fma64, 128, 1023) if wide else (_f32, fma32, 64, 127)
        a, b, c = real(s0), real(s1), real(s2)
        exact = a.astype(np.longdouble) * b + c
        scaled = np.ldexp(exact, np.where(exponent(c) > bias, steps, -steps)).astype(c.dtype)
        return _bits(np.where(vcc, scaled, fused(a, b, c)).astype(c.dtype)), scc, None, execute

    return run


def _divide_fixup(wide: bool) -> Function:
    """As the text has it, but for a quotient so large that the steps before went by infinity to a NaN: no quotient of numbers is one."""
    limit = 1075 if wide else 150

    def run(s0: Any, s1: Any, s2: Any, d0: Any, scc: Any, vcc: Any, execute: Any, *_: Any) -> tuple[Any, Any, Any, Any]:
        real = _f64 if wide else _f32
        quotient, below, above = real(s0), real(s1), real(s2)
        sign = np.where(np.signbit(below) ^ np.signbit(above), -1.0, 1.0)
        result = np.where(np.isnan(quotient), np.inf, np.abs(quotient))
        result = np.where(exponent(above) - exponent(below) < -limit, 0.0, result)
        result = np.where(np.isinf(below) | (above == 0), 0.0, result)
        result = np.where(np.isinf(above) | (below == 0), np.inf, result)
        both = ((above == 0) & (below == 0)) | (np.isinf(above) & np.isinf(below)) | np.isnan(above) | np.isnan(below)
        return _bits(np.where(both, np.nan, result * sign).astype(quotient.dtype)), scc, None, execute

    return run


def _scale_exponent(kind: Any) -> Callable[..., Lanes]:
    def compute(a: Lanes, b: Lanes, _: Lanes) -> Lanes:
        if kind is F64:
            return _bits(np.ldexp(_f64(a), np.asarray(b).astype(U32).view(I32)))
        if kind is F32:
            return _bits(np.ldexp(_f32(a), np.asarray(b).view(I32)))
        return _bits(np.ldexp(_f16(a), np.asarray(b).astype(U16).view(I16).astype(I32)))

    return compute


def half_towards_zero(x: Lanes) -> Lanes:
    """The bits of the f16 nearest to `x` that is not larger in magnitude."""
    near = np.asarray(x).astype(F16)
    bits = near.view(U16)
    too_large = np.abs(near.astype(F64)) > np.abs(np.asarray(x).astype(F64))
    return np.where(too_large, bits - U16(1), bits).astype(U32)


def _pack(low: Lanes, high: Lanes) -> Lanes:
    return (np.asarray(low).astype(U32) & U32(0xFFFF)) | np.asarray(high).astype(U32) << U32(16)


def _norm(signed: bool, kind: Any) -> Callable[[Lanes], Lanes]:
    def convert(bits: Lanes) -> Lanes:
        x = (_f16(bits) if kind is F16 else _f32(bits)).astype(F64)
        low, scale = (-1.0, 32767.0) if signed else (0.0, 65535.0)
        return np.rint(np.clip(np.nan_to_num(x), low, 1.0) * scale).astype(I64).astype(U16)

    return convert


def _absolute_differences(size: int) -> Callable[..., Lanes]:
    def compute(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        total = np.asarray(c).astype(U32)
        mask = (1 << size) - 1
        for shift in range(0, 32, size):
            x = (np.asarray(a) >> U32(shift) & U32(mask)).astype(I64)
            y = (np.asarray(b) >> U32(shift) & U32(mask)).astype(I64)
            total = total + np.abs(x - y).astype(U32)
        return total

    return compute


def _lanes_below(low: bool) -> Function:
    """v_mbcnt: how many of the mask's bits stand for lanes before this one."""

    def run(s0: Any, s1: Any, s2: Any, d0: Any, scc: Any, vcc: Any, execute: Any, lane: Any, *_: Any) -> tuple[Any, Any, Any, Any]:
        before = np.minimum(lane, 32) if low else np.maximum(lane.astype(I64) - 32, 0)
        mask = ((U64(1) << before.astype(U64)) - U64(1)).astype(U32)
        return bit_count(np.asarray(s0) & mask) + s1, scc, None, execute

    return run


def _quads(width: int, kind: Any, whole: bool) -> Callable[[Any, Any], Any]:
    def compute(s0: Any, _: Any) -> Any:
        value, result = int(s0), 0
        for quad in range(width // 4):
            if value >> 4 * quad & 15:
                result |= (15 << 4 * quad) if whole else 1 << quad
        return kind(result)

    return compute


def _replicate(s0: Any, s1: Any, s2: Any) -> Any:
    value = int(s0)
    return U64(sum((value >> bit & 1) * (3 << 2 * bit) for bit in range(32)))


def _trig_preop(a: Lanes, b: Lanes, _: Lanes) -> Lanes:
    """53 bits of 2 / pi from a place that the exponent and a segment say."""
    return np.array([_trig_preop_one(float(x), int(y)) for x, y in zip(*np.broadcast_arrays(_f64(a), b), strict=True)]).view(U64)


def _trig_preop_one(x: float, segment: int) -> float:
    biased = int(exponent(np.float64(x)))
    shift = (segment & 31) * 53 + max(0, biased - 1077)
    # 1201 bits after the point of 2 / pi.
    bits = _two_over_pi() << shift & ((1 << 1201) - 1)
    top = bits >> 1201 - 53
    scale = -53 - shift + (128 if biased >= 1968 else 0)
    return float(np.ldexp(float(top), scale))


@cache
def _two_over_pi() -> int:
    """1201 bits after the point, by Machin's formula."""
    precision = 1400

    def arctangent(inverse: int) -> int:
        term, total, divisor = (1 << precision) // inverse, 0, 1
        while term:
            total += term // divisor if divisor & 2 == 0 else -(term // divisor)
            term //= inverse * inverse
            divisor += 2
        return total

    pi = 4 * (4 * arctangent(5) - arctangent(239))
    return ((2 << 2 * precision) // pi) >> precision - 1201


def _bytes_saturated(a: Lanes, *_: Lanes) -> Lanes:
    low = np.clip(np.asarray(a).astype(U16).view(I16), 0, 255).astype(U32)
    high = np.clip((np.asarray(a) >> U32(16)).astype(U16).view(I16), 0, 255).astype(U32)
    return low | high << U32(8)


def _narrow(to: Any) -> Callable[..., Lanes]:
    signed = to is I16
    view = I32 if signed else U32
    low, high = np.iinfo(to).min, np.iinfo(to).max

    def convert(x: Lanes) -> Lanes:
        return np.clip(np.asarray(x).view(view), low, high).astype(to).view(U16)

    return lambda a, b, _: _pack(convert(a), convert(b))


_CVT_OFF = np.array([0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1], F32) / F32(16)


def _bit_operation(a: Lanes, b: Lanes, c: Lanes, table: int) -> Lanes:
    """v_bitop3: `table` has the result for each combination of three bits."""
    result = np.zeros(np.broadcast(a, b, c).shape, U32)
    for index in range(8):
        if table >> index & 1:
            x, y, z = (v if index & bit else ~np.asarray(v) for v, bit in ((a, 4), (b, 2), (c, 1)))
            result |= x & y & z
    return result


def bit_operation(table: int) -> Function:
    return _value(lambda a, b, c: _bit_operation(a, b, c, table))


def _one_unit_off(bits: Lanes, exact: Lanes) -> Lanes:
    """An f32 that is less than one unit in the last place away, as the manuals allow: which of the two, the operand's bits say.

    Not further: the division of integers that LLVM makes of `v_rcp_f32` is wrong from one unit on."""
    near = exact.astype(F32)
    error = near.astype(F64) - exact
    other = np.where(error > 0, np.nextafter(near, F32(-np.inf)), np.nextafter(near, F32(np.inf)))
    moved = np.asarray(bits) * U32(2654435761) >> U32(31) == 1
    return np.where(np.isfinite(near) & (error != 0) & moved, other, near).astype(F32)


def _special(compute: Callable[[Lanes], Lanes]) -> dict[str, Function]:
    """A function of the transcendental unit: it takes and makes no denormals, and is not exact in f32."""

    def single(a: Lanes) -> Lanes:
        exact = compute(flush32(_f32(a)).astype(F64))
        return _bits(flush32(_one_unit_off(a, exact)))

    return {
        "F32": _value(lambda a, b, c: single(a)),
        "F16": _value(lambda a, b, c: _bits(compute(_f16(a).astype(F64)).astype(F16))),
    }


def _specials() -> dict[str, Function]:
    functions: dict[str, Callable[[Lanes], Lanes]] = {
        "EXP": np.exp2,
        "LOG": np.log2,
        "RCP": lambda x: 1.0 / x,
        "RCP_IFLAG": lambda x: 1.0 / x,
        "RSQ": lambda x: 1.0 / np.sqrt(x),
        "SQRT": np.sqrt,
        "SIN": sin_turns,
        "COS": cos_turns,
    }
    made = {}
    for name, compute in functions.items():
        for kind, function in _special(compute).items():
            for unit in ("V", "V_S"):
                made[f"{unit}_{name}_{kind}"] = function
    return made


def small_float(name: str, fnuz: bool, opsel: int) -> Function | None:
    """Conversions of 8-bit floats, whose text depends on fields of the encoding, and on the chip."""
    match = re.fullmatch(r"V_CVT_(PK_)?(?:F32_(FP8|BF8)|(FP8|BF8)_F32)", name)
    if match is None:
        return None
    exponent_bits = 4 if "FP8" in name else 5

    def widened(bits: Lanes) -> Lanes:
        return _bits(fp8_to_float(bits, exponent_bits, fnuz))

    def narrowed(bits: Lanes) -> Lanes:
        return float_to_fp8(_f32(bits), exponent_bits, fnuz)

    if match[3]:
        return _value(lambda a, b, c: narrowed(a) | narrowed(b) << U32(8)) if match[1] else None
    if match[1]:
        return _value(lambda a, b, c: widened(a).astype(U64) | widened(np.asarray(a) >> U32(8)).astype(U64) << U64(32))
    # "Byte select bits are reversed"; SDWA has selected already.
    shift = U32((0, 16, 8, 24)[opsel & 3])
    return _value(lambda a, b, c: widened(np.asarray(a) >> shift))


SPECIAL = _specials()

FUNCTIONS: dict[str, Function] = {
    **SPECIAL,
    **_two_floats(minimum_number, ("MIN", "MIN_NUM")),
    **_two_floats(maximum_number, ("MAX", "MAX_NUM")),
    **_two_floats(minimum, ("MINIMUM",)),
    **_two_floats(maximum, ("MAXIMUM",)),
    **_three_floats(minimum_number, minimum_number, ("MIN3", "MIN3_NUM")),
    **_three_floats(maximum_number, maximum_number, ("MAX3", "MAX3_NUM")),
    **_three_floats(minimum, minimum, ("MINIMUM3",)),
    **_three_floats(maximum, maximum, ("MAXIMUM3",)),
    **_three_floats(maximum_number, minimum_number, ("MAXMIN", "MAXMIN_NUM")),
    **_three_floats(minimum_number, maximum_number, ("MINMAX", "MINMAX_NUM")),
    "V_MED3_F32": _float32(_median),
    "V_MED3_F16": _float16(_median),
    "V_MED3_NUM_F32": _float32(_median),
    "V_MED3_NUM_F16": _float16(_median),
    "V_RNDNE_F32": _float32(lambda a, b, c: np.rint(a)),
    "V_RNDNE_F16": _float16(lambda a, b, c: np.rint(a)),
    "V_RNDNE_F64": _float64(lambda a, b, c: np.rint(a)),
    "S_RNDNE_F32": _float32(lambda a, b, c: np.rint(a)),
    "S_RNDNE_F16": _float16(lambda a, b, c: np.rint(a)),
    "V_FLOOR_F32": _float32(lambda a, b, c: np.floor(a)),
    "V_CEIL_F32": _float32(lambda a, b, c: np.ceil(a)),
    "V_LDEXP_F16": _value(_scale_exponent(F16)),
    "V_LDEXP_F32": _value(_scale_exponent(F32)),
    "V_LDEXP_F64": _value(_scale_exponent(F64)),
    # The text takes the exponent field, which is 0 for all denormals; the hardware takes the exponent.
    "V_FREXP_EXP_I32_F32": _value(lambda a, b, c: frexp_exponent(_f32(a)).view(U32)),
    "V_FREXP_EXP_I32_F64": _value(lambda a, b, c: frexp_exponent(_f64(a)).view(U32)),
    "V_FREXP_EXP_I16_F16": _value(lambda a, b, c: frexp_exponent(_f16(a)).view(U32) & U32(0xFFFF)),
    "V_MAD_F32": _unfused(-1),
    "V_MAC_F32": _unfused(-2),
    "V_MADMK_F32": _unfused(1),
    "V_MADAK_F32": _unfused(2),
    "V_DIV_FMAS_F32": _divide_fmas(False),
    "V_DIV_FMAS_F64": _divide_fmas(True),
    "V_MAD_U64_U32": _wide_product(False),
    "V_MAD_CO_U64_U32": _wide_product(False),
    "V_MAD_I64_I32": _wide_product(True),
    "V_MAD_CO_I64_I32": _wide_product(True),
    "V_PERM_B32": _value(select_bytes),
    "V_BFREV_B32": _value(lambda a, b, c: reverse_bits32(a)),
    "S_BREV_B32": _value(lambda a, b, c: U32(reverse_bits32(a))),
    "S_BREV_B64": _value(lambda a, b, c: U64(int(f"{int(a):064b}"[::-1], 2))),
    "V_DIV_SCALE_F32": _divide_scale(wide=False),
    "V_DIV_SCALE_F64": _divide_scale(wide=True),
    "V_DIV_FIXUP_F32": _divide_fixup(wide=False),
    "V_DIV_FIXUP_F64": _divide_fixup(wide=True),
    "V_FFBH_I32": _value(lambda a, b, c: sign_bits(a).view(U32)),
    "V_CLS_I32": _value(lambda a, b, c: sign_bits(a).view(U32)),
    "V_FFBH_U32": _value(lambda a, b, c: leading_zeros(a, 32).view(U32)),
    "V_CLZ_I32_U32": _value(lambda a, b, c: leading_zeros(a, 32).view(U32)),
    "V_FFBL_B32": _value(lambda a, b, c: trailing_zeros(a, 32).view(U32)),
    "V_CTZ_I32_B32": _value(lambda a, b, c: trailing_zeros(a, 32).view(U32)),
    "V_BCNT_U32_B32": _value(lambda a, b, c: bit_count(a) + b),
    "S_BCNT1_I32_B32": _with_scc(lambda a, b: U32(int(a).bit_count())),
    "S_BCNT1_I32_B64": _with_scc(lambda a, b: U32(int(a).bit_count())),
    "S_BCNT0_I32_B32": _with_scc(lambda a, b: U32(32 - int(a).bit_count())),
    "S_BCNT0_I32_B64": _with_scc(lambda a, b: U32(64 - int(a).bit_count())),
    "S_WQM_B32": _with_scc(_quads(32, U32, True)),
    "S_WQM_B64": _with_scc(_quads(64, U64, True)),
    "S_QUADMASK_B32": _with_scc(_quads(32, U32, False)),
    "S_QUADMASK_B64": _with_scc(_quads(64, U64, False)),
    "S_BITREPLICATE_B64_B32": _value(_replicate),
    "V_MBCNT_LO_U32_B32": _lanes_below(True),
    "V_MBCNT_HI_U32_B32": _lanes_below(False),
    "V_SAD_U8": _value(_absolute_differences(8)),
    "V_SAD_U16": _value(_absolute_differences(16)),
    "V_SAD_U32": _value(_absolute_differences(32)),
    "V_SAT_PK_U8_I16": _value(_bytes_saturated),
    "V_CVT_OFF_F32_I4": _value(lambda a, b, c: _bits(_CVT_OFF[np.asarray(a) & 15])),
    "V_CVT_PK_I16_I32": _value(_narrow(I16)),
    "V_CVT_PK_U16_U32": _value(_narrow(U16)),
    "V_CVT_PK_I16_F32": _value(lambda a, b, c: _pack(to_integer(_f32(a), I16).view(U16), to_integer(_f32(b), I16).view(U16))),
    "V_CVT_PK_U16_F32": _value(lambda a, b, c: _pack(to_integer(_f32(a), U16), to_integer(_f32(b), U16))),
    "V_CVT_PKRTZ_F16_F32": _value(lambda a, b, c: _pack(half_towards_zero(_f32(a)), half_towards_zero(_f32(b)))),
    "V_CVT_PK_RTZ_F16_F32": _value(lambda a, b, c: _pack(half_towards_zero(_f32(a)), half_towards_zero(_f32(b)))),
    "S_CVT_PK_RTZ_F16_F32": _value(lambda a, b, c: U32(_pack(half_towards_zero(_f32(a)), half_towards_zero(_f32(b))))),
    "V_CVT_PK_F16_F32": _value(lambda a, b, c: _pack(_bits(_f32(a).astype(F16)), _bits(_f32(b).astype(F16)))),
    "V_CVT_PK_BF16_F32": _value(lambda a, b, c: _pack(to_bfloat16(_f32(a)), to_bfloat16(_f32(b)))),
    "V_CVT_PK_NORM_I16_F32": _value(lambda a, b, c: _pack(_norm(True, F32)(a), _norm(True, F32)(b))),
    "V_CVT_PKNORM_I16_F32": _value(lambda a, b, c: _pack(_norm(True, F32)(a), _norm(True, F32)(b))),
    "V_CVT_PK_NORM_U16_F32": _value(lambda a, b, c: _pack(_norm(False, F32)(a), _norm(False, F32)(b))),
    "V_CVT_PKNORM_U16_F32": _value(lambda a, b, c: _pack(_norm(False, F32)(a), _norm(False, F32)(b))),
    "V_TRIG_PREOP_F64": _value(_trig_preop),
}
