"""The vector unit: arithmetic over all active lanes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import crosslane
from .arithmetic import F16, F32, F64, I64, U16, U32, U64, fma32, set_rounding
from .byhand import Function, bit_operation, small_float
from .decode import Instruction
from .matrix import FNUZ, build_matrix
from .operands import (
    Getter,
    Operand,
    byte_or_word,
    format_of,
    halves,
    vector_getter,
    with_sign,
    words,
)
from .operation import Operation, Run, function, modes_of
from .traps import Unknown
from .wave import EXEC, PERMUTED, VCC, VGPR, Wave, lanes_of, mask_of

Array = Any

# On GFX9 these keep the other half of their destination; the other 16-bit operations clear it (zeroesHigh16BitsOfDest in LLVM's
# GCNSubtarget).
_KEEPS_HIGH_ON_CDNA = {
    *("V_MAD_F16", "V_MAD_U16", "V_MAD_I16", "V_FMA_F16", "V_DIV_FIXUP_F16", "V_MAD_MIXLO_F16", "V_MAD_MIXHI_F16"),
    *("V_CVT_PK_FP8_F32", "V_CVT_PK_BF8_F32"),
}
_SATURATING = {
    "V_ADD_U32": (np.uint32, 1),
    "V_ADD_NC_U32": (np.uint32, 1),
    "V_SUB_U32": (np.uint32, -1),
    "V_SUB_NC_U32": (np.uint32, -1),
    "V_ADD_I32": (np.int32, 1),
    "V_ADD_NC_I32": (np.int32, 1),
    "V_SUB_I32": (np.int32, -1),
    "V_SUB_NC_I32": (np.int32, -1),
}
# Their low word depends on the low words of their operands alone.
_LOW_FROM_LOW = {
    "V_MAD_U64_U32",
    "V_MAD_I64_I32",
    "V_MAD_CO_U64_U32",
    "V_MAD_CO_I64_I32",
    "V_LSHL_ADD_U64",
    "V_ADD_U64",
    "V_ADD_NC_U64",
    "V_LSHLREV_B64",
    "V_MOV_B64",
}
_CARRY_IN = ("ADDC_CO", "SUBB_CO", "SUBBREV_CO", "ADD_CO_CI", "SUB_CO_CI", "SUBREV_CO_CI")


@dataclass(frozen=True)
class Context:
    """What the code object says about all of its instructions."""

    family: str
    wave: int
    ieee: bool
    target: str


def build(instruction: Instruction, context: Context) -> Operation:
    name = instruction.base
    matrix = build_matrix(instruction, context.family, context.wave, context.target)
    if matrix is not None:
        return matrix
    special = crosslane.build(instruction, context.wave)
    if special is not None:
        return special
    if instruction.form == "VOPD":
        return _dual(instruction, context)
    if name in ("V_NOP", "V_PIPEFLUSH"):
        return Operation(instruction, lambda wave: None, "nop")
    if instruction.form == "VOP3P" and "MIX" in name:
        return _mixed(instruction, context)
    operation = _arithmetic(instruction, context)
    if instruction.variant in ("DPP16", "DPP8"):
        return crosslane.with_lane_pattern(operation, instruction, context.wave)
    if context.family == "cdna" and name == "V_MOV_B32" and not instruction.variant:
        return crosslane.indexed_move(operation, instruction)
    return operation


@dataclass
class _Source:
    place: str
    field: str
    operand: Operand
    get: Getter


def _sources(instruction: Instruction, family: str) -> list[_Source]:
    """S0, S1 and S2 with the modifiers of the encoding."""
    found = []
    shuffled = instruction.variant in ("DPP16", "DPP8", "SDWA")
    for index, names in enumerate((("src0",), ("src1", "vsrc1"), ("src2",))):
        field = next((name for name in names if instruction.has(name)), None)
        if field is None:
            continue
        table = instruction.fields.operands
        # The decoder's table has some operands under the names of another encoding.
        key = next((name for name in (field, f"v{field}", field.removeprefix("v")) if name in table), None)
        if key is None:
            continue
        kind, bits = format_of(instruction, key)
        number = instruction.raw(field)
        if field == "vsrc1":
            number += VGPR
        if shuffled and index == 0:
            number = instruction.raw("vsrc0") + VGPR if instruction.variant == "SDWA" else PERMUTED
        if instruction.variant == "SDWA":
            scalar = instruction.number(f"s{index}")
            number = number - VGPR if scalar else number
        get, operand = _modified(instruction, index, Operand(number, kind, bits, instruction.literal), family)
        found.append(_Source(f"S{index}", field, operand, get))
    return found


def _modified(instruction: Instruction, index: int, operand: Operand, family: str) -> tuple[Getter, Operand]:
    form = instruction.form
    if form == "VOP3P" and not instruction.base.startswith("V_DOT4") and not instruction.base.startswith("V_DOT8"):
        low = instruction.number("opsel") >> index & 1
        high = (instruction.number("opsel_hi") | instruction.number("opsel_hi2") << 2) >> index & 1
        negative = instruction.number("neg") >> index & 1, instruction.number("neg_hi") >> index & 1
        if operand.bits == 64:
            return words(operand, bool(low), bool(high), bool(negative[0]), bool(negative[1])), operand
        return halves(vector_getter(operand), bool(low), bool(high), bool(negative[0]), bool(negative[1])), operand
    high_half = False
    if operand.bits == 16:
        if form in ("VOP1", "VOP2", "VOPC") and family != "cdna" and operand.is_vector and instruction.variant != "DPP16":
            high_half = operand.number >= VGPR + 128
            operand = Operand(operand.number - 128 if high_half else operand.number, operand.kind, 16, operand.literal)
        elif form in ("VOP3", "VOP3SD") and instruction.has("opsel"):
            high_half = bool(instruction.number("opsel") >> index & 1)
    get = vector_getter(operand, high_half=high_half)
    if instruction.variant == "SDWA" and index < 2:
        get = byte_or_word(get, instruction.number(f"src{index}_sel"), bool(instruction.number(f"src{index}_sext")))
    if instruction.has(f"src{index}_neg") and form in ("VOP1", "VOP2", "VOPC"):
        negate, absolute = instruction.number(f"src{index}_neg"), instruction.number(f"src{index}_abs")
    else:
        negate, absolute = instruction.number("neg") >> index & 1, instruction.number("abs") >> index & 1
    if "BITOP3" in instruction.name or form == "VOP3P":
        negate = absolute = 0
    return with_sign(get, operand.bits, negate=bool(negate), absolute=bool(absolute)), operand


def _widths(sources: list[_Source], destination_bits: int) -> tuple[tuple[str, int], ...]:
    widths = {source.place: max(32, source.operand.bits) for source in sources}
    widths["D0"] = destination_bits
    return tuple(sorted(widths.items()))


def _destination(instruction: Instruction, family: str) -> tuple[int, str, int, bool]:
    """(row, kind, bits, whether the high half is meant)."""
    kind, bits = format_of(instruction, "vdst")
    row = instruction.raw("vdst")
    high = False
    if bits == 16:
        if instruction.form in ("VOP1", "VOP2") and family != "cdna":
            high, row = row >= 128, row & 127
        elif instruction.form in ("VOP3", "VOP3SD") and instruction.has("opsel"):
            high = bool(instruction.number("opsel") >> 3 & 1)
    return row, kind, bits, high


def _lane_mask_in(instruction: Instruction, sources: list[_Source]) -> tuple[int | None, list[_Source]]:
    """The scalar register of a carry or a condition that the instruction takes for each lane."""
    base = instruction.base.replace("V_DUAL_", "V_")
    if "CNDMASK" in base or any(part in base for part in _CARRY_IN):
        if instruction.form in ("VOP3", "VOP3SD"):
            mask = next(source for source in sources if source.field == "src2")
            return mask.operand.number, [source for source in sources if source is not mask]
        return VCC, sources
    if "DIV_FMAS" in base:
        return VCC, sources
    return None, sources


def _arithmetic(instruction: Instruction, context: Context) -> Operation:
    name, family = instruction.base, context.family
    sources = _sources(instruction, family)
    mask_in, sources = _lane_mask_in(instruction, sources)
    comparing = name.startswith("V_CMP")
    if comparing:
        return _comparison(instruction, context, sources)
    scalar_result = name.startswith("V_S_")
    row, kind, bits, high = _destination(instruction, family)
    widths = _widths(sources, max(32, bits))
    call = _caller(instruction, context, widths)
    reads_destination = _accumulates(name) or bits == 16 or (instruction.variant == "SDWA" and instruction.number("dst_unused") == 2)
    reads = tuple(register for source in sources for register in source.operand.registers)
    packed = _packed_words(instruction, sources) if instruction.form == "VOP3P" and bits == 64 else None
    if packed is not None:
        reads = tuple(dict.fromkeys(packed[0] + packed[1]))
    rows = tuple(VGPR + row + index for index in range(max(1, bits // 32)))
    if _accumulates(name):
        reads += rows
    if mask_in is not None:
        reads += (mask_in, mask_in + 1)[: context.wave // 32]
    mask_out = _mask_out(instruction)
    getters = [source.get for source in sources]
    finish = _finisher(instruction, kind, bits)
    lane = np.arange(context.wave, dtype=np.uint32)
    literal = np.uint32(instruction.literal)
    no_mask = np.zeros(context.wave, np.bool_)
    store = _store(instruction, family, row, bits, high)
    zero = np.uint32(0)

    def run(wave: Wave) -> None:
        values = [get(wave) for get in getters]
        while len(values) < 3:
            values.append(zero)
        old = (wave.pair(row) if bits == 64 else wave.v[row]) if reads_destination else zero
        if name.startswith("V_DIV_SCALE"):
            old = values[0]
        mask = lanes_of(wave.read_mask(mask_in), wave.size) if mask_in is not None else no_mask
        result, _, lanes, _ = call(wave, values, old, mask, lane, literal)
        if scalar_result:
            return wave.write_scalar(row, int(np.asarray(result).reshape(-1)[0]), 32)
        if finish is not None:
            result = finish(result, values)
        store(wave, result)
        if mask_out is not None and lanes is not None:
            wave.write_mask(mask_out, mask_of(np.broadcast_to(lanes, (wave.size,))) & wave.exec)

    writes: tuple[int, ...] = (row,) if scalar_result else rows
    if mask_out is not None:
        writes += (mask_out, mask_out + 1)[: context.wave // 32]
    unit = "trans" if _is_special(name) else "valu"
    spread = spread_lanes(reads, writes, mask_in, context.wave)
    if packed is not None:
        spread = _spread_packed(packed, writes)
    elif bits == 64 and name in _LOW_FROM_LOW:
        spread = _spread_words(reads, _low_registers(sources), writes, spread)
    return Operation(instruction, run, unit, reads, writes, spread)


def _low_registers(sources: list[_Source]) -> tuple[int, ...]:
    return tuple(source.operand.registers[0] for source in sources if source.operand.registers)


def _spread_words(reads: tuple[int, ...], low_reads: tuple[int, ...], writes: tuple[int, ...], otherwise: Run) -> Run:
    """64-bit integers: the low word is defined where the low words of the operands are."""

    def spread(wave: Wave) -> None:
        undefined = wave.undefined
        if not any(register in undefined for register in reads):
            return otherwise(wave)
        low, all_of_them = wave.undefined_lanes(low_reads), wave.undefined_lanes(reads)
        wave.set_undefined(writes[0], low)
        wave.set_undefined(writes[1], all_of_them)
        for register in writes[2:]:
            wave.set_undefined_bits(register, 0xFFFFFFFF if all_of_them else 0)

    return spread


def _packed_words(instruction: Instruction, sources: list[_Source]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The registers that the low and the high half of a packed f32 operation depend on: the other word of a pair is never read."""
    low, high = instruction.number("opsel"), instruction.number("opsel_hi") | instruction.number("opsel_hi2") << 2
    halves_: list[tuple[int, ...]] = []
    for select in (low, high):
        chosen = [(source.operand.registers, select >> index & 1) for index, source in enumerate(sources)]
        halves_.append(tuple(registers[min(word, len(registers) - 1)] for registers, word in chosen if registers))
    return halves_[0], halves_[1]


