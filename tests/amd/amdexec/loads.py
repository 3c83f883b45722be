"""Memory instructions: scalar loads, global, flat, scratch and buffer accesses, and LDS.

Besides moving bytes, they keep track of what is on its way. A load marks its registers until a wait covers it. A store marks
its words until its wave has waited for it: another wave that touches them before then has no right to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .arithmetic import (
    F16,
    F32,
    F64,
    I64,
    U16,
    U32,
    U64,
    from_bfloat16,
    maximum_number,
    minimum_number,
    to_bfloat16,
)
from .decode import Instruction
from .memory import MANY_READERS, PRIVATE_APERTURE, PRIVATE_RESOURCE, SHARED_APERTURE, AddressSpace, Region
from .operands import Operand, scalar_getter
from .operation import Operation
from .traps import Trap, Unknown
from .wave import ALL, VGPR, Outstanding, Wave, lanes_of, mask_of

Array = Any
_MSG_RTN_GET_REALTIME = 0x83


@dataclass
class Memories:
    """What a workgroup reaches."""

    space: AddressSpace
    lds: Region


@dataclass(frozen=True)
class Access:
    """What an opcode moves: `size` bytes for each of `count` words, extended or put into half of a register."""

    size: int
    count: int = 1
    signed: bool = False
    half: str = ""

    @property
    def registers(self) -> int:
        return self.count * (2 if self.size == 8 else 1)


_ACCESSES = {
    "UBYTE": Access(1), "SBYTE": Access(1, signed=True), "U8": Access(1), "I8": Access(1, signed=True), "B8": Access(1), "BYTE": Access(1),
    "USHORT": Access(2), "SSHORT": Access(2, signed=True), "U16": Access(2), "I16": Access(2, signed=True),
    "B16": Access(2), "SHORT": Access(2),
    "DWORD": Access(4), "B32": Access(4), "DWORDX2": Access(4, 2), "B64": Access(4, 2), "DWORDX3": Access(4, 3), "B96": Access(4, 3),
    "DWORDX4": Access(4, 4), "B128": Access(4, 4),
}  # fmt: skip


def build(instruction: Instruction, family: str, memories: Callable[[Wave], Memories]) -> Operation:
    form = instruction.form
    if form == "CACHE" or instruction.base in ("GLOBAL_INV", "GLOBAL_WB", "GLOBAL_WBINV", "BUFFER_INV", "BUFFER_WBL2"):
        return Operation(instruction, lambda wave: None, "nop")
    if form == "SMEM":
        return _scalar_load(instruction, family, memories)
    if form == "DS":
        return _lds(instruction, family, memories)
    return _vector(instruction, family, memories)


def clock(instruction: Instruction, family: str, now: Callable[[], int]) -> Operation:
    """The time, which arrives like a scalar load. What `s_sendmsg_rtn` asks for is in its operand."""
    if instruction.name.startswith("S_SENDMSG") and instruction.raw("ssrc0") != _MSG_RTN_GET_REALTIME:
        raise Unknown(f"message {instruction.raw('ssrc0')}")
    destination = instruction.raw("sdst" if instruction.has("sdst") else "sdata")
    registers = (destination, destination + 1)

    def run(wave: Wave) -> None:
        wave.write_scalar(destination, now(), 64)
        for register in registers:
            wave.undefined.pop(register, None)
        wave.issue("scalar" if family == "rdna4" else "lgkm", Outstanding("scalar", registers))

    return Operation(instruction, run, "smem", (), registers)


# -- who may touch what


def _check_read(wave: Wave, region: Region, words: Array) -> None:
    owner = region.ownership
    if owner is None:
        return
    unfinished = owner.unfinished[words]
    late = (unfinished >= 0) & (unfinished != wave.number) & (owner.atomic_epoch[words] != wave.epoch)
    if late.any():
        at = int(words[late][0])
        raise Trap(f"reads {region.name} at {at}: another wave stored there and has not waited for its store")
    raced = (owner.writer[words] != wave.number) & (owner.writer_epoch[words] == wave.epoch)
    if raced.any():
        at = int(words[raced][0])
        raise Trap(f"reads {region.name} at {at}: another wave stored there, with no barrier between them")
    same = owner.reader_epoch[words] == wave.epoch
    shared = same & (owner.reader[words] != wave.number)
    owner.reader[words] = np.where(shared, MANY_READERS, wave.number)
    owner.reader_epoch[words] = wave.epoch


def _check_write(wave: Wave, region: Region, words: Array, changed: Array) -> None:
    """`changed`: where the stored value differs from what was there; storing the same value twice does no harm."""
    owner = region.ownership
    if owner is None:
        return
    if len(changed) != len(words):
        changed = np.concatenate([changed] * (len(words) // len(changed)))
    others = {
        "read there": (owner.reader[words] != wave.number) & (owner.reader_epoch[words] == wave.epoch),
        "stored there": (owner.writer[words] != wave.number) & (owner.writer_epoch[words] == wave.epoch),
    }
    for what, lanes in others.items():
        if (lanes & changed).any():
            at = int(words[lanes & changed][0])
            raise Trap(f"stores to {region.name} at {at}: another wave {what}, with no barrier between them")
    owner.writer[words] = wave.number
    owner.writer_epoch[words] = wave.epoch
    owner.atomic_epoch[words] = -1
    owner.unfinished[words] = wave.number


def _bytes(offsets: Array, size: int) -> Array:
    """Byte by byte: waves may store neighbours that are smaller than a word."""
    return (offsets + np.arange(size).reshape(-1, 1)).reshape(-1)


# -- moving bytes between lanes and a region


def _load_region(wave: Wave, region: Region, offsets: Array, access: Access) -> tuple[list[Array], int]:
    """The words for the given lanes' offsets, and which of the lanes (by position) got something undefined."""
    if region.ownership is not None:
        for index in range(access.count):
            _check_read(wave, region, _bytes(offsets + index * access.size, access.size))
    values = [region.gather(offsets + index * access.size, access.size).astype(U32) for index in range(access.count)]
    bad = 0
    if region.undefined is not None:
        missing = np.zeros(len(offsets), np.bool_)
        for byte in range(access.size * access.count):
            missing |= region.undefined[offsets + byte]
        bad = mask_of(missing)
    return values, bad


