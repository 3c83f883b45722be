"""Runs a kernel: workgroups in random order, and within each of them waves in random order, as long as they are not at a barrier."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import hazards, loads, salu, valu
from .codeobject import CodeObject, Descriptor
from .decode import FAMILIES, decode
from .hostcall import Host
from .memory import AddressSpace, Region
from .operation import Operation
from .traps import Trap, Unknown
from .wave import VGPR, Wave, register_name

np.seterr(all="ignore")

_SCALAR_FORMS = ("SOP1", "SOP2", "SOPC", "SOPK", "SOPP")
# Whose registers s_set_gpr_idx_on renames.
_INDEXED_UNITS = ("valu", "trans", "matrix")
_MEMORY_FORMS = ("SMEM", "DS", "FLAT", "GLOBAL", "SCRATCH", "VFLAT", "VGLOBAL", "VSCRATCH", "MUBUF", "VBUFFER", "CACHE")

# The time, by instructions of all waves; ockl waits for thousands of ticks between two slabs of its heap.
_START, _TICKS = 1 << 40, 100


@dataclass
class Launch:
    """Where a kernel starts, and with what."""

    entry: int
    descriptor: Descriptor
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    user_sgprs: list[int]
    dynamic_lds: int = 0


@dataclass
class Machine:
    """One device. `seed` decides everything that hardware leaves open."""

    target: str
    space: AddressSpace
    code: Region
    seed: int = 0
    fuel: int = 50_000_000
    trace: bool = False
    check_hazards: bool = True
    # What answers kernels that print.
    host: Host | None = None
    executed: int = 0
    operations: dict[int, Operation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.target not in FAMILIES:
            raise Unknown(f"{self.target}: there is no table of its instructions (there is for {', '.join(FAMILIES)})")
        self.family = FAMILIES[self.target]
        self.rng = random.Random(self.seed)
        self.memories = loads.Memories(self.space, Region.create("LDS", 0, 0, True))
        self.waves = 0
        self.groups = 0

    # -- instructions

    def operation(self, address: int) -> Operation:
        """The instruction at an address, made ready."""
        offset = address - self.code.base
        if not 0 <= offset <= self.code.size - 4 or offset & 3:
            raise Trap(f"runs at {address:#x}, outside of the code object")
        instruction = decode(self.family, self.code.data[offset : offset + 20].tobytes().ljust(20, b"\0"), address, self.target)
        if instruction.name == "S_CODE_END":
            raise Trap("runs into the end of the code")
        made = self.build(instruction)
        self.operations[address] = made
        return made

    def build(self, instruction: Any) -> Operation:
        host = self.host
        if instruction.name == "S_SLEEP" and host is not None:
            # A wave that waits for the host sleeps.
            return Operation(instruction, lambda wave: host.serve(), "nop")
        try:
            if instruction.name in ("S_MEMREALTIME", "S_SENDMSG_RTN_B64"):
                return loads.clock(instruction, self.family, lambda: _START + _TICKS * self.executed)
            if instruction.form in _SCALAR_FORMS:
                return salu.build(instruction, self.family, self.wave_size)
            if instruction.form in _MEMORY_FORMS:
                return loads.build(instruction, self.family, lambda wave: self.memories)
            context = valu.Context(self.family, self.wave_size, self.ieee, self.target)
            return valu.build(instruction, context)
        except Unknown as problem:
            raise Unknown(f"{instruction}: {problem}") from problem

    # -- running

    def run(self, launch: Launch) -> None:
        self.wave_size = 32 if launch.descriptor.wave32 else 64
        self.ieee = launch.descriptor.ieee_mode and self.family != "rdna4"
        self.operations.clear()
        groups = [(x, y, z) for z in range(launch.grid[2]) for y in range(launch.grid[1]) for x in range(launch.grid[0])]
        self.rng.shuffle(groups)
        for group in groups:
            self.workgroup(launch, group)

    def workgroup(self, launch: Launch, group: tuple[int, int, int]) -> None:
        self.groups += 1
        size = launch.descriptor.lds + launch.dynamic_lds
        garbage = np.frombuffer(self.rng.randbytes(size), np.uint8) if size else None
        lds = Region.create("LDS", 0, size, True, fill=garbage)
        lds.track(undefined=True)
        self.memories.lds = lds
        waves = list(self.start(launch, group))
        self.hazards = hazards.Tracker(self.target) if self.check_hazards and self.family == "cdna" else None
        while waves:
            for wave in waves:
                wave.waiting = False
            while running := [wave for wave in waves if not wave.done and not wave.waiting]:
                self.turn(self.rng.choice(running), self.rng.choice((1, 3, 10, 100, 1000)), group)
            self.meet(waves, group)
            waves = [wave for wave in waves if not wave.done]

    def meet(self, waves: list[Wave], group: tuple[int, int, int]) -> None:
        """At a barrier every wave of the workgroup has to be at the same one: hardware only counts them."""
        waiting = [wave for wave in waves if not wave.done]
        if waiting and len(waiting) < len(waves):
            ended = next(wave.number for wave in waves if wave.done)
            raise Trap(f"workgroup {group}: wave {waiting[0].number} waits at a barrier, and wave {ended} has ended")
        places = {wave.pc - self.code.base for wave in waiting}
        if len(places) > 1 or len({wave.barriers for wave in waiting}) > 1:
            raise Trap(f"workgroup {group}: waves wait at different barriers ({', '.join(hex(place) for place in sorted(places))})")

    def start(self, launch: Launch, group: tuple[int, int, int]) -> Iterator[Wave]:
        """The waves of a workgroup, with the registers that the hardware sets."""
        threads = launch.block[0] * launch.block[1] * launch.block[2]
        for first in range(0, threads, self.wave_size):
            lanes = min(self.wave_size, threads - first)
            wave = Wave(self.waves, self.wave_size, lanes, self.family, self.rng, launch.descriptor.scratch)
            self.waves += 1
            wave.first_epoch = self.groups << 16
            wave.pc = launch.entry
            wave.float_mode = launch.descriptor.float_mode
            self.set_scalars(wave, launch, group)
            self.set_work_items(wave, launch, first, lanes)
            yield wave

    def set_scalars(self, wave: Wave, launch: Launch, group: tuple[int, int, int]) -> None:
        values = list(launch.user_sgprs)
        if self.family != "rdna4":
            # Workgroup numbers follow the number of user registers that the descriptor states.
            while len(values) < launch.descriptor.user_sgpr_count:
                values.append(self.rng.getrandbits(32))
            values += [number for number, wanted in zip(group, launch.descriptor.workgroup_ids, strict=True) if wanted]
            if self.target == "gfx90a" and launch.descriptor.rsrc2 & 1:
                # Where this wave's private memory starts: each has its own here.
                values.append(0)
        else:
            wave.s[117], wave.s[115] = group[0], group[1] & 0xFFFF | group[2] << 16
        for register, value in enumerate(values):
            wave.s[register] = value & 0xFFFFFFFF
            wave.undefined.pop(register, None)

    def set_work_items(self, wave: Wave, launch: Launch, first: int, lanes: int) -> None:
        """Packed into one register: x in ten bits, then y, then z."""
        number = np.arange(first, first + self.wave_size)
        width, height = launch.block[0], launch.block[1]
        x, y, z = number % width, number // width % height, number // (width * height)
        packed = (x | y << 10 | z << 20).astype(np.uint32)
        wave.v[0][:lanes] = packed[:lanes]
        wave.undefined[VGPR] = wave.full & ~((1 << lanes) - 1)
        if not wave.undefined[VGPR]:
            del wave.undefined[VGPR]

    def turn(self, wave: Wave, count: int, group: tuple[int, int, int]) -> None:
        """Some instructions of one wave."""
        operations = self.operations
        operation: Operation | None = None
        try:
            for _ in range(count):
                operation = operations.get(wave.pc) or self.operation(wave.pc)
                if self.trace:
                    print(f"wave {wave.number} exec {wave.exec:#x} {wave.pc - self.code.base:#x}: {operation.instruction}")
                if wave.pending and not wave.pending.keys().isdisjoint(operation.touched):
                    self.check_pending(wave, operation)
                if wave.indexing and operation.unit in _INDEXED_UNITS and not operation.indexed:
                    raise Unknown("behind s_set_gpr_idx_on")
                if self.hazards is not None:
                    self.hazards.check(wave, operation)
                self.executed += 1
                wave.pc += operation.size
                if operation.spread is not None:
                    operation.spread(wave)
                following = wave.pc
                operation.run(wave)
                if self.hazards is not None and wave.pc != following:
                    self.hazards.jumped(wave)
                if wave.done or wave.waiting:
                    break
        except Trap as problem:
            where = f"{operation.instruction.address - self.code.base:#x} {operation.instruction}" if operation else f"{wave.pc:#x}"
            raise type(problem)(f"workgroup {group}, wave {wave.number}, at {where}: {problem}") from problem
        if self.executed > self.fuel:
            raise Trap(f"more than {self.fuel} instructions")
        if wave.done:
            wave.retire_all()

    def check_pending(self, wave: Wave, operation: Operation) -> None:
        """A register of a load that has not arrived; loads of one kind arrive in order."""
        reads = set(operation.reads)
        for register in operation.touched:
            if register not in wave.pending:
                continue
            if register in reads or not operation.counter:
                raise Trap(f"{register_name(register)} is used while a load into it is outstanding")
            for counter, queue in wave.queues.items():
                for entry in queue:
                    if register in entry.registers and counter != operation.counter:
                        raise Trap(f"{register_name(register)} is loaded again while another load into it is outstanding")


def load(code_object: CodeObject, space: AddressSpace) -> Region:
    """Puts the segments of a code object into memory, as a runtime does."""
    base = space.next
    image = code_object.image(base)
    # Constants and variables lie in it too; a kernel may write the segments that are writable.
    writable = any(segment.writable for segment in code_object.segments)
    return space.add("the code object", bytes(image) + bytes(256), writable=writable)