def _spread_packed(packed: tuple[tuple[int, ...], tuple[int, ...]], writes: tuple[int, ...]) -> Run:
    every = frozenset(packed[0] + packed[1] + writes)

    def spread(wave: Wave) -> None:
        if wave.undefined.keys().isdisjoint(every):
            return
        bad = [wave.undefined_lanes(registers) for registers in packed]
        for register, lanes in zip(writes, bad, strict=True):
            wave.set_undefined(register, lanes)

    return spread


def _is_special(name: str) -> bool:
    return name.startswith(("V_EXP_F", "V_LOG_F", "V_RCP_", "V_RSQ_", "V_SQRT_", "V_SIN_", "V_COS_"))


def _accumulates(name: str) -> bool:
    return name.startswith(("V_FMAC", "V_MAC_", "V_DOT2C", "V_DOT4C", "V_DOT8C", "V_PK_FMAC", "V_DUAL_FMAC", "V_DOT2ACC", "V_DUAL_DOT2ACC"))


def _mask_out(instruction: Instruction) -> int | None:
    if instruction.form == "VOP3SD":
        return instruction.raw("sdst")
    if "_CO_" in instruction.base and instruction.form == "VOP2":
        return VCC
    return None


def _caller(instruction: Instruction, context: Context, widths: tuple[tuple[str, int], ...]) -> Callable[..., Any]:
    """Calls what computes the instruction, compiled for the float modes that the wave is in."""
    name = instruction.name
    if "BITOP3" in name:
        table = instruction.number("omod") << 6 | instruction.number("abs") << 3 | instruction.number("neg")
        fixed: Function | None = bit_operation(table)
    else:
        fixed = small_float(instruction.base, context.target in FNUZ, instruction.number("opsel"))
    opsel = instruction.number("opsel")
    opsel_hi = instruction.number("opsel_hi") | instruction.number("opsel_hi2") << 2
    neg = instruction.number("neg")
    made: dict[int, Function] = {}

    def make(float_mode: int) -> Function:
        modes = modes_of(context.wave, float_mode, context.ieee, opsel=opsel, opsel_hi=opsel_hi, neg=neg)
        made[float_mode] = fixed or function(context.family, name, False, widths, modes)[0]
        return made[float_mode]

    wide = any(kind in name for kind in ("F64", "F16"))
    make(0xF0)

    def call(wave: Wave, values: list[Array], old: Array, mask: Array, lane: Array, literal: Array) -> Any:
        mode = wave.float_mode
        compute = made.get(mode) or make(mode)
        if not mode & 15:
            return compute(values[0], values[1], values[2], old, False, mask, wave.exec, lane, literal, literal)
        set_rounding(mode >> 2 & 3 if wide else mode & 3)
        try:
            return compute(values[0], values[1], values[2], old, False, mask, wave.exec, lane, literal, literal)
        finally:
            set_rounding(0)

    return call


