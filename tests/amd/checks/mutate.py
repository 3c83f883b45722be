"""How much do the checks notice? Changes one instruction of a kernel that works, and runs its launches again.

`cargo xtask amd -- mutate` for the kernels of the documentation, `... mutate --only softmax --target gfx1100 --sample 60` for another.

Only instructions are changed that do something when they are executed: that change a register, memory, the mask of lanes or the way
on. A change counts if a result then has other bits, or something traps; of those, what stays within the tolerance is listed as missed.
Of `s_nop` on CDNA each counts that waits longer than the one put in its place: it is there for a hazard of the manual's.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import zlib
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from amdexec import codeobject
from amdexec.decode import FAMILIES, Instruction, decode
from amdexec.kernel import execute
from amdexec.machine import Machine
from amdexec.operation import Operation
from amdexec.traps import Trap
from amdexec.wave import VGPR, Wave

from .case import Case
from .run import cases, compare, compile_cases, image_path

NOP = (0xBF800000).to_bytes(4, "little")
NOPS = "wait states left out"

# The kernels of the documentation's table.
USUAL = (
    ("block_scan", "gfx942"),
    ("csr", "gfx1100"),
    ("histogram", "gfx1201"),
    ("matmul_mfma", "gfx942"),
    ("matmul_tiled", "gfx90a"),
    ("softmax", "gfx1100"),
    ("softmax", "gfx942"),
    ("transpose", "gfx942"),
)
ENOUGH = 90
# Without a meaning here, or only for speed.
_IGNORED = ("S_CLAUSE", "S_DELAY_ALU", "S_WAIT_ALU", "S_CODE_END", "S_SET_INST_PREFETCH_DISTANCE", "S_WAITCNT_DEPCTR", "S_ENDPGM")


@dataclass(frozen=True)
class Mutant:
    """The bytes at an offset of the image in place of those that are there."""

    kind: str
    instruction: str
    offset: int
    data: bytes


def instructions(code: codeobject.CodeObject, kernel: str) -> list[Instruction]:
    """Those of a kernel, from its symbol on."""
    image = bytes(code.image(0))
    start, size = code.symbols[kernel]
    family = FAMILIES[code.target]
    found, offset = [], start
    while offset < start + size:
        instruction = decode(family, image[offset : offset + 20].ljust(20, b"\0"), offset, code.target)
        found.append(instruction)
        offset += instruction.size
    return found


def mutants(code: codeobject.CodeObject, kernel: str, live: set[int], sample: int) -> list[Mutant]:
    """Instructions left out, and operands taken from the neighbouring register."""
    made = []
    image = bytes(code.image(0))
    for instruction in instructions(code, kernel):
        if instruction.name == "S_NOP" and (image[instruction.address] == 0 or not code.target.startswith("gfx9")):
            continue
        if instruction.name in _IGNORED or instruction.form == "CACHE" or instruction.address not in live:
            continue
        name = f"{instruction.name.lower()} at {instruction.address:#x}"
        kind = NOPS if instruction.name == "S_NOP" else "wait left out" if instruction.name.startswith("S_WAIT") else "left out"
        made.append(Mutant(kind, name, instruction.address, NOP * (instruction.size // 4)))
        swapped = _other_register(instruction, image)
        if swapped:
            made.append(Mutant("other register", name, instruction.address, swapped))
    random.Random(1).shuffle(made)
    # There are few of `s_nop`, and every one of them has a reason.
    return sorted(made, key=lambda mutant: mutant.kind != NOPS)[:sample]


def _other_register(instruction: Instruction, image: bytes) -> bytes | None:
    """The first vector operand is read from the register beside it."""
    for field in ("src0", "addr", "data", "data0"):
        if not instruction.has(field) or instruction.form not in ("VOP1", "VOP2", "VOPC", "VOP3", "GLOBAL", "DS"):
            continue
        bits = getattr(type(instruction.fields), field)
        if field == "src0" and instruction.raw(field) < VGPR:
            continue
        whole = int.from_bytes(image[instruction.address : instruction.address + instruction.size], "little")
        return int(whole ^ 1 << bits.lo).to_bytes(instruction.size, "little")
    return None


def live_addresses(code: codeobject.CodeObject, case: Case, seed: int) -> tuple[set[int], int, list[bytes]]:
    """The instructions that changed something in the launches of the case, how many were executed, and the results."""
    live: set[int] = set()
    build = Machine.build

    def watched(machine: Machine, instruction: Instruction) -> Operation:
        operation = build(machine, instruction)
        run = operation.run
        offset = instruction.address - machine.code.base

        def noted(wave: Wave) -> None:
            before = _state(wave, operation)
            run(wave)
            if offset not in live and (instruction.name == "S_NOP" or before != _state(wave, operation)):
                live.add(offset)

        operation.run = noted
        return operation

    count, outputs = 0, []
    machine: Any = Machine
    machine.build = watched
    try:
        for launch in case.launches(_rng(case, seed), False):
            result = execute(code, case.entry, launch.geometry, launch.buffers, launch.arguments, seed=seed)
            count += result.instructions
            outputs.append(result.outputs[launch.output].tobytes())
    finally:
        machine.build = build
    return live, count, outputs


def _state(wave: Wave, operation: Operation) -> Any:
    rows = [r - VGPR for r in operation.writes if VGPR <= r < VGPR + 512]
    scalars = tuple(wave.s[r] for r in operation.writes if r < 128)
    # A store, a wait and a barrier change what is outstanding, or where the wave stands.
    queues = tuple(len(queue) for queue in wave.queues.values())
    active = wave.active
    values = wave.v[rows].tobytes() if active is None else wave.v[rows][:, active].tobytes()
    return values, scalars, wave.exec, wave.scc, wave.pc, queues, wave.barriers, wave.float_mode


def _rng(case: Case, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(case.name.encode())])


def verdict(name: str, image: str, target: str, mutant: Mutant, fuel: int, outputs: list[bytes]) -> str:
    """trap, wrong, endless; missed for other bits within the tolerance, same for none."""
    case = next(case for case in cases() if case.name == name)
    code = codeobject.read(Path(image), target)
    changed = bytearray(code.data)
    start = next(s.offset - s.address for s in code.segments if s.address <= mutant.offset < s.address + s.file_size)
    changed[mutant.offset + start : mutant.offset + start + len(mutant.data)] = mutant.data
    code.data = bytes(changed)
    same = True
    for launch, before in zip(case.launches(_rng(case, 1), False), outputs, strict=True):
        try:
            result = execute(code, case.entry, launch.geometry, launch.buffers, launch.arguments, seed=1, fuel=fuel)
        except Trap as trap:
            return "endless" if "more than" in str(trap) else "trap"
        output = result.outputs[launch.output]
        if compare(output, launch)[0] != "ok":
            return "wrong"
        same &= output.tobytes() == before
    return "same" if same and mutant.kind != NOPS else "missed"


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(prog="cargo xtask amd -- mutate", description=__doc__)
    options.add_argument("--gpulower", type=Path, required=True)
    options.add_argument("--only", metavar="NAME", help="a kernel in the place of the usual ones")
    options.add_argument("--target", default="gfx1100", help="the chip of that kernel")
    options.add_argument("--sample", type=int, default=60)
    options.add_argument("--processes", type=int, default=2)
    chosen = options.parse_args(arguments)
    noticed = matter = 0
    for name, target in [(chosen.only, chosen.target)] if chosen.only else USUAL:
        found = try_case(chosen, next(case for case in cases() if case.name == name), target)
        if found is None:
            return 1
        noticed, matter = noticed + found[0], matter + found[1]
    share = 100 * noticed // max(1, matter)
    print(f"together {noticed} of {matter}, {share} %")
    return 0 if share >= ENOUGH else 1


def try_case(chosen: argparse.Namespace, case: Case, target: str) -> tuple[int, int] | None:
    """How many changes were noticed, of those that matter."""
    with tempfile.TemporaryDirectory() as folder:
        for problem in compile_cases(chosen.gpulower, Path(folder), [case], [target]):
            print(problem)
            return None
        image = image_path(Path(folder), case, target)
        code = codeobject.read(image, target)
        try:
            live, count, outputs = live_addresses(code, case, 1)
        except Trap as trap:
            print(f"{case.name} does not run as it is: {trap}")
            return None
        tried = mutants(code, case.entry, live, chosen.sample)
        with ProcessPoolExecutor(chosen.processes) as pool:
            futures = [pool.submit(verdict, case.name, str(image), target, mutant, 4 * count, outputs) for mutant in tried]
            verdicts = [future.result() for future in futures]
    return _report(case, target, tried, verdicts)


def _report(case: Case, target: str, tried: list[Mutant], verdicts: list[str]) -> tuple[int, int]:
    counts = Counter(verdicts)
    matter = len(tried) - counts["same"]
    noticed = matter - counts["missed"]
    shown = ", ".join(f"{kind} {number}" for kind, number in counts.most_common())
    waits = sum(mutant.kind == NOPS for mutant in tried)
    print(
        f"{case.name} on {target}: {noticed} noticed of {matter} that matter, of {len(tried)} changes ({waits} of s_nop): {shown}",
        flush=True,
    )
    for mutant, found in zip(tried, verdicts, strict=True):
        if found in ("missed", "same"):
            print(f"  {found}: {mutant.kind}: {mutant.instruction}", flush=True)
    return noticed, matter
