"""Wait states that the CDNA manuals leave to the compiler ("Manually Inserted Wait States", "Dependency Resolution: Required
Independent Instructions").

Every instruction is one wait state, `s_nop N` is N + 1. Where a table of the manual has cases that we cannot tell apart, the
smaller number is taken: what traps is wrong, what does not may still be.

Those of matrix instructions are, for gfx950 as well, the numbers by which LLVM 22 separates two instructions
(`checkMAIHazards90A` and `checkMAIVALUHazards` in llvm/lib/Target/AMDGPU/GCNHazardRecognizer.cpp; passes are the latencies of
SISchedule.td).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .operation import Operation
from .traps import Trap
from .wave import EXEC, SCC, VCC, VGPR, Wave, register_name

_MATRIX = re.compile(r"V_MFMA_(?:F32|F64|I32)_(\d+)X")
_NEWER = ("gfx942", "gfx950", "gfx9-4-generic")


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A matrix instruction, and the wait states between it and what uses its result."""

    target: str
    passes: int
    double: bool
    # Products of f32 take another path since CDNA3, and are faster to hand over.
    single: bool
    factors: tuple[int, ...]
    third: tuple[int, ...]
    result: tuple[int, ...]

    def before_third(self, later: _Matrix) -> int:
        """Until its result is the third operand of a matrix instruction: none, or few, where that is the same registers."""
        newer = self.target in _NEWER
        if later.third == self.result:
            return 2 if newer and self.passes == 2 else 0
        short = not later.double and not later.single
        if self.double:
            return 0 if short else self.double_passes() + 1
        if not newer:
            return self.passes + later.double
        if self.single:
            return 0 if short else self.passes
        return self.passes + 1 + (self.target == "gfx950" and (self.passes > 2 or short))

    def before_read(self, memory: bool = False) -> int:
        """Until its result is a factor of a matrix instruction, or another instruction reads it."""
        if self.double:
            return 18 if memory else self.double_passes() + 3
        return self.before_write()

    def before_write(self) -> int:
        """Until another instruction overwrites its result."""
        if self.double:
            return 11
        longer = self.target == "gfx950" and self.passes > 2
        return self.passes + (2 if self.single else 3 + longer)

    def before_third_is_overwritten(self) -> int:
        """Until an instruction that is none of matrices writes what was its third operand."""
        return 0 if self.double or self.single else self.passes - 1

    def double_passes(self) -> int:
        return 16 if self.target == "gfx950" else 8


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
    is_dot: bool
    is_double_sum: bool
    matrix: _Matrix | None


@dataclass(slots=True)
class _History:
    """For one wave: when a register was written last, and by what."""

    now: int = 0
    scalar_by_vector: dict[int, int] = field(default_factory=dict)
    vector: dict[int, int] = field(default_factory=dict)
    special: dict[int, int] = field(default_factory=dict)
    shifted: dict[int, int] = field(default_factory=dict)
    # By vector instructions that are neither of matrices nor dot products.
    plain: dict[int, int] = field(default_factory=dict)
    matrix: dict[int, tuple[int, _Matrix]] = field(default_factory=dict)
    third: dict[int, tuple[int, _Matrix]] = field(default_factory=dict)
    exec_by_vector: int = -100
    double_matrix: int = -100


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
            name.startswith("V_DOT"),
            name in ("V_FMA_F64", "V_FMAC_F64"),
            self.matrix(operation),
        )

    def matrix(self, operation: Operation) -> _Matrix | None:
        name = operation.instruction.base
        match = _MATRIX.match(name)
        if match is None:
            return None
        # The third operand has as many registers as the result, and comes last; or it is a constant.
        factors = operation.reads
        third: tuple[int, ...] = ()
        if operation.instruction.raw("src2") >= VGPR:
            factors, third = factors[: -len(operation.writes)], factors[-len(operation.writes) :]
        single = self.newer and name.endswith("_F32")
        count = passes(self.target, int(match[1]), name)
        return _Matrix(self.target, count, name.endswith("_F64"), single, factors, third, operation.writes)

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
        if facts.matrix is not None:
            self.require_for_matrix(history, facts.matrix, now)
        elif facts.is_memory or facts.is_vector:
            if history.matrix:
                for register in facts.vector_reads:
                    self.matrix_is_done(history, register, lambda earlier: earlier.before_read(facts.is_memory))
                for register in facts.vector_writes:
                    self.matrix_is_done(history, register, _Matrix.before_write)
            if history.third:
                self.third_is_read(history, facts.vector_writes)
            if facts.is_double_sum and now - history.double_matrix <= 2:
                raise Trap(f"a sum of f64 {now - history.double_matrix - 1} wait states after a matrix of f64, of 2")

    def require_for_matrix(self, history: _History, matrix: _Matrix, now: int) -> None:
        self.after(history.plain, (*matrix.factors, *matrix.third), now, 2, "a vector instruction wrote it: a matrix instruction")
        if now - history.exec_by_vector <= 4:
            raise Trap(f"a matrix instruction {now - history.exec_by_vector - 1} wait states after EXEC was written, of 4")
        for register in matrix.factors:
            self.matrix_is_done(history, register, _Matrix.before_read)
        for register in matrix.third:
            self.matrix_is_done(history, register, lambda earlier: earlier.before_third(matrix))

    @staticmethod
    def matrix_is_done(history: _History, register: int, states: Callable[[_Matrix], int]) -> None:
        written = history.matrix.get(register)
        if written is None:
            return
        missing = states(written[1]) - (history.now - written[0] - 1)
        if missing > 0:
            raise Trap(f"{register_name(register)} is used {missing} wait states too early after a matrix instruction wrote it")

    @staticmethod
    def third_is_read(history: _History, registers: tuple[int, ...]) -> None:
        for register in registers:
            read = history.third.get(register)
            if read is None:
                continue
            missing = read[1].before_third_is_overwritten() - (history.now - read[0] - 1)
            if missing > 0:
                raise Trap(f"{register_name(register)} is overwritten {missing} wait states too early after a matrix instruction read it")

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
                history.plain.pop(register, None)
                history.matrix.pop(register, None)
            return
        for register in facts.scalar_writes:
            history.scalar_by_vector[register] = now
            if register == EXEC:
                history.exec_by_vector = now
        for register in facts.vector_writes:
            history.vector[register] = now
            history.special.pop(register, None)
            history.shifted.pop(register, None)
            history.plain.pop(register, None)
            history.matrix.pop(register, None)
            if facts.matrix is not None:
                history.matrix[register] = (now, facts.matrix)
            elif not facts.is_dot:
                history.plain[register] = now
            if facts.unit == "trans":
                history.special[register] = now
            if facts.shifts_result:
                history.shifted[register] = now
        if facts.matrix is not None:
            for register in facts.matrix.third:
                history.third[register] = (now, facts.matrix)
            if facts.matrix.double:
                history.double_matrix = now
