"""Operands: registers, constants and literals, and what an encoding does to them on the way in."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .arithmetic import U32, U64
from .decode import Instruction
from .memory import PRIVATE_APERTURE, SHARED_APERTURE
from .traps import Unknown
from .wave import AGPR, EXEC, SCC, VCC, VGPR, Wave

Array = Any
Getter = Callable[[Wave], Array]

_INLINE = {240: 0.5, 241: -0.5, 242: 1.0, 243: -1.0, 244: 2.0, 245: -2.0, 246: 4.0, 247: -4.0, 248: 0.15915494309189532}
LITERAL = 255


@dataclass(frozen=True)
class Operand:
    """`number` is the place in the encoding; `kind` and `bits` are how the instruction sees it."""

    number: int
    kind: str
    bits: int
    literal: int = 0

    @property
    def is_vector(self) -> bool:
        return self.number >= VGPR

    @property
    def count(self) -> int:
        return max(1, self.bits // 32)

    @property
    def registers(self) -> tuple[int, ...]:
        if self.number >= VGPR or self.number < 128:
            return tuple(range(self.number, self.number + self.count))
        return {251: (VCC, VCC + 1), 252: (EXEC,), 253: (SCC,)}.get(self.number, ())


def format_of(instruction: Instruction, field: str) -> tuple[str, int]:
    """(kind, bits) of a field by AMD's table: kind is f, i, u, b, or pk for packed halves."""
    found = instruction.fields.operands.get(field)
    if found is None:
        return "b", 32
    name, bits = found[0].name.removeprefix("FMT_NUM_"), int(found[1])
    if name.startswith("PK"):
        return "pk", bits
    letter = name[0].lower()
    return (letter if letter in "fiub" and name[1:2].isdigit() else "bf" if name.startswith("BF16") else "b"), bits


def constant(number: int, kind: str, bits: int, literal: int) -> int | None:
    """The value of an inline constant or a literal; None for a register."""
    mask = (1 << max(bits, 32)) - 1
    if 128 <= number <= 192:
        return number - 128
    if 193 <= number <= 208:
        return (192 - number) & mask
    if number in _INLINE:
        value = _INLINE[number]
        if bits == 64 and kind != "pk":
            return int.from_bytes(struct.pack("<d", value), "little")
        if bits == 16 or (kind == "pk" and bits == 32):
            return int.from_bytes(struct.pack("<e", value), "little")
        return int.from_bytes(struct.pack("<f", value), "little")
    if number == LITERAL:
        if bits == 64 and kind == "f":
            return literal << 32
        if bits == 64 and kind == "i" and literal >> 31:
            return literal | 0xFFFFFFFF << 32
        return literal
    return None


def read_scalar(wave: Wave, number: int, bits: int) -> int:
    """The value of a scalar register operand."""
    if number < 128:
        if number == wave.null:
            return 0
        if bits <= 32:
            return wave.s[number]
        return sum(wave.s[number + index] << 32 * index for index in range(bits // 32))
    match number:
        case 235 | 236:
            return (SHARED_APERTURE << 32 | (0xFFFFFFFF if number == 236 else 0)) if bits == 64 else SHARED_APERTURE
        case 237 | 238:
            return (PRIVATE_APERTURE << 32 | (0xFFFFFFFF if number == 238 else 0)) if bits == 64 else PRIVATE_APERTURE
        case 251:
            return int(wave.read_mask(VCC) == 0)
        case 252:
            return int(wave.exec == 0)
        case 253:
            return wave.scc
    raise Unknown(f"operand {number}")


def scalar_getter(operand: Operand) -> Callable[[Wave], int]:
    value = constant(operand.number, operand.kind, operand.bits, operand.literal)
    if value is not None:
        return lambda wave: value
    number, bits = operand.number, operand.bits
    if number < 128 and bits <= 32 and number not in (124, 125):
        return lambda wave: wave.s[number]
    return lambda wave: read_scalar(wave, number, bits)


def vector_getter(operand: Operand, *, high_half: bool = False) -> Getter:
    """All lanes of an operand: an array, or a numpy scalar where all lanes see one value."""
    wide = operand.bits == 64
    kind = U64 if wide else U32
    if operand.is_vector:
        row = operand.number - VGPR if operand.number < AGPR else operand.number - AGPR + 256
        if wide:
            return lambda wave: wave.pair(row)
        if high_half:
            return lambda wave: wave.v[row] >> U32(16)
        return lambda wave: wave.v[row]
    value = constant(operand.number, operand.kind, operand.bits, operand.literal)
    if value is not None:
        fixed = kind(value >> 16 if high_half else value)
        return lambda wave: fixed
    get = scalar_getter(operand)
    if high_half:
        return lambda wave: U32(get(wave) >> 16)
    return lambda wave: kind(get(wave))


def with_sign(get: Getter, bits: int, *, negate: bool, absolute: bool) -> Getter:
    """The modifiers of a float operand."""
    if not negate and not absolute:
        return get
    kind = U64 if bits == 64 else U32
    sign = kind(1 << bits - 1)
    rest = kind((1 << max(bits, 32)) - 1 ^ (1 << bits - 1))

    def changed(wave: Wave) -> Array:
        value = get(wave)
        if absolute:
            value = value & rest
        return value ^ sign if negate else value

    return changed


def halves(get: Getter, low: bool, high: bool, negate_low: bool, negate_high: bool) -> Getter:
    """A packed operand: which half of the register is which half of the value, and their signs."""

    def packed(wave: Wave) -> Array:
        value = np.asarray(get(wave))
        first = value >> U32(16) if low else value & U32(0xFFFF)
        second = value & U32(0xFFFF0000) if high else value << U32(16)
        if negate_low:
            first = first ^ U32(0x8000)
        if negate_high:
            second = second ^ U32(0x80000000)
        return first | second

    return packed if (low, high, negate_low, negate_high) != (False, True, False, False) else get


def words(operand: Operand, low: bool, high: bool, negate_low: bool, negate_high: bool) -> Getter:
    """A pair of f32: which register is which half."""
    get = vector_getter(operand)
    flip = U64((1 << 31 if negate_low else 0) | (1 << 63 if negate_high else 0))
    # What the high half of a constant is, the manuals do not say; of 0 it is 0.
    if high and not operand.is_vector and constant(operand.number, operand.kind, operand.bits, operand.literal) not in (None, 0):
        raise Unknown("the high half of a constant, in a packed f32 operation")

    def paired(wave: Wave) -> Array:
        value = np.asarray(get(wave))
        first = value >> U64(32) if low else value & U64(0xFFFFFFFF)
        second = value >> U64(32) if high else value & U64(0xFFFFFFFF)
        return (first | second << U64(32)) ^ flip

    return paired


def byte_or_word(get: Getter, select: int, signed: bool) -> Getter:
    """SDWA: a byte or a word of the register, extended."""
    if select == 6:
        return get
    shift, bits = (8 * select, 8) if select < 4 else (16 * (select - 4), 16)

    def selected(wave: Wave) -> Array:
        value = np.asarray(get(wave)) >> U32(shift) & U32((1 << bits) - 1)
        if signed:
            sign = U32(1 << bits - 1)
            value = (value ^ sign) - sign
        return value

    return selected
