"""Launching one kernel on host arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .arguments import Geometry, asks_for, dispatch_packet, kernarg_segment, user_sgprs
from .codeobject import CodeObject
from .heap import Heap
from .hostcall import Host
from .machine import Launch, Machine, load
from .memory import AddressSpace, Region

Array = Any


@dataclass
class Buffer:
    """An array in device memory. The kernel may write it only if it is an output."""

    name: str
    array: Array
    writable: bool = False


@dataclass(frozen=True)
class Pointer:
    """An argument that is the address of a buffer."""

    buffer: str


Argument = Pointer | bytes


@dataclass
class Result:
    outputs: dict[str, Array] = field(default_factory=dict)
    instructions: int = 0


def memref(name: str, array: Array) -> list[Argument]:
    """A memref parameter: two pointers, an offset, sizes, strides."""
    strides = [stride // array.itemsize for stride in array.strides]
    return [Pointer(name), Pointer(name), *(np.int64(value).tobytes() for value in (0, *array.shape, *strides))]


def execute(
    code: CodeObject,
    kernel: str,
    geometry: Geometry,
    buffers: Sequence[Buffer],
    arguments: Sequence[Argument],
    *,
    seed: int = 0,
    fuel: int = 50_000_000,
    trace: bool = False,
) -> Result:
    """Runs a kernel to its end; a `Trap` where it does what no correct program does."""
    space = AddressSpace()
    region = load(code, space)
    placed = {}
    for buffer in buffers:
        placed[buffer.name] = space.add(buffer.name, np.ascontiguousarray(buffer.array), writable=buffer.writable)
        if buffer.writable:
            placed[buffer.name].track(undefined=False)
    encoded = [np.uint64(placed[a.buffer].base).tobytes() if isinstance(a, Pointer) else a for a in arguments]
    executed = launch(code, kernel, geometry, space, region, encoded, seed=seed, fuel=fuel, trace=trace)
    result = Result(instructions=executed)
    for buffer in buffers:
        if buffer.writable:
            raw = placed[buffer.name].data[: placed[buffer.name].size]
            result.outputs[buffer.name] = raw.copy().view(buffer.array.dtype).reshape(buffer.array.shape)
    return result


def launch(
    code: CodeObject,
    kernel: str,
    geometry: Geometry,
    space: AddressSpace,
    region: Region,
    encoded: Sequence[bytes],
    *,
    seed: int = 0,
    fuel: int = 50_000_000,
    trace: bool = False,
    heap: Heap | None = None,
) -> int:
    """Runs a kernel on what is in `space`, with the code object in `region`; returns how many instructions waves carried out."""
    descriptor = code.descriptor(kernel, bytearray(region.data[: region.size].tobytes()))
    machine = Machine(code.target, space, region, seed=seed, fuel=fuel, trace=trace)
    services = {}
    needs_host = asks_for(code.kernels[kernel], "hidden_hostcall_buffer")
    # A kernel that allocates nothing may still read what another one has allocated.
    if heap is None and needs_host:
        heap = Heap()
    if heap is not None:
        heap.attach(space)
    if heap is not None and needs_host:
        machine.host = Host(space, heap)
        services = {"hidden_hostcall_buffer": machine.host.buffer.base, "hidden_heap_v1": heap.structure.base}
    segment = kernarg_segment(code.kernels[kernel], encoded, geometry, services)
    # LLVM reads three words that begin at a multiple of 8 bytes as four; runtimes allocate segments in larger steps.
    kernarg = space.add("the kernel arguments", segment + machine.rng.randbytes(-len(segment) % 16), writable=False)
    packet = space.add("the dispatch packet", dispatch_packet(geometry, descriptor, kernarg.base), writable=False)
    registers = user_sgprs(code, descriptor, kernarg.base, segment, packet.base, machine.rng)
    entry = region.base + descriptor.entry
    machine.run(Launch(entry, descriptor, geometry.grid, geometry.block, registers, geometry.dynamic_lds))
    return machine.executed
