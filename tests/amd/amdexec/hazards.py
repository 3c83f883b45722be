"""Wait states that the CDNA manuals leave to the compiler ("Manually Inserted Wait States", "Dependency Resolution: Required
Independent Instructions").

Every instruction is one wait state, `s_nop N` is N + 1. Where a table of the manual has cases that we cannot tell apart, the
smaller number is taken: what traps is wrong, what does not may still be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .operation import Operation
from .traps import Trap
from .wave import EXEC, SCC, VCC, VGPR, Wave, register_name

_MATRIX = re.compile(r"V_S?MFMAC?_(F32|F64|I32)_(\d+)X(\d+)X(\d+)(?:_(\d+)B)?_(\w+)")
_NEWER = ("gfx942", "gfx950")


@dataclass(slots=True)
class _Facts:
    """What matters of an instruction, found once."""

    unit: str
    states: int
    vector_reads: tuple[int, ...]
    scalar_reads: tuple[int, ...]
    vector_writes: tuple[int, ...]
    scalar_writes: tuple[int, ...]
    lane_select: int | None
    is_vector: bool
    is_memory: bool
    is_pattern: bool
    is_division: bool
    shifts_result: bool
    # Wait states after which others may touch the result of a matrix instruction.
    matrix_states: int


@dataclass(slots=True)
class _History:
    """For one wave: when a register was written last, and by what."""

    now: int = 0
    scalar_by_vector: dict[int, int] = field(default_factory=dict)
    vector: dict[int, int] = field(default_factory=dict)
    special: dict[int, int] = field(default_factory=dict)
    shifted: dict[int, int] = field(default_factory=dict)
    matrix: dict[int, int] = field(default_factory=dict)
    exec_by_vector: int = -100


def passes(target: str, rows: int, name: str) -> int:
    """Four cycles each. On CDNA3, products of 8-bit and 16-bit elements without blocks take half of what they took before."""
    slow = {4: 2, 16: 8, 32: 16}.get(rows, 2)
    blocks = re.search(r"_\d+B_", name) is not None
    wide = name.endswith(("_F32", "_F64"))
    return slow if target == "gfx90a" or blocks or wide else max(2, slow // 2)


class Tracker:
    """One for a workgroup."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.newer = target in _NEWER
        self.facts: dict[int, _Facts] = {}
        self.histories: dict[int, _History] = {}

    def check(self, wave: Wave, operation: Operation) -> None:
        """A `Trap` when the instruction comes too early; else notes what it writes."""
        address = operation.instruction.address
        facts = self.facts.get(address)
        if facts is None:
            facts = self.facts[address] = self.found(operation)
        history = self.histories.get(wave.number)
        if history is None:
            history = self.histories[wave.number] = _History()
        if facts.unit != "nop":
            self.require(history, facts)
            self.note(history, facts)
        history.now += facts.states

    def jumped(self, wave: Wave) -> None:
        """A branch that is taken counts for two: LLVM counts the branch behind it, which is skipped, and hardware takes longer."""
        self.histories[wave.number].now += 1

    def found(self, operation: Operation) -> _Facts:
        instruction = operation.instruction
        name = instruction.base
        unit = operation.unit
        states = instruction.number("simm16") + 1 if name == "S_NOP" else 1
        memory = unit in ("vmem", "lds")
        scalar = tuple(r for r in operation.reads if r < 128)
        select = None
        if name in ("V_READLANE_B32", "V_WRITELANE_B32"):
            select = instruction.raw("src1")
        match = _MATRIX.match(name)
        matrix_states = 0
        if match and match[1] != "F64":
            matrix_states = passes(self.target, int(match[2]), name) + (2 if name.endswith("_F32") else 3)
        return _Facts(
            unit,
            states,
            tuple(r for r in operation.reads if r >= VGPR and r != SCC),
            scalar,
            tuple(r for r in operation.writes if r >= VGPR),
            tuple(r for r in operation.writes if r < 128),
            select if select is not None and select < 128 else None,
            unit in ("valu", "trans", "matrix"),
            memory,
            instruction.variant == "DPP16",
            name.startswith("V_DIV_FMAS"),
            instruction.variant == "SDWA" and instruction.number("dst_sel") not in (0, 4, 6),
            matrix_states,
        )

    def require(self, history: _History, facts: _Facts) -> None:
        now = history.now
        if facts.is_memory:
            self.after(history.scalar_by_vector, facts.scalar_reads, now, 5, "a vector instruction wrote it: a memory instruction")
        if facts.is_vector:
            if facts.lane_select is not None:
                self.after(history.scalar_by_vector, (facts.lane_select,), now, 4, "a vector instruction wrote it: a lane number")
            if facts.is_division:
                self.after(history.scalar_by_vector, (VCC,), now, 4, "a vector instruction wrote it: v_div_fmas")
            if facts.is_pattern:
                self.after(history.vector, facts.vector_reads, now, 2, "a vector instruction wrote it: a lane pattern (DPP)")
                if now - history.exec_by_vector <= 5:
                    raise Trap(f"a lane pattern (DPP) {now - history.exec_by_vector - 1} wait states after EXEC was written, of 5")
            if self.newer:
                self.after(history.scalar_by_vector, facts.scalar_reads, now, 2, "a vector instruction wrote it: a vector instruction")
                if facts.unit != "trans":
                    self.after(history.special, facts.vector_reads, now, 1, "the transcendental unit wrote it: a vector instruction")
                self.after(history.shifted, facts.vector_reads, now, 1, "SDWA moved it: a vector instruction")
        if facts.is_memory or (facts.is_vector and facts.unit != "matrix"):
            for register in (*facts.vector_reads, *facts.vector_writes):
                ready = history.matrix.get(register)
                if ready is not None and now < ready:
                    raise Trap(f"{register_name(register)} is used {ready - now} wait states too early after a matrix instruction wrote it")

    @staticmethod
    def after(written: dict[int, int], registers: tuple[int, ...], now: int, states: int, what: str) -> None:
        if not written:
            return
        for register in registers:
            at = written.get(register)
            if at is not None and now - at <= states:
                raise Trap(f"{register_name(register)} is used {now - at - 1} wait states after {what} needs {states}")

    def note(self, history: _History, facts: _Facts) -> None:
        now = history.now
        if not facts.is_vector:
            for register in facts.scalar_writes:
                history.scalar_by_vector.pop(register, None)
            for register in facts.vector_writes:
                history.vector.pop(register, None)
            return
        for register in facts.scalar_writes:
            history.scalar_by_vector[register] = now
            if register == EXEC:
                history.exec_by_vector = now
        for register in facts.vector_writes:
            history.vector[register] = now
            history.special.pop(register, None)
            history.shifted.pop(register, None)
            history.matrix.pop(register, None)
            if facts.unit == "trans":
                history.special[register] = now
            if facts.shifts_result:
                history.shifted[register] = now
            if facts.matrix_states:
                history.matrix[register] = now + 1 + facts.matrix_states
