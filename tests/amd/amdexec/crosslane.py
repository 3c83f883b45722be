"""Moves between lanes, and between lanes and scalar registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .arithmetic import U32
from .decode import Instruction
from .operands import Getter, Operand, scalar_getter, vector_getter
from .operation import Operation, Run
from .traps import Trap, Unknown
from .wave import ALL, PERMUTED, VGPR, Wave, lanes_of, mask_of

Array = Any


def build(instruction: Instruction, wave_size: int) -> Operation | None:
    name = instruction.base
    builders: dict[str, Callable[[Instruction, int], Operation]] = {
        "V_READFIRSTLANE_B32": _read_lane,
        "V_READLANE_B32": _read_lane,
        "V_WRITELANE_B32": _write_lane,
        "V_PERMLANE16_B32": _permute_rows,
        "V_PERMLANEX16_B32": _permute_rows,
        "V_PERMLANE16_VAR_B32": _permute_rows_by_lane,
        "V_PERMLANEX16_VAR_B32": _permute_rows_by_lane,
        "V_PERMLANE64_B32": _swap_halves_of_wave,
        "V_PERMLANE16_SWAP_B32": _swap_rows,
        "V_PERMLANE32_SWAP_B32": _swap_rows,
        "V_SWAP_B32": _swap,
        "V_ACCVGPR_READ_B32": _move_accumulator,
        "V_ACCVGPR_WRITE_B32": _move_accumulator,
        "V_ACCVGPR_READ": _move_accumulator,
        "V_ACCVGPR_WRITE": _move_accumulator,
        "V_ACCVGPR_MOV_B32": _move_accumulator,
        "V_PK_MOV_B32": _packed_move,
        "V_MOVRELS_B32": _move_relative,
        "V_MOVRELD_B32": _move_relative,
    }
    return builders[name](instruction, wave_size) if name in builders else None


def _source(instruction: Instruction, field: str = "src0") -> Operand:
    return Operand(instruction.raw(field), "b", 32, instruction.literal)


def _move_relative(instruction: Instruction, wave_size: int) -> Operation:
    """From or to the register that lies M0 behind the one that is named: an element of a vector by its number."""
    reads = "MOVRELS" in instruction.base
    source, target = _source(instruction), instruction.raw("vdst")
    get = vector_getter(source)

    def rows(wave: Wave) -> tuple[int, int]:
        offset = int(wave.s[wave.m0])
        return (_row(wave, source.number - VGPR, offset), target) if reads else (-1, _row(wave, target, offset))

    return _indexed(instruction, source, get, (VGPR + target,) if reads else (), rows)


def indexed_move(plain: Operation, instruction: Instruction) -> Operation:
    """v_mov_b32 of GFX9, which is a relative one between s_set_gpr_idx_on and s_set_gpr_idx_off."""
    source, target = _source(instruction), instruction.raw("vdst")

    def rows(wave: Wave) -> tuple[int, int]:
        offset, which = int(wave.s[wave.m0]) & 0xFF, int(wave.s[wave.m0]) >> 12
        first = source.number - VGPR if source.is_vector else -1
        return (
            _row(wave, first, offset) if which & 1 and source.is_vector else first,
            _row(wave, target, offset) if which & 8 else target,
        )

    moved = _indexed(instruction, source, vector_getter(source), (), rows)

    def run(wave: Wave) -> None:
        (moved if wave.indexing else plain).run(wave)

    def spread(wave: Wave) -> None:
        chosen = moved if wave.indexing else plain
        if chosen.spread is not None:
            chosen.spread(wave)

    return Operation(instruction, run, plain.unit, plain.reads, plain.writes, spread, indexed=True)


def _row(wave: Wave, named: int, offset: int) -> int:
    found = named + offset
    if VGPR + found in wave.pending:
        raise Trap(f"v{found} is used while a load into it is outstanding")
    if found >= 256:
        raise Trap(f"v{named} + {offset} is no register")
    return found


def _indexed(
    instruction: Instruction, source: Operand, get: Getter, writes: tuple[int, ...], rows: Callable[[Wave], tuple[int, int]]
) -> Operation:
    """`rows` says from which register, -1 for the operand as it is, to which one."""

    def run(wave: Wave) -> None:
        first, target = rows(wave)
        wave.write_row(target, wave.v[first] if first >= 0 else get(wave))

    def spread(wave: Wave) -> None:
        wave.require_defined((wave.m0,), "the number of a register")
        first, target = rows(wave)
        used = (VGPR + first,) if first >= 0 else source.registers
        wave.set_undefined(VGPR + target, wave.undefined_lanes(used))

    return Operation(instruction, run, "valu", (), writes, spread)


def _read_lane(instruction: Instruction, wave_size: int) -> Operation:
    first = "FIRST" in instruction.base
    source = _source(instruction)
    destination = instruction.raw("vdst")
    get = vector_getter(source)
    selector = None if first else _source(instruction, "src1")
    get_lane = scalar_getter(selector) if selector else None

    def lane_of(wave: Wave) -> int:
        if get_lane is not None:
            return get_lane(wave) & wave_size - 1
        return (wave.exec & -wave.exec).bit_length() - 1 if wave.exec else 0

    def run(wave: Wave) -> None:
        value = np.asarray(get(wave))
        wave.write_scalar(destination, int(value[lane_of(wave)] if value.ndim else value), 32)

    def spread(wave: Wave) -> None:
        if selector is not None:
            wave.require_defined(selector.registers, "a lane number")
        bad = 0
        if source.registers:
            bits = wave.undefined.get(source.number, 0)
            bad = bits >> lane_of(wave) & 1 if source.is_vector else bits
        if bad and source.is_vector:
            bad = wave.spilled.get(int(get(wave)[lane_of(wave)]), ALL)
        elif bad:
            bad = ALL
        wave.set_undefined_bits(destination, bad)

    reads = source.registers + (selector.registers if selector else ())
    return Operation(instruction, run, "valu", reads, (destination,), spread)


def _write_lane(instruction: Instruction, wave_size: int) -> Operation:
    value, lane = _source(instruction), _source(instruction, "src1")
    get, get_lane = scalar_getter(value), scalar_getter(lane)
    row = instruction.raw("vdst")

    def run(wave: Wave) -> None:
        wave.v[row][get_lane(wave) & wave_size - 1] = get(wave) & ALL

    def spread(wave: Wave) -> None:
        wave.require_defined(lane.registers, "a lane number")
        bit = 1 << (get_lane(wave) & wave_size - 1)
        bad = wave.undefined.get(value.registers[0], 0) if value.registers else 0
        if bad not in (0, ALL):
            # A mask that is undefined for some lanes alone, on its way through the lane of a register (and perhaps memory).
            number = get(wave) & ALL
            wave.spilled[number] = wave.spilled.get(number, 0) | bad
        left = wave.undefined.get(VGPR + row, 0) & ~bit | (bit if bad else 0)
        wave.set_undefined_bits(VGPR + row, left)

    return Operation(instruction, run, "valu", value.registers + lane.registers, (VGPR + row,), spread)


def _gathered(instruction: Instruction, row: int, source: Operand, extra: tuple[int, ...], lanes_for: Callable[[Wave], Array]) -> Operation:
    """Each lane takes the register of another lane."""
    get = vector_getter(source)

    def run(wave: Wave) -> None:
        value = np.broadcast_to(get(wave), (wave.size,))
        wave.write_row(row, value[lanes_for(wave)])

    def spread(wave: Wave) -> None:
        wave.require_defined(extra, "a lane number")
        bits = wave.undefined.get(source.number, 0)
        bad = 0
        if bits:
            bad = mask_of(lanes_of(bits, wave.size)[lanes_for(wave)]) & wave.exec
        wave.set_undefined(VGPR + row, bad)

    return Operation(instruction, run, "valu", source.registers + extra, (VGPR + row,), spread)


def _permute_rows(instruction: Instruction, wave_size: int) -> Operation:
    """v_permlane16, v_permlanex16: 16 lane numbers of four bits in two scalars; x takes from the other row of the pair."""
    low, high = _source(instruction, "src1"), _source(instruction, "src2")
    get_low, get_high = scalar_getter(low), scalar_getter(high)
    other = 16 if "X16" in instruction.base else 0
    fetch_inactive, bound_control = instruction.number("opsel") & 1, instruction.number("opsel") >> 1 & 1
    lane = np.arange(wave_size)

    def lanes_for(wave: Wave) -> Array:
        table = get_low(wave) | get_high(wave) << 32
        chosen = np.array([table >> 4 * (index & 15) & 15 for index in range(wave_size)])
        result = (lane & ~15 ^ other) + chosen
        if not fetch_inactive:
            _require_active(wave, result, bool(bound_control))
        return result

    return _gathered(instruction, instruction.raw("vdst"), _source(instruction), low.registers + high.registers, lanes_for)


def _require_active(wave: Wave, source: Array, bound_control: bool) -> None:
    """Without fetch-inactive, a source lane that is off gives 0 or keeps the destination: nothing here relies on that."""
    wanted = source[wave.lanes()]
    if any(not wave.exec >> int(lane) & 1 for lane in wanted):
        raise Unknown(f"v_permlane from an inactive lane (bound_ctrl {int(bound_control)})")


def _permute_rows_by_lane(instruction: Instruction, wave_size: int) -> Operation:
    selector = _source(instruction, "src1")
    get = vector_getter(selector)
    other = 16 if "X16" in instruction.base else 0
    lane = np.arange(wave_size)

    def lanes_for(wave: Wave) -> Array:
        result = (lane & ~15 ^ other) + (np.broadcast_to(get(wave), (wave_size,)).astype(np.int64) & 15)
        if not instruction.number("opsel") & 1:
            _require_active(wave, result, False)
        return result

    return _gathered(instruction, instruction.raw("vdst"), _source(instruction), selector.registers, lanes_for)


def _swap_halves_of_wave(instruction: Instruction, wave_size: int) -> Operation:
    lanes = np.arange(wave_size) ^ 32 if wave_size == 64 else np.arange(wave_size)
    return _gathered(instruction, instruction.raw("vdst"), _source(instruction), (), lambda wave: lanes)


def _swap_rows(instruction: Instruction, wave_size: int) -> Operation:
    """v_permlane16_swap, v_permlane32_swap: the odd rows of the destination change places with the even rows of the source."""
    step = 16 if "16_SWAP" in instruction.base else 32
    a, b = instruction.raw("vdst"), instruction.raw("src0") - VGPR
    odd = np.flatnonzero(np.arange(wave_size) & step)

    def run(wave: Wave) -> None:
        if wave.exec != wave.full:
            raise Unknown("v_permlane_swap with inactive lanes")
        kept = wave.v[a][odd].copy()
        wave.v[a][odd] = wave.v[b][odd - step]
        wave.v[b][odd - step] = kept

    def spread(wave: Wave) -> None:
        wave.require_defined((VGPR + a, VGPR + b), "a swap of rows")

    return Operation(instruction, run, "valu", (VGPR + a, VGPR + b), (VGPR + a, VGPR + b), spread)


def _swap(instruction: Instruction, wave_size: int) -> Operation:
    a, b = instruction.raw("vdst"), instruction.raw("src0") - VGPR

    def run(wave: Wave) -> None:
        kept = wave.v[a].copy()
        wave.write_row(a, wave.v[b])
        wave.write_row(b, kept)

    def spread(wave: Wave) -> None:
        first, second = (wave.undefined.get(VGPR + row, 0) & wave.exec for row in (a, b))
        wave.set_undefined(VGPR + a, second)
        wave.set_undefined(VGPR + b, first)

    return Operation(instruction, run, "valu", (VGPR + a, VGPR + b), (VGPR + a, VGPR + b), spread)


def _move_accumulator(instruction: Instruction, wave_size: int) -> Operation:
    """Between the two files of vector registers."""
    name = instruction.base
    number = instruction.raw("src0")
    source = Operand(number + 256 if ("READ" in name or "MOV" in name) and number >= VGPR else number, "b", 32, instruction.literal)
    row = instruction.raw("vdst") + (0 if "READ" in name else 256)
    get = vector_getter(source)

    def run(wave: Wave) -> None:
        wave.write_row(row, get(wave))

    def spread(wave: Wave) -> None:
        wave.set_undefined(VGPR + row, wave.undefined_lanes(source.registers))

    return Operation(instruction, run, "valu", source.registers, (VGPR + row,), spread)


def _packed_move(instruction: Instruction, wave_size: int) -> Operation:
    """Two registers of two pairs; opsel says which of each pair."""
    select = instruction.number("opsel")
    sources = []
    for index in range(2):
        base = Operand(instruction.raw(f"src{index}"), "b", 32, instruction.literal)
        if base.registers and base.number not in (124, 125) and select >> index & 1:
            base = Operand(base.number + 1, "b", 32)
        sources.append(base)
    getters = [vector_getter(source) for source in sources]
    row = instruction.raw("vdst")

    def run(wave: Wave) -> None:
        values = [np.array(get(wave)) for get in getters]
        wave.write_row(row, values[0])
        wave.write_row(row + 1, values[1])

    def spread(wave: Wave) -> None:
        bad = [wave.undefined_lanes(source.registers) for source in sources]
        wave.set_undefined(VGPR + row, bad[0])
        wave.set_undefined(VGPR + row + 1, bad[1])

    return Operation(instruction, run, "valu", sources[0].registers + sources[1].registers, (VGPR + row, VGPR + row + 1), spread)


# -- lane patterns in front of other instructions


def _pattern(control: int, wave_size: int) -> tuple[Array, Array]:
    """DPP16: for each lane, the lane that it reads, and whether there is one."""
    lane = np.arange(wave_size)
    row, place = lane & ~15, lane & 15
    always = np.ones(wave_size, np.bool_)
    if control < 0x100:
        return lane & ~3 | control >> 2 * (lane & 3) & 3, always
    amount = control & 15
    match control & 0x1F0:
        case 0x100 if amount:
            return row + (place + amount & 15), place + amount < 16
        case 0x110:
            return row + (place - amount & 15), place >= amount
        case 0x120:
            return row + (place - amount & 15), always
        case 0x150:
            return row + amount, always
        case 0x160:
            return row + (place ^ amount), always
    match control:
        case 0x130:
            return (lane + 1) % wave_size, lane + 1 < wave_size
        case 0x134:
            return (lane + 1) % wave_size, always
        case 0x138:
            return (lane - 1) % wave_size, lane > 0
        case 0x13C:
            return (lane - 1) % wave_size, always
        case 0x140:
            return row + 15 - place, always
        case 0x141:
            return lane & ~7 | 7 - (lane & 7), always
        case 0x142:
            return np.maximum(row - 1, 0), row > 0
        case 0x143:
            return np.full(wave_size, 31), lane >= 32
    raise Unknown(f"DPP control {control:#x}")


def with_lane_pattern(operation: Operation, instruction: Instruction, wave_size: int) -> Operation:
    """DPP: the first operand comes from other lanes; a lane that has no source gets 0 or stays as it is."""
    if instruction.variant == "DPP8":
        lane = np.arange(wave_size)
        table = np.array([instruction.number(f"lane_sel_{index}") for index in range(8)])
        source, exists = lane & ~7 | table[lane & 7], np.ones(wave_size, np.bool_)
        fetch_inactive = (instruction.fields._raw & 0x1FF) == 234
        bound_control, enabled = False, np.ones(wave_size, np.bool_)
    else:
        source, exists = _pattern(instruction.number("dpp"), wave_size)
        lane = np.arange(wave_size)
        fetch_inactive, bound_control = bool(instruction.number("fi")), bool(instruction.number("bc"))
        rows = instruction.number("row_mask") >> (lane >> 4) & 1
        enabled = (rows & instruction.number("bank_mask") >> (lane >> 2 & 3) & 1).astype(np.bool_)
    row = instruction.raw("vsrc0")

    def permuted(wave: Wave) -> tuple[int, Array]:
        """The lanes that run, and what each of them sees in the register and the next one."""
        valid = exists & (np.bool_(fetch_inactive) | _active(wave)[source])
        seen = np.where(valid, wave.v[row : row + 2][:, source], U32(0))
        allowed = enabled if bound_control else enabled & valid
        return mask_of(allowed) & wave.exec, seen

    def bad_lanes(wave: Wave, register: int) -> int:
        bits = wave.undefined.get(register, 0)
        if not bits:
            return 0
        valid = exists & (np.bool_(fetch_inactive) | _active(wave)[source])
        return mask_of(lanes_of(bits, wave.size)[source] & valid)

    def inside(wave: Wave, action: Run) -> None:
        lanes, seen = permuted(wave)
        before = wave.exec
        wave.set_exec(lanes)
        # Beside the registers: another operand may be the same register, and sees its own lane.
        wave.v[512 : 512 + len(seen)] = seen
        action(wave)
        if wave.exec == lanes:
            wave.set_exec(before)

    def run(wave: Wave) -> None:
        inside(wave, operation.run)

    def spread(wave: Wave) -> None:
        if operation.spread is None:
            return
        lanes, _ = permuted(wave)
        bad = [bad_lanes(wave, VGPR + row), bad_lanes(wave, VGPR + row + 1)]
        before = wave.exec
        wave.set_exec(lanes)
        for place, bits in enumerate(bad):
            wave.set_undefined_bits(PERMUTED + place, bits)
        operation.spread(wave)
        wave.set_exec(before)

    reads = tuple(VGPR + row + register - PERMUTED if register >= PERMUTED else register for register in operation.reads)
    return Operation(instruction, run, operation.unit, reads, operation.writes, spread)


def _active(wave: Wave) -> Array:
    return np.ones(wave.size, np.bool_) if wave.active is None else wave.active