def _finisher(instruction: Instruction, kind: str, bits: int) -> Callable[[Array, list[Array]], Array] | None:
    """Output modifiers: times 2, times 4, half; and the clamp."""
    if "BITOP3" in instruction.name:
        return None
    omod = instruction.number("omod")
    clamp = bool(instruction.number("clmp"))
    if not omod and not clamp:
        return None
    name = instruction.base
    if clamp and not omod and name in _SATURATING:
        return _saturated(*_SATURATING[name])
    floats: dict[int, tuple[Any, Any]] = {16: (U16, F16), 32: (U32, F32), 64: (U64, F64)}
    if kind == "pk" and clamp and not omod and name.endswith("F16"):
        return lambda result, _: _clamped_halves(result)
    if kind == "pk" and clamp and not omod and name.endswith("F32"):
        return lambda result, _: np.clip(np.nan_to_num(np.ascontiguousarray(result).view(F32)), 0, 1).astype(F32).view(U64)
    if kind != "f" or bits not in floats:
        raise Unknown(f"{instruction}: an output modifier")
    raw, real = floats[bits]
    factor = {0: 1.0, 1: 2.0, 2: 4.0, 3: 0.5}[omod]

    def finish(result: Array, _: list[Array]) -> Array:
        value = np.asarray(result).astype(raw).view(real) * real(factor)
        if clamp:
            value = np.where(np.isnan(value), real(0), np.clip(value, real(0), real(1))).astype(real)
        return value.view(raw).astype(U64 if bits == 64 else U32)

    return finish