def _store_region(wave: Wave, region: Region, offsets: Array, access: Access, values: list[Array], stores: list[Any]) -> None:
    for index, value in enumerate(values):
        at = offsets + index * access.size
        if region.ownership is not None:
            words = _bytes(at, access.size)
            changed = region.gather(at, access.size) != value.astype(region.view(access.size).dtype)
            _check_write(wave, region, words, changed)
            stores.append((region, words))
        region.scatter(at, access.size, value)
        if region.undefined is not None:
            for byte in range(access.size):
                region.undefined[at + byte] = False


def _extend(value: Array, access: Access) -> Array:
    if not access.signed:
        return value
    sign = U32(1 << 8 * access.size - 1)
    return (value ^ sign) - sign


def _into_registers(wave: Wave, row: int, lanes: Array, access: Access, values: list[Array], bad: int) -> None:
    """Writes loaded words; `bad` numbers the positions in `lanes` that are undefined."""
    for index, value in enumerate(values):
        value = _extend(value, access)
        target = wave.v[row + index]
        if access.half == "low":
            value = target[lanes] & U32(0xFFFF0000) | value & U32(0xFFFF)
        elif access.half == "high":
            value = target[lanes] & U32(0xFFFF) | value << U32(16)
        target[lanes] = value
    undefined = sum(1 << int(lanes[position]) for position in range(len(lanes)) if bad >> position & 1) if bad else 0
    for index in range(len(values)):
        wave.set_undefined(VGPR + row + index, undefined)


# -- scalar loads


