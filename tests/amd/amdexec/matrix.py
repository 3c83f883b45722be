"""Matrix instructions: MFMA of CDNA and WMMA of RDNA.

The manuals define the arithmetic by a formula, so the layouts are written here. Sums are made in float64 and rounded once:
the order in which the hardware adds is not documented.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arithmetic import F16, F32, F64, I8, I32, I64, U8, U16, U32, fp8_to_float, from_bfloat16, to_bfloat16
from .decode import Instruction
from .operands import constant
from .operation import Operation
from .traps import Trap, Unknown
from .wave import VGPR, Wave

Array = Any

_MFMA = re.compile(r"V_MFMA_(F32|F64|I32)_(\d+)X(\d+)X(\d+)(?:_(\d+)B)?_(F64|F32|XF32|F16|BF16|I8|(?:FP8|BF8)_(?:FP8|BF8))")
_WMMA = re.compile(r"V_WMMA_(F32|F16|BF16|I32)_16X16X16_(F16|BF16|IU8|(?:FP8|BF8)_(?:FP8|BF8))")
# The chips whose 8-bit floats have no infinity and no negative zero.
FNUZ = ("gfx942", "gfx9-4-generic")
_BITS = {"F64": 64, "F32": 32, "XF32": 32, "F16": 16, "BF16": 16, "I8": 8, "IU8": 8, "FP8": 8, "BF8": 8}


@dataclass(frozen=True)
class _File:
    """Registers of an operand: `row` in the two register files, or a constant."""

    row: int
    count: int
    value: float | None = None

    @property
    def registers(self) -> tuple[int, ...]:
        return () if self.value is not None else tuple(range(VGPR + self.row, VGPR + self.row + self.count))


def build_matrix(instruction: Instruction, family: str, wave_size: int, target: str) -> Operation | None:
    name = instruction.base
    if name.startswith("V_MFMA_"):
        return _mfma(instruction, target)
    if name.startswith("V_WMMA_"):
        return _wmma(instruction, family, wave_size)
    if name.startswith(("V_SMFMAC", "V_SWMMAC")):
        raise Unknown(name)
    return None


def _elements(wave: Wave, file: _File, kind: str, fnuz: bool) -> Array:
    """All elements that the lanes hold, as float64: an array [lane, element]."""
    rows = np.ascontiguousarray(wave.v[file.row : file.row + file.count].T)
    return decode(rows, kind, fnuz)


def decode(rows: Array, kind: str, fnuz: bool, signed: bool = True) -> Array:
    match kind:
        case "F64":
            return rows.view(F64)
        case "F32":
            return rows.view(F32).astype(F64)
        case "XF32":
            # 10 bits of the mantissa. How they are rounded, the manual does not say: here to the nearest, ties to even.
            odd = rows >> U32(13) & U32(1)
            return (rows + U32(0xFFF) + odd & U32(0xFFFFE000)).view(F32).astype(F64)
        case "F16":
            return rows.view(F16).astype(F64)
        case "BF16":
            return from_bfloat16(rows.view(U16)).astype(F64)
        case "I8" | "IU8":
            return rows.view(I8 if signed else U8).astype(I64)
        case "FP8":
            return fp8_to_float(rows.view(U8), 4, fnuz).astype(F64)
        case "BF8":
            return fp8_to_float(rows.view(U8), 5, fnuz).astype(F64)
    raise Unknown(f"elements of type {kind}")


def _file(instruction: Instruction, field: str, count: int, accumulator: bool) -> _File:
    number = instruction.raw(field)
    if field == "vdst":
        return _File(number + (256 if accumulator else 0), count)
    if number >= VGPR:
        return _File(number - VGPR + (256 if accumulator else 0), count)
    value = constant(number, "f", 32, instruction.literal)
    if value is None:
        raise Unknown(f"{instruction}: a scalar register as a matrix")
    return _File(0, 0, float(np.uint32(value).view(F32)) if "I32" not in instruction.name else float(np.uint32(value).view(I32)))


def _spread(operands: tuple[_File, ...], result: _File) -> Callable[[Wave], None]:
    reads = tuple(register for file in operands for register in file.registers)

    def spread(wave: Wave) -> None:
        bad = any(register in wave.undefined for register in reads)
        for register in result.registers:
            wave.set_undefined_bits(register, wave.full if bad else 0)

    return spread


# -- MFMA


def _without_denormals(values: Array, smallest: float) -> Array:
    return np.where(np.abs(values) < smallest, 0.0, values)


def _mfma(instruction: Instruction, target: str) -> Operation:
    fnuz = target in FNUZ
    match = _MFMA.fullmatch(instruction.base)
    if match is None:
        raise Unknown(instruction.name)
    out, m, n, k = match[1], int(match[2]), int(match[3]), int(match[4])
    blocks = int(match[5] or 1)
    first, _, second = match[6].partition("_")
    if instruction.number("cbsz") or instruction.number("abid") or instruction.number("blgp"):
        raise Unknown(f"{instruction}: broadcasts inside of a matrix")
    if out == "F64" and blocks > 1:
        raise Unknown(instruction.name)
    per_lane = m * k * blocks // 64
    input_rows = max(1, per_lane * _BITS[first] // 32)
    output_rows = m * n * blocks // 64 * (2 if out == "F64" else 1)
    accumulator = instruction.number("acc")
    a = _file(instruction, "src0", input_rows, bool(accumulator & 1))
    b = _file(instruction, "src1", input_rows, bool(accumulator >> 1 & 1))
    c = _file(instruction, "src2", output_rows, bool(instruction.number("acc_cd")))
    d = _file(instruction, "vdst", output_rows, bool(instruction.number("acc_cd")))
    place_lane, place_item = _mfma_output(m, n, blocks, out)
    input_lane, input_item = _mfma_input(m, k, blocks, per_lane)
    block, row, column = np.indices((blocks, m, n))
    places = place_lane(block, row, column), place_item(block, row, column)
    integer = out == "I32"
    # AMD says of gfx90a that products of these types take and give no denormals.
    smallest = {"F16": 2.0**-14, "BF16": 2.0**-126}.get(first, 0.0) if target == "gfx90a" else 0.0

    def run(wave: Wave) -> None:
        left = _elements(wave, a, first, fnuz)[input_lane, input_item]
        right = _elements(wave, b, second or first, fnuz)[input_lane, input_item]
        old = _old(wave, c, out, (64, output_rows // (2 if out == "F64" else 1)))
        if smallest:
            left, right, old = _without_denormals(left, smallest), _without_denormals(right, smallest), _without_denormals(old, 2.0**-126)
        total = np.einsum("bik,bjk->bij", left, right) + old[places]
        if smallest:
            total = _without_denormals(total, 2.0**-126)
        result = np.zeros(old.shape, I64 if integer else F64)
        result[places] = total
        _put(wave, d, result, out)

    return Operation(instruction, run, "matrix", a.registers + b.registers + c.registers, d.registers, _spread((a, b, c), d))


def _old(wave: Wave, c: _File, out: str, shape: tuple[int, int]) -> Array:
    if c.value is not None:
        return np.full(shape, c.value, I64 if out == "I32" else F64)
    rows = np.ascontiguousarray(wave.v[c.row : c.row + c.count].T)
    if out == "F64":
        return rows.view(F64)
    return rows.view(I32).astype(I64) if out == "I32" else rows.view(F32).astype(F64)


def _put(wave: Wave, d: _File, result: Array, out: str) -> None:
    if out == "F64":
        rows = np.ascontiguousarray(result).view(U32)
    elif out == "I32":
        rows = result.astype(I32).view(U32)
    else:
        rows = result.astype(F32).view(U32)
    wave.v[d.row : d.row + d.count] = rows.T


def _mfma_input(m: int, k: int, blocks: int, per_lane: int) -> tuple[Array, Array]:
    """Where element [block, row, k] of A lies, and by symmetry [block, column, k] of B."""
    block, row, inner = np.indices((blocks, m, k))
    return row + m * (inner // per_lane) + m * (k // per_lane) * block, inner % per_lane


def _mfma_output(m: int, n: int, blocks: int, out: str) -> tuple[Callable[..., Array], Callable[..., Array]]:
    if out == "F64":
        return (lambda b, i, j: j + 16 * (i % 4)), (lambda b, i, j: i // 4)
    if m == 4:
        return (lambda b, i, j: j + 4 * b), (lambda b, i, j: i)
    groups = 64 // n
    per_block = m * n // 64
    return (lambda b, i, j: j + n * (i // 4 % groups)), (lambda b, i, j: i % 4 + 4 * (i // (4 * groups)) + per_block * b)


# -- WMMA


def _wmma(instruction: Instruction, family: str, wave_size: int) -> Operation:
    match = _WMMA.fullmatch(instruction.base)
    if match is None or wave_size != 32:
        raise Unknown(f"{instruction.name} in wave{wave_size}")
    out, kind = match[1], match[2]
    first, _, second = kind.partition("_")
    integer = kind == "IU8"
    if not integer and (instruction.number("neg") or instruction.number("neg_hi")):
        raise Unknown(f"{instruction}: signs of matrices")
    doubled = family == "rdna3"
    input_rows = (16 if doubled else 8) * _BITS[first] // 32
    packed = out in ("F16", "BF16") and not doubled
    output_rows = 4 if packed else 8
    a = _file(instruction, "src0", input_rows, False)
    b = _file(instruction, "src1", input_rows, False)
    c = _file(instruction, "src2", output_rows, False)
    d = _file(instruction, "vdst", output_rows, False)
    lane, element = np.arange(32)[:, None], np.arange(8)[None, :]
    row = 2 * element + lane // 16 if doubled else 8 * (lane // 16) + element
    column = lane % 16 + 0 * element
    signs = instruction.number("neg")
    high = bool(instruction.number("opsel") >> 2 & 1)

    def matrix(wave: Wave, file: _File, element_kind: str, signed: bool) -> Array:
        """[row or column, k]."""
        rows = np.ascontiguousarray(wave.v[file.row : file.row + file.count].T)
        if doubled:
            if (rows[:16] != rows[16:]).any():
                raise Trap("the halves of the wave hold different matrices")
            return decode(rows[:16], element_kind, False, signed)
        values = decode(rows, element_kind, False, signed)
        return np.concatenate([values[:16], values[16:]], axis=1)

    def run(wave: Wave) -> None:
        left = matrix(wave, a, first, bool(signs & 1))
        right = matrix(wave, b, second or first, bool(signs >> 1 & 1))
        old = _wmma_old(wave, c, out, packed, high)
        total = (left @ right.T)[row, column] + old
        _wmma_put(wave, d, total, out, packed, high)

    return Operation(instruction, run, "matrix", a.registers + b.registers + c.registers, d.registers, _spread((a, b, c), d))


def _wmma_old(wave: Wave, c: _File, out: str, packed: bool, high: bool) -> Array:
    if c.value is not None:
        return np.full((32, 8), c.value, I64 if out == "I32" else F64)
    rows = np.ascontiguousarray(wave.v[c.row : c.row + c.count].T)
    if out == "I32":
        return rows.view(I32).astype(I64)
    if out == "F32":
        return rows.view(F32).astype(F64)
    values = decode(rows, out, False)
    return values if packed else values[:, 1 if high else 0 :: 2]


def _wmma_put(wave: Wave, d: _File, total: Array, out: str, packed: bool, high: bool) -> None:
    if out == "I32":
        rows = total.astype(I32).view(U32)
    elif out == "F32":
        rows = total.astype(F32).view(U32)
    else:
        half = total.astype(F16).view(U16) if out == "F16" else to_bfloat16(total.astype(F32)).astype(U16)
        if packed:
            rows = np.ascontiguousarray(half).view(U32)
        else:
            before = np.ascontiguousarray(wave.v[d.row : d.row + d.count].T).view(U16).copy()
            before[:, 1 if high else 0 :: 2] = half
            rows = before.view(U32)
    wave.v[d.row : d.row + d.count] = rows.T