def _clamped_halves(result: Array) -> Array:
    value = np.ascontiguousarray(np.asarray(result).astype(U32)).view(F16)
    return np.where(np.isnan(value), F16(0), np.clip(value, F16(0), F16(1))).astype(F16).view(U32)


def _saturated(kind: Any, sign: int) -> Callable[[Array, list[Array]], Array]:
    info = np.iinfo(kind)

    def finish(_: Array, values: list[Array]) -> Array:
        a, b = (np.asarray(value).view(kind).astype(I64) for value in values[:2])
        return np.clip(a + sign * b, info.min, info.max).astype(kind).view(U32)

    return finish


def _store(instruction: Instruction, family: str, row: int, bits: int, high: bool) -> Callable[[Wave, Array], None]:
    if bits == 64:
        return lambda wave, result: wave.write_pair(row, np.asarray(result).astype(U64, copy=False))
    if instruction.variant == "SDWA":
        return _store_part(row, instruction.number("dst_sel"), instruction.number("dst_unused"))
    if bits == 16:
        clears = family == "cdna" and instruction.base not in _KEEPS_HIGH_ON_CDNA
        if high:
            return lambda wave, result: wave.write_row(row, wave.v[row] & U32(0xFFFF) | result << U32(16))
        if clears:
            return lambda wave, result: wave.write_row(row, result & U32(0xFFFF))
        return lambda wave, result: wave.write_row(row, wave.v[row] & U32(0xFFFF0000) | result & U32(0xFFFF))
    return lambda wave, result: wave.write_row(row, result)


