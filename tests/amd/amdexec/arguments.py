"""The kernel argument segment and the user registers, as a runtime and the command processor fill them."""

from __future__ import annotations

import random
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .codeobject import CodeObject, Descriptor
from .memory import PRIVATE_APERTURE, PRIVATE_RESOURCE, SHARED_APERTURE
from .traps import Unknown


@dataclass(frozen=True)
class Geometry:
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_lds: int = 0


def _hidden(kind: str, geometry: Geometry, size: int, services: Mapping[str, int]) -> bytes:
    """The value of a hidden argument: where a service is, or null where it does not exist here (a queue)."""
    grid, block = geometry.grid, geometry.block
    axes = {"x": 0, "y": 1, "z": 2}
    axis = axes.get(kind[-1], 0)
    dimensions = 3 if grid[2] * block[2] > 1 else 2 if grid[1] * block[1] > 1 else 1
    values = {
        "hidden_block_count": grid[axis],
        "hidden_group_size": block[axis],
        "hidden_remainder": 0,
        "hidden_global_offset": 0,
        "hidden_grid_dims": dimensions,
        "hidden_dynamic_lds_size": geometry.dynamic_lds,
        "hidden_private_base": PRIVATE_APERTURE,
        "hidden_shared_base": SHARED_APERTURE,
        "hidden_none": 0,
        "hidden_printf_buffer": 0,
        "hidden_hostcall_buffer": 0,
        "hidden_default_queue": 0,
        "hidden_completion_action": 0,
        "hidden_multigrid_sync_arg": 0,
        "hidden_heap_v1": 0,
        "hidden_queue_ptr": 0,
        **services,
    }
    name = kind.removesuffix(f"_{kind[-1]}") if kind[-2:] in ("_x", "_y", "_z") else kind
    if name not in values:
        raise Unknown(f"hidden argument {kind}")
    return int(values[name]).to_bytes(size, "little")


def asks_for(kernel: dict[str, Any], service: str) -> bool:
    return any(argument[".value_kind"] == service for argument in kernel.get(".args", []))


def kernarg_segment(kernel: dict[str, Any], arguments: Sequence[bytes], geometry: Geometry, services: Mapping[str, int]) -> bytes:
    """The segment by the metadata's offsets; padding holds no zeros by accident."""
    segment = bytearray(b"\xa5" * max(int(kernel[".kernarg_segment_size"]), 8))
    explicit = iter(arguments)
    count = 0
    for argument in kernel.get(".args", []):
        kind, offset, size = argument[".value_kind"], argument[".offset"], argument[".size"]
        if kind.startswith("hidden_"):
            segment[offset : offset + size] = _hidden(kind, geometry, size, services)
            continue
        count += 1
        value = next(explicit, None)
        if value is None:
            raise ValueError(f"the kernel takes more than the {len(arguments)} arguments given")
        if len(value) != size:
            raise ValueError(f"argument {count - 1} has {size} bytes, {len(value)} were given")
        segment[offset : offset + size] = value
    if next(explicit, None) is not None:
        raise ValueError(f"the kernel takes {count} arguments, {len(arguments)} were given")
    return bytes(segment)


def user_sgprs(code: CodeObject, descriptor: Descriptor, kernarg: int, segment: bytes, packet: int, rng: random.Random) -> list[int]:
    """What the command processor puts into the first scalar registers, by the descriptor's bits."""
    bits = descriptor.properties
    architected = not code.target.startswith("gfx90")

    def pair(value: int) -> list[int]:
        return [value & 0xFFFFFFFF, value >> 32]

    registers: list[int] = []
    if bits & 1 and not architected:
        registers += [0, PRIVATE_RESOURCE, 0xFFFFFFFF, 0x00E00000]
    if bits & 2:
        registers += pair(packet)
    if bits & 4:
        registers += pair(0)
    if bits & 8:
        registers += pair(kernarg)
    if bits & 16:
        registers += pair(1)
    if bits & 32:
        registers += [rng.getrandbits(32) for _ in range(2)]
    if bits & 64:
        registers.append(descriptor.scratch)
    length, offset = descriptor.preload & 0x7F, descriptor.preload >> 7
    if length:
        registers += struct.unpack_from(f"<{length}I", segment.ljust(4 * (offset + length), b"\0"), 4 * offset)
    return registers


def dispatch_packet(geometry: Geometry, descriptor: Descriptor, kernarg: int) -> bytes:
    """The AQL packet, for kernels that look at it."""
    grid, block = geometry.grid, geometry.block
    threads = tuple(blocks * size for blocks, size in zip(grid, block, strict=True))
    packet = struct.pack("<HHHHHHIII", 0, 3, *block, 0, *threads)
    packet += struct.pack("<IIQQQQ", descriptor.scratch, descriptor.lds + geometry.dynamic_lds, 0, kernarg, 0, 0)
    return packet