def _scalar_load(instruction: Instruction, family: str, memories: Callable[[Wave], Memories]) -> Operation:
    name = instruction.name
    if name.startswith(("S_DCACHE", "S_PREFETCH", "S_GL1_INV", "S_ICACHE", "S_ATC")):
        return Operation(instruction, lambda wave: None, "nop")
    match = re.fullmatch(r"S_(BUFFER_)?LOAD_(?:DWORD|B)(X?\d*)|S_(BUFFER_)?LOAD_([UI])(8|16)", name)
    if match is None:
        raise Unknown(name)
    if match[1] or match[3]:
        raise Unknown(name)
    small = match[4] is not None
    size = int(match[5]) // 8 if small else _scalar_bytes(name)
    destination = instruction.raw("sdata")
    base = instruction.raw("sbase") * 2
    offset = _scalar_offset(instruction, family)
    count = max(1, size // 4)
    registers = tuple(range(destination, destination + count))
    reads = (base, base + 1, *offset.registers)
    kind = "scalar"
    counter = "scalar" if family == "rdna4" else "lgkm"

    def run(wave: Wave) -> None:
        wave.require_defined(reads, "an address")
        address = (wave.s[base] | wave.s[base + 1] << 32) + offset.get(wave) & ~(0 if small else 3) & (1 << 64) - 1
        region = memories(wave).space.find(address, size, write=False)
        start = address - region.base
        if region.ownership is not None:
            _check_read(wave, region, np.arange(start, start + size))
        raw = region.data[start : start + size].tobytes()
        value = int.from_bytes(raw, "little", signed=small and match[4] == "I")
        wave.write_scalar(destination, value & (1 << 32 * count) - 1, 32 * count)
        for register in registers:
            wave.undefined.pop(register, None)
        wave.issue(counter, Outstanding(kind, registers))

    return Operation(instruction, run, "smem", reads, registers)


def _scalar_bytes(name: str) -> int:
    tail = name.rsplit("_", 1)[1]
    if tail.startswith("DWORD"):
        return 4 * int(tail.removeprefix("DWORD").removeprefix("X") or 1)
    return int(tail.removeprefix("B")) // 8


@dataclass(frozen=True)
class _Offset:
    get: Callable[[Wave], int]
    registers: tuple[int, ...]


def _scalar_offset(instruction: Instruction, family: str) -> _Offset:
    bits = 24 if family == "rdna4" else 21
    field = "ioffset" if instruction.has("ioffset") else "offset"
    immediate = _signed(instruction.number(field), bits)
    register = instruction.raw("soffset")
    if family == "cdna":
        if not instruction.number("imm"):
            immediate, uses = 0, True
            register = register if instruction.number("soffset_en") else instruction.number("offset") & 0x7F
        else:
            uses = bool(instruction.number("soffset_en"))
    else:
        uses = register != 124
    if not uses:
        return _Offset(lambda wave: immediate, ())
    return _Offset(lambda wave: immediate + wave.s[register], (register,))


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


# -- vector memory


@dataclass(frozen=True)
class _Address:
    """Where the lanes' bytes are; and which of the words of each lane lie outside of a buffer resource, if there is one."""

    get: Callable[[Wave, Array], Array]
    registers: tuple[int, ...]
    outside: Callable[[Wave, Array, int, int], Array | None] = lambda wave, lanes, size, count: None


def _vector(instruction: Instruction, family: str, memories: Callable[[Wave], Memories]) -> Operation:
    form = instruction.form.removeprefix("V")
    name = instruction.base
    if "_LDS_" in name or instruction.number("lds"):
        raise Unknown(f"{instruction}: a load into LDS")
    address = _buffer_address(instruction, family) if form in ("MUBUF", "BUFFER") else _flat_address(instruction, family, form)
    action, _, rest = name.partition("_")[2].partition("_")
    builder = {"LOAD": _vector_load, "STORE": _vector_store, "ATOMIC": _vector_atomic}.get(action)
    if builder is None:
        raise Unknown(name)
    return builder(instruction, family, form, rest, address, memories)


def _access(rest: str) -> Access:
    """From what follows LOAD_ or STORE_ in the name."""
    parts = rest.split("_")
    plain = next((part for part in parts if part in _ACCESSES), None)
    if plain is None or "FORMAT" in parts or "TR" in parts or "ADDTID" in parts or "BLOCK" in parts:
        raise Unknown(f"an access {rest}")
    found = _ACCESSES[plain]
    if "D16" in parts:
        return Access(found.size, 1, found.signed, "high" if "HI" in parts else "low")
    return found


def _flat_address(instruction: Instruction, family: str, form: str) -> _Address:
    vector = instruction.raw("vaddr" if instruction.has("vaddr") else "addr")
    scalar = instruction.raw("saddr")
    no_scalar = {127} if family == "cdna" else {124}
    uses_scalar = scalar not in no_scalar and form != "FLAT"
    if instruction.has("ioffset"):
        offset = _signed(instruction.number("ioffset"), 24)
    else:
        offset = _signed(instruction.number("offset"), 13) if form != "FLAT" else instruction.number("offset")
    if form == "SCRATCH":
        return _scratch_address(instruction, family, vector, scalar, uses_scalar, offset)
    rows = (VGPR + vector,) if uses_scalar else (VGPR + vector, VGPR + vector + 1)
    wide_offset = U64(offset & (1 << 64) - 1)

    def get(wave: Wave, lanes: Array) -> Array:
        low = wave.v[vector][lanes].astype(U64)
        if uses_scalar:
            return low + U64(wave.s[scalar] | wave.s[scalar + 1] << 32) + wide_offset
        return (low | wave.v[vector + 1][lanes].astype(U64) << U64(32)) + wide_offset

    return _Address(get, rows + ((scalar, scalar + 1) if uses_scalar else ()))


def _scratch_address(instruction: Instruction, family: str, vector: int, scalar: int, uses_scalar: bool, offset: int) -> _Address:
    # A bit says whether there is a vector part, but for gfx90a, which reaches private memory through a buffer resource.
    uses_vector = bool(instruction.number("sve"))

    def get(wave: Wave, lanes: Array) -> Array:
        base = (wave.s[scalar] if uses_scalar else 0) + offset
        vectors = wave.v[vector][lanes].astype(I64) if uses_vector else np.zeros(len(lanes), I64)
        return (vectors + base).astype(U64)

    registers = ((VGPR + vector,) if uses_vector else ()) + ((scalar,) if uses_scalar else ())
    return _Address(get, registers)


def _buffer_address(instruction: Instruction, family: str) -> _Address:
    """A base and an offset, or an index as well, and the resource's range. The resource of private memory that gfx90a gets in its first
    registers is known by its base: offsets are then those of one lane."""
    resource = instruction.raw("rsrc") if instruction.has("rsrc") else instruction.raw("srsrc") * 4
    vector = instruction.raw("vaddr")
    by_index, by_offset = bool(instruction.number("idxen")), bool(instruction.number("offen"))
    offset = instruction.number("ioffset") if instruction.has("ioffset") else instruction.number("offset")
    scalar = Operand(instruction.raw("soffset"), "b", 32)
    get_scalar = scalar_getter(scalar)

    def parts(wave: Wave, lanes: Array) -> tuple[Array, Array]:
        """Index and offset of each lane."""
        none = np.zeros(len(lanes), U64)
        index = wave.v[vector][lanes].astype(U64) if by_index else none
        return index, (wave.v[vector + by_index][lanes].astype(U64) if by_offset else none) + U64(offset)

    def get(wave: Wave, lanes: Array) -> Array:
        index, inside = parts(wave, lanes)
        high = wave.s[resource + 1]
        if high & 0xFFFF == PRIVATE_RESOURCE:
            return inside + U64(get_scalar(wave) // wave.size | PRIVATE_APERTURE << 32)
        base = wave.s[resource] | (high & 0xFFFF) << 32
        return index * U64(high >> 16 & 0x3FFF) + inside + U64(base + get_scalar(wave))

    def outside(wave: Wave, lanes: Array, size: int, count: int) -> Array | None:
        """The manuals' range check, for each word by itself. An atomic is one word."""
        _, high, records, flags = wave.s[resource : resource + 4]
        if high & 0xFFFF == PRIVATE_RESOURCE:
            return None
        index, inside = parts(wave, lanes)
        places = inside + U64(size) * np.arange(count, dtype=U64).reshape(-1, 1)
        beyond = index >= U64(records)
        # Bit 62 is about the cache on CDNA, and 30 and 31 of the flags say that it is no buffer.
        if high >> (31 if family == "cdna" else 30) or flags >> 30 or (family == "cdna" and flags >> 23 & 1):
            raise Unknown(f"{instruction}: a buffer that is swizzled, or counts threads, or is none ({high:#x}, {flags:#x})")
        check = flags >> 28 & 3
        if (family == "cdna" and by_index) or (check == 1 and family != "cdna"):
            return np.broadcast_to(beyond, places.shape)
        if check == 2 and family != "cdna":
            return np.full(places.shape, records == 0)
        if check == 0 and family != "cdna":
            return beyond | (places + U64(size) > U64(high >> 16 & 0x3FFF))
        if by_index:
            raise Unknown(f"{instruction}: an index into a buffer that is checked by its bytes")
        last = places if family == "cdna" else places + U64(size - 1)
        found: Array = last >= U64(records)
        if (found != (last + U64(get_scalar(wave)) >= U64(records))).any():
            raise Unknown(f"{instruction}: whether its scalar offset counts for the range of the buffer, the manuals do not agree")
        return found

    rows = tuple(range(VGPR + vector, VGPR + vector + by_index + by_offset))
    return _Address(get, tuple(range(resource, resource + 4)) + scalar.registers + rows, outside)


def _data_row(instruction: Instruction, *names: str) -> int:
    """The row of a data register: accumulation registers follow the others."""
    field = next(name for name in names if instruction.has(name))
    return instruction.raw(field) + (256 if instruction.number("acc") else 0)


def _lane_regions(memories: Memories, wave: Wave, form: str, addresses: Array, size: int, write: bool) -> list[tuple[Region | None, Array]]:
    """Groups of lanes by the region in which they access; None stands for private memory."""
    everyone = np.arange(len(addresses))
    if form == "SCRATCH":
        return [(None, everyone)]
    if form in ("FLAT", "MUBUF"):
        top = addresses >> U64(32)
        groups: list[tuple[Region | None, Array]] = []
        for aperture, region in ((SHARED_APERTURE, memories.lds), (PRIVATE_APERTURE, None)):
            here = everyone[top == aperture]
            if len(here):
                groups.append((region, here))
        rest = everyone[(top != SHARED_APERTURE) & (top != PRIVATE_APERTURE)]
        return groups + (_global_regions(memories, addresses, rest, size, write) if len(rest) else [])
    return _global_regions(memories, addresses, everyone, size, write)


def _global_regions(memories: Memories, addresses: Array, lanes: Array, size: int, write: bool) -> list[tuple[Region | None, Array]]:
    one = memories.space.region_of(addresses[lanes], size, write=write)
    if one is not None:
        return [(one, lanes)]
    groups: dict[int, tuple[Region, list[int]]] = {}
    for lane in lanes:
        region = memories.space.find(int(addresses[lane]), size, write=write)
        groups.setdefault(region.base, (region, []))[1].append(int(lane))
    return [(region, np.array(members)) for region, members in groups.values()]


def _offsets(region: Region, addresses: Array, lds: bool) -> Array:
    if lds:
        return (addresses & U64(ALL)).astype(I64)
    return (addresses - U64(region.base)).astype(I64)


def _in_lds(region: Region, offsets: Array, size: int, verb: str) -> None:
    if len(offsets) and (int(offsets.max()) + size > region.size or int(offsets.min()) < 0):
        raise Trap(f"{verb} LDS at {int(offsets.max())}, {size} bytes, of {region.size}")


def _private(wave: Wave, offsets: Array, size: int, verb: str) -> None:
    low, high = int(offsets.min()), int(offsets.max())
    if low < 0 or high + size > wave.scratch_size:
        raise Trap(f"{verb} private memory at {high if low >= 0 else low}, {size} bytes, of {wave.scratch_size}")


def _require(wave: Wave, instruction: Instruction, address: _Address) -> None:
    wave.require_defined(address.registers, "an address")


def _parts(wave: Wave, lanes: Array, address: _Address, access: Access) -> Iterator[tuple[int, Access, Array, Array, Array]]:
    """The words of an access, with the lanes whose words are inside of the buffer resource, their addresses, and the lanes whose words
    are not: all words together, where none is outside."""
    addresses = address.get(wave, lanes)
    outside = address.outside(wave, lanes, access.size, access.count)
    if outside is None or not outside.any():
        yield 0, access, lanes, addresses, lanes[:0]
        return
    for index in range(access.count):
        inside = ~outside[index]
        yield index, replace(access, count=1), lanes[inside], (addresses + U64(index * access.size))[inside], lanes[outside[index]]


def _vector_load(
    instruction: Instruction, family: str, form: str, rest: str, address: _Address, memories: Callable[[Wave], Memories]
) -> Operation:
    access = _access(rest)
    row = _data_row(instruction, "vdst", "vdata")
    writes = tuple(range(VGPR + row, VGPR + row + access.count))
    # On GFX10 and later, flat accesses keep their order among the others; on CDNA they do not.
    flat = form == "FLAT" and family == "cdna"
    kind = "flat" if flat else "load"

    def pieces_of(wave: Wave, lanes: Array, addresses: Array, part: Access) -> list[Any]:
        pieces = []
        total = part.size * part.count
        for region, here in _lane_regions(memories(wave), wave, form, addresses, total, False):
            if region is None:
                pieces.append((lanes[here], *_load_private(wave, lanes[here], addresses[here], part)))
                continue
            lds = region is memories(wave).lds
            offsets = _offsets(region, addresses[here], lds)
            if lds:
                _in_lds(region, offsets, total, "reads")
            pieces.append((lanes[here], *_load_region(wave, region, offsets, part)))
        return pieces

    def run(wave: Wave) -> None:
        lanes = wave.lanes()
        if len(lanes):
            _require(wave, instruction, address)
            for index, part, inside, addresses, outside in _parts(wave, lanes, address, access):
                pieces = pieces_of(wave, inside, addresses, part) if len(inside) else []
                if len(outside):
                    pieces.append((outside, [np.zeros(len(outside), U32)], 0))
                _gathered(wave, row + index, part, pieces)
        entry = Outstanding(kind, writes)
        wave.issue("vm", entry)
        if form == "FLAT":
            wave.issue("lds" if family == "rdna4" else "lgkm", Outstanding("flat" if flat else "lds", writes))

    return Operation(instruction, run, "vmem", address.registers, writes, counter="vm")


def _gathered(wave: Wave, row: int, access: Access, pieces: list[Any]) -> None:
    """Puts what several regions gave into the registers, with one note of what is undefined."""
    if len(pieces) == 1:
        lanes, values, bad = pieces[0]
        return _into_registers(wave, row, lanes, access, values, bad)
    lanes = np.concatenate([piece[0] for piece in pieces])
    values = [np.concatenate([piece[1][index] for piece in pieces]) for index in range(access.count)]
    bad, start = 0, 0
    for piece in pieces:
        bad |= piece[2] << start
        start += len(piece[0])
    _into_registers(wave, row, lanes, access, values, bad)


def _load_private(wave: Wave, lanes: Array, addresses: Array, access: Access) -> tuple[list[Array], int]:
    offsets = (addresses & U64(ALL)).astype(I64)
    size = access.size * access.count
    _private(wave, offsets, size, "reads")
    assert wave.scratch is not None and wave.scratch_undefined is not None
    values = []
    missing = np.zeros(len(lanes), np.bool_)
    for index in range(access.count):
        value = np.zeros(len(lanes), U32)
        for byte in range(access.size):
            at = offsets + index * access.size + byte
            value |= wave.scratch[lanes, at].astype(U32) << U32(8 * byte)
            missing |= wave.scratch_undefined[lanes, at]
        values.append(value)
    return values, mask_of(missing)


def _vector_store(
    instruction: Instruction, family: str, form: str, rest: str, address: _Address, memories: Callable[[Wave], Memories]
) -> Operation:
    access = _access(rest)
    high = "D16_HI" in rest
    access = Access(access.size, access.count)
    row = _data_row(instruction, "data", "vsrc", "vdata")
    reads = tuple(range(VGPR + row, VGPR + row + access.count))
    counter = "vm" if family == "cdna" else "store"

    def store(wave: Wave, first: int, lanes: Array, addresses: Array, part: Access, stores: list[Any]) -> None:
        total = part.size * part.count
        for region, here in _lane_regions(memories(wave), wave, form, addresses, total, True):
            if region is not None:
                wave.require_defined(reads, "a stored value")
            values = [wave.v[first + index][lanes[here]] >> U32(16 if high else 0) for index in range(part.count)]
            if region is None:
                _store_private(wave, lanes[here], addresses[here], part, values, reads)
                continue
            lds = region is memories(wave).lds
            offsets = _offsets(region, addresses[here], lds)
            if lds:
                _in_lds(region, offsets, total, "writes")
            _store_region(wave, region, offsets, part, values, stores)

    def run(wave: Wave) -> None:
        lanes = wave.lanes()
        stores: list[Any] = []
        if len(lanes):
            _require(wave, instruction, address)
            for index, part, inside, addresses, _ in _parts(wave, lanes, address, access):
                if len(inside):
                    store(wave, row + index, inside, addresses, part, stores)
        # On CDNA loads and stores share one counter, and come back in order.
        kind = "store" if family != "cdna" else "flat" if form == "FLAT" else "load"
        wave.issue(counter, Outstanding(kind, (), stores))
        if form == "FLAT":
            wave.issue("lds" if family == "rdna4" else "lgkm", Outstanding("flat" if family == "cdna" else "lds"))

    return Operation(instruction, run, "vmem", address.registers + reads, ())


def _store_private(wave: Wave, lanes: Array, addresses: Array, access: Access, values: list[Array], reads: tuple[int, ...]) -> None:
    offsets = (addresses & U64(ALL)).astype(I64)
    _private(wave, offsets, access.size * access.count, "writes")
    assert wave.scratch is not None and wave.scratch_undefined is not None
    for index, value in enumerate(values):
        bits = wave.undefined.get(reads[index], 0)
        missing = np.array([bool(bits >> int(lane) & 1) for lane in lanes]) if bits else np.bool_(False)
        for byte in range(access.size):
            at = offsets + index * access.size + byte
            wave.scratch[lanes, at] = (value >> U32(8 * byte)).astype(np.uint8)
            wave.scratch_undefined[lanes, at] = missing


# -- atomics


def _atomic_function(name: str, size: int) -> Callable[[Array, Array], Array]:
    """old, operand to new, for one lane: numpy scalars of 4 or 8 bytes."""
    signed = np.int64 if size == 8 else np.int32
    plain = U64 if size == 8 else U32
    real = F64 if size == 8 else F32

    def of_float(compute: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
        return lambda old, value: np.asarray(compute(old.view(real), value.view(real)), real).view(plain)[()]

    def halves(compute: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
        def run(old: Array, value: Array) -> Array:
            return np.asarray(compute(np.array([old]).view(F16), np.array([value]).view(F16)), F16).view(U32)[0]

        return run

    def bfloats(old: Array, value: Array) -> Array:
        total = from_bfloat16(np.array([old]).view(U16)) + from_bfloat16(np.array([value]).view(U16))
        return to_bfloat16(total).astype(U16).view(U32)[0]

    table: dict[str, Callable[[Array, Array], Array]] = {
        "ADD": lambda old, value: old + value,
        "SUB": lambda old, value: old - value,
        "RSUB": lambda old, value: value - old,
        "AND": lambda old, value: old & value,
        "OR": lambda old, value: old | value,
        "XOR": lambda old, value: old ^ value,
        "SWAP": lambda old, value: value,
        "UMIN": min,
        "UMAX": max,
        "SMIN": lambda old, value: min(old, value, key=lambda x: int(x.view(signed))),
        "SMAX": lambda old, value: max(old, value, key=lambda x: int(x.view(signed))),
        "INC": lambda old, value: plain(0) if old >= value else old + plain(1),
        "DEC": lambda old, value: value if old == 0 or old > value else old - plain(1),
        "ADD_F": of_float(lambda old, value: old + value),
        "MIN_F": of_float(minimum_number),
        "MAX_F": of_float(maximum_number),
        "PK_ADD_F16": halves(lambda old, value: old + value),
        "PK_ADD_BF16": bfloats,
    }
    return table[name]


_ATOMIC_NAMES = {
    "ADD": "ADD", "ADD_U32": "ADD", "ADD_U64": "ADD", "SUB": "SUB", "SUB_U32": "SUB", "SUB_U64": "SUB",
    "RSUB_U32": "RSUB", "RSUB_U64": "RSUB", "AND": "AND", "AND_B32": "AND", "AND_B64": "AND", "OR": "OR", "OR_B32": "OR", "OR_B64": "OR",
    "XOR": "XOR", "XOR_B32": "XOR", "XOR_B64": "XOR", "SWAP": "SWAP", "SWAP_B32": "SWAP", "SWAP_B64": "SWAP",
    "WRXCHG_B32": "SWAP", "WRXCHG_B64": "SWAP", "STOREXCHG_B32": "SWAP", "STOREXCHG_B64": "SWAP",
    "SMIN": "SMIN", "SMAX": "SMAX", "UMIN": "UMIN", "UMAX": "UMAX", "MIN_I32": "SMIN", "MAX_I32": "SMAX", "MIN_U32": "UMIN",
    "MAX_U32": "UMAX", "MIN_I64": "SMIN", "MAX_I64": "SMAX", "MIN_U64": "UMIN", "MAX_U64": "UMAX",
    "INC": "INC", "DEC": "DEC", "INC_U32": "INC", "DEC_U32": "DEC", "INC_U64": "INC", "DEC_U64": "DEC",
    "ADD_F32": "ADD_F", "ADD_F64": "ADD_F", "MIN_F32": "MIN_F", "MAX_F32": "MAX_F", "MIN_F64": "MIN_F", "MAX_F64": "MAX_F",
    "MIN_NUM_F32": "MIN_F", "MAX_NUM_F32": "MAX_F", "MIN_NUM_F64": "MIN_F", "MAX_NUM_F64": "MAX_F",
    "PK_ADD_F16": "PK_ADD_F16", "PK_ADD_BF16": "PK_ADD_BF16",
    "CMPSWAP": "CMPSWAP", "CMPSWAP_B32": "CMPSWAP", "CMPSWAP_B64": "CMPSWAP", "CMPST_B32": "CMPST", "CMPST_B64": "CMPST",
    "CMPSTORE_B32": "CMPSTORE", "CMPSTORE_B64": "CMPSTORE",
}  # fmt: skip


def _atomic_kind(name: str) -> tuple[str, int]:
    size = 8 if name.endswith(("_X2", "64")) else 4
    base = name.removesuffix("_X2")
    if base not in _ATOMIC_NAMES:
        raise Unknown(f"an atomic {name}")
    return _ATOMIC_NAMES[base], size


def _read_data(wave: Wave, row: int, lane: int, size: int) -> Any:
    low = int(wave.v[row][lane])
    return U64(low | int(wave.v[row + 1][lane]) << 32) if size == 8 else U32(low)


def _shuffled(wave: Wave, lanes: Array) -> list[int]:
    """The order in which lanes reach an atomic unit is nobody's business."""
    order = [int(position) for position in range(len(lanes))]
    wave.rng.shuffle(order)
    return order


def _vector_atomic(
    instruction: Instruction, family: str, form: str, rest: str, address: _Address, memories: Callable[[Wave], Memories]
) -> Operation:
    kind, size = _atomic_kind(rest)
    rows = size // 4
    data = _data_row(instruction, "data", "vsrc", "vdata")
    result = _data_row(instruction, "vdst", "vdata")
    returns = bool(instruction.number("glc") or instruction.number("sc0") or instruction.number("th") & 1)
    operands = rows * (2 if kind == "CMPSWAP" else 1)
    reads = tuple(range(VGPR + data, VGPR + data + operands))
    writes = tuple(range(VGPR + result, VGPR + result + rows)) if returns else ()
    compute = None if kind == "CMPSWAP" else _atomic_function(kind, size)
    counter = "vm" if returns or family == "cdna" else "store"

    def run(wave: Wave) -> None:
        lanes = wave.lanes()
        stores: list[Any] = []
        if len(lanes):
            _require(wave, instruction, address)
            wave.require_defined(reads, "an atomic operand")
            ((_, _, lanes, addresses, outside),) = _parts(wave, lanes, address, Access(size))
            for register in writes:
                wave.v[register - VGPR][outside] = 0
            for region, here in _lane_regions(memories(wave), wave, form, addresses, size, True) if len(lanes) else ():
                if region is None:
                    raise Unknown("an atomic on private memory")
                offsets = _offsets(region, addresses[here], region is memories(wave).lds)
                _check_atomic(wave, region, offsets, size, stores)
                _atomic_region(wave, region, offsets, lanes[here], size, compute, data, result if returns else None)
        for register in writes:
            wave.set_undefined(register, 0)
        flat = form == "FLAT" and family == "cdna"
        kind_of_entry = "flat" if flat else "load" if returns or family == "cdna" else "store"
        wave.issue(counter, Outstanding(kind_of_entry, writes, stores))
        if form == "FLAT":
            wave.issue("lds" if family == "rdna4" else "lgkm", Outstanding("flat" if flat else "lds", writes))

    return Operation(instruction, run, "vmem", address.registers + reads, writes)


def _atomic_region(
    wave: Wave, region: Region, offsets: Array, lanes: Array, size: int, compute: Any, data: int, result: int | None
) -> None:
    if (offsets & (size - 1)).any():
        raise Trap(f"an atomic of {size} bytes at an address that is no multiple of it")
    view = region.view(size)
    rows = size // 4
    for position in _shuffled(wave, lanes):
        lane, at = int(lanes[position]), int(offsets[position]) // size
        old = view[at]
        value = _read_data(wave, data, lane, size)
        new = compute(old, value) if compute else value if old == _read_data(wave, data + rows, lane, size) else old
        view[at] = new
        if result is not None:
            whole = int(old)
            for row in range(rows):
                wave.v[result + row][lane] = whole >> 32 * row & ALL


# -- LDS

_DS_LOAD = re.compile(r"DS_(?:LOAD|READ)(2ST64|2|_2ADDR_STRIDE64|_2ADDR)?_([BUI])(8|16|32|64|96|128)(_D16)?(_HI)?(?:_D16)?(_HI)?")
_DS_STORE = re.compile(r"DS_(?:STORE|WRITE)(2ST64|2|_2ADDR_STRIDE64|_2ADDR)?_B(8|16|32|64|96|128)(_D16_HI)?")


def _lds(instruction: Instruction, family: str, memories: Callable[[Wave], Memories]) -> Operation:
    name = instruction.name
    if instruction.number("gds"):
        raise Unknown(f"{instruction}: global data share")
    counter = "lds" if family == "rdna4" else "lgkm"
    if name == "DS_NOP":
        return Operation(instruction, lambda wave: None, "nop")
    if name in ("DS_BPERMUTE_B32", "DS_PERMUTE_B32", "DS_SWIZZLE_B32", "DS_BPERMUTE_FI_B32"):
        return _permute(instruction, counter)
    if match := _DS_LOAD.fullmatch(name):
        return _lds_load(instruction, match, counter, memories)
    if match := _DS_STORE.fullmatch(name):
        return _lds_store(instruction, match, counter, memories)
    return _lds_atomic(instruction, counter, memories)


def _lds_access(bits: int, kind: str, half: str = "") -> Access:
    if bits >= 32:
        return Access(4, bits // 32)
    return Access(bits // 8, 1, kind == "I", half)


def _lds_places(instruction: Instruction, pattern: str | None, access: Access) -> list[int]:
    """The offsets of one or two accesses, in bytes."""
    first, second = instruction.number("offset0"), instruction.number("offset1")
    if not pattern:
        return [first | second << 8]
    unit = access.size * access.count * (64 if "64" in pattern else 1)
    return [first * unit, second * unit]


def _lds_offsets(wave: Wave, address: int, lanes: Array, offset: int) -> Array:
    """Added in 32 bits: a base may be negative."""
    return (wave.v[address][lanes].astype(I64) + offset) & ALL


def _lds_load(instruction: Instruction, match: re.Match[str], counter: str, memories: Callable[[Wave], Memories]) -> Operation:
    half = ""
    if match[4]:
        half = "high" if match[5] or match[6] else "low"
    access = _lds_access(int(match[3]), match[2], half)
    places = _lds_places(instruction, match[1], access)
    row, address = _data_row(instruction, "vdst"), instruction.raw("addr")
    total = access.size * access.count
    writes = tuple(range(VGPR + row, VGPR + row + access.count * len(places)))
    reads = (VGPR + address,)

    def run(wave: Wave) -> None:
        lanes = wave.lanes()
        if len(lanes):
            wave.require_defined(reads, "an LDS address")
            region = memories(wave).lds
            found = []
            for place in places:
                offsets = _lds_offsets(wave, address, lanes, place)
                _in_lds(region, offsets, total, "reads")
                found.append(_load_region(wave, region, offsets, access))
            for index, (values, bad) in enumerate(found):
                _into_registers(wave, row + index * access.count, lanes, access, values, bad)
        wave.issue(counter, Outstanding("lds", writes))

    return Operation(instruction, run, "lds", reads, writes, counter=counter)


def _lds_store(instruction: Instruction, match: re.Match[str], counter: str, memories: Callable[[Wave], Memories]) -> Operation:
    access = _lds_access(int(match[2]), "B")
    places = _lds_places(instruction, match[1], access)
    address = instruction.raw("addr")
    rows = [_data_row(instruction, "data0"), _data_row(instruction, "data1")][: len(places)]
    shift = U32(16 if match[3] else 0)
    reads = (VGPR + address, *(VGPR + row + index for row in rows for index in range(access.count)))
    total = access.size * access.count

    def run(wave: Wave) -> None:
        lanes = wave.lanes()
        stores: list[Any] = []
        if len(lanes):
            wave.require_defined((VGPR + address,), "an LDS address")
            wave.require_defined(reads[1:], "a value stored to LDS")
            region = memories(wave).lds
            for place, row in zip(places, rows, strict=True):
                offsets = _lds_offsets(wave, address, lanes, place)
                _in_lds(region, offsets, total, "writes")
                values = [wave.v[row + index][lanes] >> shift for index in range(access.count)]
                _store_region(wave, region, offsets, access, values, stores)
        wave.issue(counter, Outstanding("lds", (), stores))

    return Operation(instruction, run, "lds", reads, ())


def _lds_atomic(instruction: Instruction, counter: str, memories: Callable[[Wave], Memories]) -> Operation:
    name = instruction.name.removeprefix("DS_")
    returns = "_RTN" in name
    kind, size = _atomic_kind(name.replace("_RTN", ""))
    rows = size // 4
    address, data, second = instruction.raw("addr"), _data_row(instruction, "data0"), _data_row(instruction, "data1")
    result = _data_row(instruction, "vdst") if returns else None
    offset = instruction.number("offset0") | instruction.number("offset1") << 8
    compare = kind in ("CMPST", "CMPSTORE")
    compute = None if compare else _atomic_function(kind, size)
    reads = (VGPR + address, *range(VGPR + data, VGPR + data + rows))
    if compare:
        reads += tuple(range(VGPR + second, VGPR + second + rows))
    writes = tuple(range(VGPR + result, VGPR + result + rows)) if result is not None else ()

    def run(wave: Wave) -> None:
        lanes = wave.lanes()
        stores: list[Any] = []
        if len(lanes):
            wave.require_defined(reads, "an LDS atomic")
            region = memories(wave).lds
            offsets = _lds_offsets(wave, address, lanes, offset)
            _in_lds(region, offsets, size, "changes")
            _check_atomic(wave, region, offsets, size, stores)
            if compare:
                _compare_and_store(wave, region, offsets, lanes, size, (data, second) if kind == "CMPST" else (second, data), result)
            else:
                _atomic_region(wave, region, offsets, lanes, size, compute, data, result)
        for register in writes:
            wave.set_undefined(register, 0)
        wave.issue(counter, Outstanding("lds", writes, stores))

    return Operation(instruction, run, "lds", reads, writes, counter=counter)


def _check_atomic(wave: Wave, region: Region, offsets: Array, size: int, stores: list[Any]) -> None:
    """Atomics of several waves on one word are in order; plain accesses beside them need a barrier."""
    owner = region.ownership
    if owner is None:
        return
    words = _bytes(offsets, size)
    raced = (owner.writer[words] != wave.number) & (owner.writer_epoch[words] == wave.epoch)
    if raced.any():
        raise Trap(f"an atomic on {region.name} at {int(words[raced][0])}: another wave stored there, with no barrier between them")
    if region.undefined is not None and any(region.undefined[offsets + byte].any() for byte in range(size)):
        raise Trap(f"an atomic on {region.name}, on a word that was never written")
    owner.unfinished[words] = wave.number
    owner.atomic_epoch[words] = wave.epoch
    stores.append((region, words))


def _compare_and_store(
    wave: Wave, region: Region, offsets: Array, lanes: Array, size: int, rows: tuple[int, int], result: int | None
) -> None:
    """`rows`: the value to compare with, and the value to store. GFX9 and GFX11 have them in opposite order."""
    view = region.view(size)
    for position in _shuffled(wave, lanes):
        lane, at = int(lanes[position]), int(offsets[position]) // size
        old = view[at]
        if old == _read_data(wave, rows[0], lane, size):
            view[at] = _read_data(wave, rows[1], lane, size)
        if result is not None:
            for row in range(size // 4):
                wave.v[result + row][lane] = int(old) >> 32 * row & ALL


# -- permutations through the LDS hardware


def _permute(instruction: Instruction, counter: str) -> Operation:
    name = instruction.name
    address, data = instruction.raw("addr"), instruction.raw("data0")
    row = instruction.raw("vdst")
    offset = instruction.number("offset0") | instruction.number("offset1") << 8
    reads = (VGPR + address,) if "SWIZZLE" in name else (VGPR + address, VGPR + data)

    def run(wave: Wave) -> None:
        lanes = wave.lanes()
        if len(lanes):
            if "SWIZZLE" not in name:
                wave.require_defined((VGPR + address,), "a lane number")
            source, value = _permuted_from(wave, name, address, data, offset)
            there = source >= 0
            active = lanes_of(wave.full if name == "DS_BPERMUTE_FI_B32" else wave.exec, wave.size)
            valid = there & active[np.maximum(source, 0)]
            seen = np.where(valid, value[np.maximum(source, 0)], U32(0))
            bits = wave.undefined.get(VGPR + (address if "SWIZZLE" in name else data), 0)
            bad = mask_of(valid & lanes_of(bits, wave.size)[np.maximum(source, 0)]) & wave.exec if bits else 0
            wave.write_row(row, seen)
            wave.set_undefined(VGPR + row, bad)
        wave.issue(counter, Outstanding("lds", (VGPR + row,)))

    return Operation(instruction, run, "lds", reads, (VGPR + row,), counter=counter)


def _permuted_from(wave: Wave, name: str, address: int, data: int, offset: int) -> tuple[Array, Array]:
    """For each lane, the lane that it reads (-1: none), and the register that is read."""
    lane = np.arange(wave.size)
    if name == "DS_SWIZZLE_B32":
        return _swizzle(lane, offset), wave.v[address].copy()
    target = (wave.v[address].astype(I64) + offset >> 2) % wave.size
    if name != "DS_PERMUTE_B32":
        return target, wave.v[data].copy()
    source = np.full(wave.size, -1)
    for sender in wave.lanes():
        source[target[sender]] = sender
    return source, wave.v[data].copy()


def _swizzle(lane: Array, pattern: int) -> Array:
    if pattern >= 0xE000:
        raise Unknown(f"ds_swizzle_b32 {pattern:#x}")
    if pattern & 0x8000:
        return lane & ~3 | pattern >> 2 * (lane & 3) & 3
    if pattern >= 0xC000:
        raise Unknown(f"ds_swizzle_b32 {pattern:#x}")
    and_mask, or_mask, xor_mask = pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31
    return lane & ~31 | ((lane & 31 & and_mask | or_mask) ^ xor_mask)
