"""An instruction made ready to run: what it does to a wave, and the registers that it depends on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from .arithmetic import F16, F32, F64, flush16, flush32, flush64
from .byhand import FUNCTIONS, SPECIAL, Function
from .compiler import Compiled, Modes, compile_instruction
from .decode import Instruction
from .traps import Unknown
from .wave import Wave

Run = Callable[[Wave], None]


@dataclass(slots=True)
class Operation:
    """`reads` and `writes` number scalar registers from 0, vector registers from 256, accumulation registers from 512."""

    instruction: Instruction
    run: Run
    unit: str
    reads: tuple[int, ...] = ()
    writes: tuple[int, ...] = ()
    # Follows undefined values from `reads` to `writes`, before `run`.
    spread: Run | None = None
    # The counter of loads into `writes`: several of one kind return in order, so they may follow one another.
    counter: str = ""
    # Whether it knows of s_set_gpr_idx_on.
    indexed: bool = False
    touched: frozenset[int] = field(default_factory=frozenset)
    size: int = 0

    def __post_init__(self) -> None:
        self.touched = frozenset(self.reads) | frozenset(self.writes)
        self.size = self.instruction.size


@cache
def texts(family: str) -> dict[str, str]:
    """AMD's pseudo-code by the name of the instruction."""
    module = import_module(f"tinygrad.runtime.autogen.amd.{family}.str_pcode")
    return {key.name: text for key, text in module.PCODE.items()}


def text_of(family: str, name: str) -> str:
    base = name.removesuffix("_E32").removesuffix("_E64")
    plain = base.replace("V_DUAL_", "V_")
    known = texts(family)
    for candidate in (name, base, f"{base}_E32", f"{base}_E64", plain, f"{plain}_E32", f"{plain}_E64"):
        if candidate in known:
            return known[candidate]
    raise Unknown(f"no pseudo-code for {name}")


def modes_of(wave: int, float_mode: int, ieee: bool, *, opsel: int = 0, opsel_hi: int = 0, neg: int = 0) -> Modes:
    flush = {0: True, 3: False}
    try:
        return Modes(wave, flush[float_mode >> 4 & 3], flush[float_mode >> 6 & 3], ieee, opsel, opsel_hi, neg)
    except KeyError:
        raise Unknown(f"denormals are flushed on one side only: MODE {float_mode:#x}") from None


@cache
def function(family: str, name: str, scalar: bool, widths: tuple[tuple[str, int], ...], modes: Modes) -> tuple[Function, Compiled | None]:
    """What computes the instruction: by hand, or from AMD's text."""
    base = name.removesuffix("_E32").removesuffix("_E64").replace("V_DUAL_", "V_")
    if base in FUNCTIONS:
        made = FUNCTIONS[base]
        return (made if base in SPECIAL else _flushing(made, base, modes)), None
    compiled = compile_instruction(name, text_of(family, name), scalar=scalar, widths=dict(widths), modes=modes)
    return compiled.run, compiled


def _flushing(made: Function, name: str, modes: Modes) -> Function:
    """The denormal mode around a function that was written by hand."""
    kinds: dict[str, tuple[bool, Any, Any, Any]] = {
        "F32": (modes.flush32, np.uint32, F32, flush32),
        "F64": (modes.flush16_64, np.uint64, F64, flush64),
        "F16": (modes.flush16_64, np.uint16, F16, flush16),
    }
    wanted, bits, kind, flush = kinds.get(name[-3:], (False, None, None, None))
    if not wanted or "CVT" in name or "TRIG" in name:
        return made

    def flushed(value: Any) -> Any:
        value = np.asarray(value)
        return flush(value.astype(bits).view(kind)).view(bits).astype(value.dtype)

    def run(s0: Any, s1: Any, s2: Any, *rest: Any) -> tuple[Any, Any, Any, Any]:
        second = s1 if "LDEXP" in name else flushed(s1)
        result, scc, lanes, execute = made(flushed(s0), second, flushed(s2), *rest)
        return flushed(result), scc, lanes, execute

    return run
