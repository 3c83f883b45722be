"""The state of one wave, and what is known about it: which registers are defined, and which loads are on their way."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from .memory import Region
from .traps import Trap

Array = Any

VCC, M0_CDNA, EXEC, SCC = 106, 124, 126, 253
VGPR, AGPR, REGISTERS = 256, 512, 768
# What an operand with a lane pattern sees: no register of the hardware, and two rows of its own.
PERMUTED = REGISTERS
ALL = 0xFFFFFFFF


@lru_cache(maxsize=4096)
def lanes_of(mask: int, wave: int) -> Array:
    """The bits of a mask as booleans."""
    raw = np.frombuffer(mask.to_bytes(wave // 8, "little"), np.uint8)
    result = np.unpackbits(raw, bitorder="little").view(np.bool_)
    result.flags.writeable = False
    return result


@lru_cache(maxsize=4096)
def indices_of(mask: int, wave: int) -> Array:
    """The numbers of the bits that are set."""
    result = np.flatnonzero(lanes_of(mask, wave))
    result.flags.writeable = False
    return result


def mask_of(lanes: Array) -> int:
    """Booleans as the bits of a mask."""
    return int.from_bytes(np.packbits(lanes, bitorder="little").tobytes(), "little")


def register_name(register: int) -> str:
    if register == SCC:
        return "scc"
    named = {106: "vcc_lo", 107: "vcc_hi", 124: "m0 or null", 125: "m0 or null", 126: "exec_lo", 127: "exec_hi"}
    if register < VGPR:
        return named.get(register, f"s{register}")
    return f"v{register - VGPR}" if register < AGPR else f"a{register - AGPR}"


@dataclass(slots=True)
class Outstanding:
    """A memory instruction that has not been waited for: the registers that it will write, and the words that it stored."""

    kind: str
    registers: tuple[int, ...] = ()
    stores: list[tuple[Region, Array]] = field(default_factory=list)


class Wave:
    """Registers hold garbage at the start, and are marked as undefined, but for those that the hardware sets."""

    def __init__(self, number: int, size: int, lanes: int, family: str, rng: random.Random, scratch_size: int) -> None:
        self.number, self.size, self.family, self.rng = number, size, family, rng
        generator = np.random.default_rng(rng.getrandbits(32))
        self.v: Array = generator.integers(0, 1 << 32, (514, size), np.uint32)
        self.s: list[int] = [rng.getrandbits(32) for _ in range(128)]
        self.null = 125 if family == "cdna" else 124
        self.m0 = 124 if family == "cdna" else 125
        self.s[self.null] = 0
        self.scc = rng.getrandbits(1)
        self.full = (1 << size) - 1
        self.exec = self.mask = 0
        self.active: Array | None = None
        self.pc = 0
        self.done = self.waiting = False
        self.barriers = 0
        # Between s_set_gpr_idx_on and s_set_gpr_idx_off.
        self.indexing = False
        self.first_epoch = 0
        self.float_mode = 0xF0
        self.mode = 0
        self.queues: dict[str, deque[Outstanding]] = {}
        self.pending: dict[int, int] = {}
        self.undefined: dict[int, int] = {VGPR + r: self.full for r in range(512)}
        self.undefined.update({r: ALL for r in range(106) if r != self.null})
        self.undefined.update(dict.fromkeys((VCC, VCC + 1, self.m0), ALL))
        self.undefined[SCC] = 1
        # The undefined bits of scalars that went into the lane of a vector register, by the value: copies of it are copies.
        self.spilled: dict[int, int] = {}
        self.scratch: Array | None = None
        self.scratch_undefined: Array | None = None
        if scratch_size:
            self.scratch = generator.integers(0, 256, (size, scratch_size + 16), np.uint8)
            self.scratch_undefined = np.ones((size, scratch_size + 16), np.bool_)
        self.scratch_size = scratch_size
        self.history: deque[Any] = deque(maxlen=24)
        # In a wave of 32 lanes nothing uses the upper half; ockl takes it to be 0 when it tells the host who calls.
        self.s[EXEC + 1] = 0
        self.set_exec((1 << lanes) - 1)

    @property
    def epoch(self) -> int:
        """A number that waves of one workgroup share between two barriers, and nobody else has."""
        return self.first_epoch + self.barriers

    # -- masks

    def set_exec(self, value: int) -> None:
        value &= self.full
        self.exec = value
        self.s[EXEC] = value & ALL
        if self.size == 64:
            self.s[EXEC + 1] = value >> 32
        self.active = None if value == self.full else lanes_of(value, self.size)

    def lanes(self) -> Array:
        """The numbers of the active lanes."""
        return indices_of(self.exec, self.size)

    def read_mask(self, register: int) -> int:
        """A lane mask in scalar registers."""
        if self.size == 64:
            return self.s[register] | self.s[register + 1] << 32
        return self.s[register]

    def write_mask(self, register: int, value: int) -> None:
        if register == self.null:
            return
        if register == EXEC:
            return self.set_exec(value)
        self.s[register] = value & ALL
        if self.size == 64:
            self.s[register + 1] = value >> 32

    def write_scalar(self, register: int, value: int, bits: int) -> None:
        if register == self.null:
            return
        if register in (EXEC, EXEC + 1):
            if bits == 64 or self.size == 32:
                return self.set_exec(value if register == EXEC else self.exec)
            low = value if register == EXEC else self.s[EXEC]
            high = value if register == EXEC + 1 else self.s[EXEC + 1]
            return self.set_exec(low | high << 32)
        self.s[register] = value & ALL
        if bits > 32:
            for extra in range(1, bits // 32):
                self.s[register + extra] = value >> 32 * extra & ALL

    # -- vectors

    def write_row(self, row: int, value: Array) -> None:
        """One register of the active lanes."""
        if self.active is None:
            self.v[row] = value
        else:
            np.copyto(self.v[row], value, where=self.active)

    def pair(self, row: int) -> Array:
        return self.v[row].astype(np.uint64) | self.v[row + 1].astype(np.uint64) << np.uint64(32)

    def write_pair(self, row: int, value: Array) -> None:
        self.write_row(row, value.astype(np.uint32))
        self.write_row(row + 1, (value >> np.uint64(32)).astype(np.uint32))

    # -- memory instructions on their way

    def issue(self, counter: str, entry: Outstanding) -> None:
        self.queues.setdefault(counter, deque()).append(entry)
        for register in entry.registers:
            self.pending[register] = self.pending.get(register, 0) + 1

    def wait(self, counter: str, count: int) -> None:
        """Retires all but the last `count`; with kinds that may overtake one another, only a count of 0 says anything."""
        queue = self.queues.get(counter)
        if not queue or len(queue) <= count:
            return
        if count and (len({entry.kind for entry in queue}) > 1 or queue[0].kind in ("scalar", "flat")):
            return
        while len(queue) > count:
            self.retire(queue.popleft())

    def retire(self, entry: Outstanding) -> None:
        for register in entry.registers:
            self.pending[register] -= 1
            if not self.pending[register]:
                del self.pending[register]
        for region, words in entry.stores:
            if region.ownership is not None:
                mine = words[region.ownership.unfinished[words] == self.number]
                region.ownership.unfinished[mine] = -1

    def retire_all(self) -> None:
        for queue in self.queues.values():
            while queue:
                self.retire(queue.popleft())

    # -- definedness

    def undefined_lanes(self, registers: tuple[int, ...]) -> int:
        """The active lanes in which any of the registers was never written; a scalar register counts for all."""
        result = 0
        for register in registers:
            bits = self.undefined.get(register, 0)
            if bits:
                result |= bits if register >= VGPR else self.exec
        return result & self.exec

    def set_undefined(self, register: int, lanes: int) -> None:
        """After a write of the active lanes of a vector register: which of them got an undefined value."""
        left = self.undefined.get(register, 0) & ~self.exec | lanes
        if left:
            self.undefined[register] = left
        else:
            self.undefined.pop(register, None)

    def set_undefined_bits(self, register: int, bits: int) -> None:
        if bits:
            self.undefined[register] = bits
        else:
            self.undefined.pop(register, None)

    def require_defined(self, registers: tuple[int, ...], what: str) -> None:
        for register in registers:
            bits = self.undefined.get(register, 0)
            if register >= VGPR:
                bits &= self.exec
            if bits:
                raise Trap(f"{what} depends on {register_name(register)}, which was never written")
