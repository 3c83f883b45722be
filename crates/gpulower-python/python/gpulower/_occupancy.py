"""How many blocks of a kernel fit on a multiprocessor of NVIDIA's, from its static resources.

The numbers are those of the table "Technical Specifications per Compute Capability" of NVIDIA's CUDA C++ Programming Guide,
and the granularities of its occupancy calculator. That of 9.0 was compared with the driver's own answer on an H200.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

REGISTERS = 65536
#: Registers are given to warps in units of so many.
REGISTER_UNIT = 256
#: Warps are placed in fours: a multiprocessor has four schedulers.
WARP_UNIT = 4


@dataclass(frozen=True)
class Multiprocessor:
    """What a multiprocessor has."""

    warps: int
    blocks: int
    #: Bytes of shared memory for all blocks.
    shared: int
    #: Bytes that the system takes of it for each block.
    reserved: int
    #: Shared memory is given in units of so many bytes.
    shared_unit: int


def _of(warps: int, blocks: int, kilobytes: int, reserved: int = 1024, unit: int = 128) -> Multiprocessor:
    return Multiprocessor(warps, blocks, kilobytes * 1024, reserved, unit)


MULTIPROCESSORS: dict[tuple[int, int], Multiprocessor] = {
    (5, 0): _of(64, 32, 64, 0, 256),
    (5, 2): _of(64, 32, 96, 0, 256),
    (5, 3): _of(64, 32, 64, 0, 256),
    (6, 0): _of(64, 32, 64, 0, 256),
    (6, 1): _of(64, 32, 96, 0, 256),
    (6, 2): _of(64, 32, 64, 0, 256),
    (7, 0): _of(64, 32, 96, 0, 256),
    (7, 2): _of(64, 32, 96, 0, 256),
    (7, 5): _of(32, 16, 64, 0, 256),
    (8, 0): _of(64, 32, 164),
    (8, 6): _of(48, 16, 100),
    (8, 7): _of(48, 16, 164),
    (8, 9): _of(48, 24, 100),
    (9, 0): _of(64, 32, 228),
    (10, 0): _of(64, 32, 228),
    (10, 3): _of(64, 32, 228),
    (12, 0): _of(48, 24, 100),
    (12, 1): _of(48, 24, 100),
}


@dataclass(frozen=True)
class Occupancy:
    """How much of a multiprocessor a kernel fills."""

    #: Blocks at a time.
    blocks: int
    #: Warps at a time, and the most that there can be.
    warps: int
    most_warps: int
    #: What keeps a further block away: `registers`, `shared memory`, `warps` or `blocks`.
    limit: str

    @property
    def fraction(self) -> float:
        """Warps of the most that there can be."""
        return self.warps / self.most_warps

    def __str__(self) -> str:
        return f"{self.warps}/{self.most_warps} warps in {self.blocks} blocks, limited by {self.limit}"


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


def occupancy(target: str, registers: int, shared: int, threads: int) -> Occupancy | None:
    """The occupancy of a kernel with blocks of so many threads; None for chips that the table does not have."""
    chip = re.fullmatch(r"sm_(\d+)(\d)[af]?", target)
    has = MULTIPROCESSORS.get((int(chip[1]), int(chip[2]))) if chip else None
    if has is None or threads < 1:
        return None
    warps = -(-threads // 32)
    each = _up(registers * 32, REGISTER_UNIT)
    by_registers = has.blocks
    if each:
        by_registers = REGISTERS // each // WARP_UNIT * WARP_UNIT // warps
    memory = _up(shared + has.reserved, has.shared_unit)
    limits = {
        "blocks": has.blocks,
        "warps": has.warps // warps,
        "registers": by_registers,
        "shared memory": has.shared // memory if memory else has.blocks,
    }
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    return Occupancy(blocks=blocks, warps=blocks * warps, most_warps=has.warps, limit=limit)