def _store_part(row: int, select: int, unused: int) -> Callable[[Wave, Array], None]:
    """SDWA: the result goes into a byte or a word; the rest becomes zeros, signs, or stays."""
    if select == 6:
        return lambda wave, result: wave.write_row(row, result)
    shift, bits = (8 * select, 8) if select < 4 else (16 * (select - 4), 16)
    mask = (1 << bits) - 1

    def store(wave: Wave, result: Array) -> None:
        piece = (np.asarray(result) & U32(mask)) << U32(shift)
        if unused == 2:
            rest = wave.v[row] & U32(~(mask << shift) & 0xFFFFFFFF)
        elif unused == 1:
            sign = np.asarray(result) >> U32(bits - 1) & U32(1)
            above = 0xFFFFFFFF & ~((1 << shift + bits) - 1)
            rest = np.where(sign == 1, U32(above), U32(0))
        else:
            rest = U32(0)
        wave.write_row(row, piece | rest)

    return store


# -- comparisons


def _comparison(instruction: Instruction, context: Context, sources: list[_Source]) -> Operation:
    widths = _widths(sources, 0)
    call = _caller(instruction, context, widths)
    writes_exec = "CMPX" in instruction.base
    to_scalar = not writes_exec or context.family == "cdna"
    destination = VCC
    if instruction.has("sdst"):
        destination = instruction.raw("sdst") if instruction.number("sd") else VCC
    elif instruction.form == "VOP3":
        destination = instruction.raw("vdst")
    getters = [source.get for source in sources]
    reads = tuple(register for source in sources for register in source.operand.registers)
    writes: tuple[int, ...] = (destination, destination + 1)[: context.wave // 32] if to_scalar else ()
    if writes_exec:
        writes += (EXEC,)
    zero, lane = np.uint32(0), np.arange(context.wave, dtype=np.uint32)
    no_mask = np.zeros(context.wave, np.bool_)
    literal = np.uint32(instruction.literal)

    def run(wave: Wave) -> None:
        values = [get(wave) for get in getters]
        while len(values) < 3:
            values.append(zero)
        _, _, lanes, _ = call(wave, values, zero, no_mask, lane, literal)
        result = mask_of(np.broadcast_to(lanes, (wave.size,))) & wave.exec
        if to_scalar:
            wave.write_mask(destination, result)
        if writes_exec:
            wave.set_exec(result)

    return Operation(instruction, run, "valu", reads, writes, spread_lanes(reads, writes, None, context.wave))


# -- two instructions in one


def _dual(instruction: Instruction, context: Context) -> Operation:
    """VOPD: both halves read before either writes."""
    parts = []
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    fields = instruction.fields
    for half in "xy":
        name = getattr(fields, f"op{half}").name
        first = Operand(int(getattr(fields, f"src{half}0").offset), "f", 32, instruction.literal)
        second = Operand(int(getattr(fields, f"vsrc{half}1").offset), "f", 32)
        row = int(getattr(fields, f"vdst{half}").offset) - VGPR
        sources = [first] if "MOV_B32" in name else [first, second]
        getters = [vector_getter(operand) for operand in sources]
        single = Instruction(name, "VOPD", "", 4, instruction.address, fields, instruction.words)
        widths = (("D0", 32), ("S0", 32), ("S1", 32))
        parts.append((getters, _caller(single, context, widths), row, "CNDMASK" in name))
        reads += tuple(register for operand in sources for register in operand.registers)
        reads += (VGPR + row,) if _accumulates(name) else ()
        reads += (VCC,) if "CNDMASK" in name else ()
        writes += (VGPR + row,)
    lane = np.arange(context.wave, dtype=np.uint32)
    literal = np.uint32(instruction.literal)
    no_mask = np.zeros(context.wave, np.bool_)
    zero = np.uint32(0)

    def run(wave: Wave) -> None:
        results = []
        for getters, call, row, uses_mask in parts:
            values = [get(wave) for get in getters]
            while len(values) < 3:
                values.append(zero)
            mask = lanes_of(wave.read_mask(VCC), wave.size) if uses_mask else no_mask
            results.append((row, call(wave, values, wave.v[row], mask, lane, literal)[0]))
        copies = [(row, np.array(result)) for row, result in results]
        for row, result in copies:
            wave.write_row(row, result)

    mask_in = VCC if VCC in reads else None
    return Operation(instruction, run, "valu", reads, writes, _spread_dual(instruction, parts, reads, writes, mask_in, context.wave))


def _spread_dual(
    instruction: Instruction, parts: list[Any], reads: tuple[int, ...], writes: tuple[int, ...], mask_in: int | None, size: int
) -> Run:
    """Each half by itself: one may be undefined where the other is not."""
    fields = instruction.fields
    halves_: list[tuple[tuple[int, ...], int, int | None]] = []
    for half, target in zip("xy", writes, strict=True):
        name = getattr(fields, f"op{half}").name
        used = Operand(int(getattr(fields, f"src{half}0").offset), "f", 32).registers
        if "MOV_B32" not in name:
            used += (int(getattr(fields, f"vsrc{half}1").offset),)
        if _accumulates(name):
            used += (target,)
        halves_.append((used, target, VCC if "CNDMASK" in name else None))

    def spread(wave: Wave) -> None:
        undefined = wave.undefined
        if not any(register in undefined for register in reads + writes):
            return
        bad = [wave.undefined_lanes(used) | (_mask_bits(wave, mask) if mask is not None else 0) for used, _, mask in halves_]
        for (_, target, _), lanes in zip(halves_, bad, strict=True):
            wave.set_undefined(target, lanes & wave.exec)

    return spread


# -- mixed precision


def _mixed(instruction: Instruction, context: Context) -> Operation:
    """v_fma_mix and v_mad_mix: each operand is an f32, or a half of a register as f16."""
    opsel = instruction.number("opsel")
    opsel_hi = instruction.number("opsel_hi") | instruction.number("opsel_hi2") << 2
    getters: list[tuple[Getter, bool]] = []
    reads: tuple[int, ...] = ()
    for index in range(3):
        is_half = bool(opsel_hi >> index & 1)
        operand = Operand(instruction.raw(f"src{index}"), "f", 16 if is_half else 32, instruction.literal)
        get = vector_getter(operand, high_half=is_half and bool(opsel >> index & 1))
        negate, absolute = instruction.number("neg") >> index & 1, instruction.number("neg_hi") >> index & 1
        getters.append((with_sign(get, operand.bits, negate=bool(negate), absolute=bool(absolute)), is_half))
        reads += operand.registers
    row = instruction.raw("vdst")
    name = instruction.base
    clamp = bool(instruction.number("clmp"))

    def run(wave: Wave) -> None:
        a, b, c = (
            np.asarray(get(wave)).astype(U16).view(F16).astype(F32) if is_half else np.asarray(get(wave)).view(F32)
            for get, is_half in getters
        )
        # CDNA3's manual calls it v_mad_mix; LLVM, and gfx90a's manual, know it as v_fma_mix, which is fused.
        result = fma32(a, b, c)
        if clamp:
            result = np.where(np.isnan(result), F32(0), np.clip(result, F32(0), F32(1)))
        if name.endswith("MIX_F32"):
            return wave.write_row(row, np.asarray(result, F32).view(U32))
        half = np.asarray(result, F32).astype(F16).view(U16).astype(U32)
        if "MIXHI" in name:
            wave.write_row(row, wave.v[row] & U32(0xFFFF) | half << U32(16))
        else:
            wave.write_row(row, wave.v[row] & U32(0xFFFF0000) | half)

    writes = (VGPR + row,)
    return Operation(instruction, run, "valu", reads, writes, spread_lanes(reads, writes, None, context.wave))


# -- undefined values


def _mask_bits(wave: Wave, register: int) -> int:
    low = wave.undefined.get(register, 0)
    return low | wave.undefined.get(register + 1, 0) << 32 if wave.size == 64 else low


def spread_lanes(reads: tuple[int, ...], writes: tuple[int, ...], mask_in: int | None, size: int) -> Run:
    """A lane's result is undefined where one of its operands is."""
    masks = set() if mask_in is None else {mask_in, mask_in + 1}
    plain = tuple(register for register in reads if register not in masks)
    every = frozenset(reads) | frozenset(writes)

    def spread(wave: Wave) -> None:
        undefined = wave.undefined
        if undefined.keys().isdisjoint(every):
            return
        bad = wave.undefined_lanes(plain)
        if mask_in is not None:
            bad |= _mask_bits(wave, mask_in) & wave.exec
        for index, register in enumerate(writes):
            if register >= VGPR:
                wave.set_undefined(register, bad)
            elif register == EXEC:
                if bad:
                    wave.require_defined(reads, "EXEC")
            else:
                second = size == 64 and index and writes[index - 1] == register - 1 and writes[index - 1] < VGPR
                wave.set_undefined_bits(register, (bad >> 32 if second else bad) & 0xFFFFFFFF)

    return spread
