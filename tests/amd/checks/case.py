"""A check: a kernel, how it is compiled, and launches with the results that they must have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from amdexec.arguments import Geometry
from amdexec.kernel import Argument, Buffer, memref

Array = Any

CHIPS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1150", "gfx1201")
CDNA, RDNA = CHIPS[:3], CHIPS[3:]


@dataclass
class Launch:
    """One launch. `expected` is in float64, or exact where the tolerance is 0."""

    size: str
    geometry: Geometry
    buffers: list[Buffer]
    arguments: list[Argument]
    output: str
    expected: Array
    tolerance: float
    # What is compared, made of the output: not every bit of it may be stated.
    compared: Callable[[Array], Array] | None = None


@dataclass(frozen=True)
class Case:
    """`source` is a file below the checkout; `launches` takes a source of random numbers and whether large sizes are wanted."""

    name: str
    source: str
    launches: Callable[[np.random.Generator, bool], Iterator[Launch]]
    kernel: str = ""
    targets: tuple[str, ...] = CHIPS
    options: tuple[str, ...] = ()
    # What is compiled for in the place of a chip: a target with features, or a generic one that the chip runs.
    spelled: tuple[tuple[str, str], ...] = ()
    # Why the result is wrong today; the check fails when it becomes right, so that this line goes.
    known_wrong: str = ""
    known_on: tuple[str, ...] = field(default=CHIPS)

    def target(self, chip: str) -> str:
        return dict(self.spelled).get(chip, chip)

    @property
    def entry(self) -> str:
        return self.kernel or self.name


class Inputs:
    """Collects the parameters of a launch."""

    def __init__(self) -> None:
        self.buffers: list[Buffer] = []
        self.arguments: list[Argument] = []
        self.output = ""

    def scalar(self, value: Any) -> Inputs:
        self.arguments.append(np.asarray(value).tobytes())
        return self

    def array(self, name: str, array: Array) -> Inputs:
        array = np.ascontiguousarray(array)
        self.buffers.append(Buffer(name, array))
        self.arguments += memref(name, array)
        return self

    def out(self, name: str, shape: tuple[int, ...], kind: Any, start: Array | None = None) -> Inputs:
        """An output: not a number, or -1, unless the kernel reads what was there."""
        kind = np.dtype(kind)
        array = np.full(shape, np.nan if kind.kind == "f" else -1, kind) if start is None else np.array(start, kind).reshape(shape)
        self.buffers.append(Buffer(name, array, writable=True))
        self.arguments += memref(name, array)
        self.output = name
        return self

    def launch(
        self,
        size: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        expected: Array,
        tolerance: float,
        dynamic_lds: int = 0,
        compared: Callable[[Array], Array] | None = None,
    ) -> Launch:
        geometry = Geometry(_three(grid), _three(block), dynamic_lds)
        return Launch(size, geometry, self.buffers, self.arguments, self.output, expected, tolerance, compared)


def _three(sizes: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


def normal(rng: np.random.Generator, *shape: int, kind: Any = np.float32) -> Array:
    return rng.standard_normal(shape, np.float32).astype(kind)


def relative_error(actual: Array, expected: Array) -> float:
    """|actual - expected| / |expected|, in the euclidean norm; not a number if an element is not. An expected NaN stands for anything."""
    actual, expected = np.asarray(actual, np.float64).reshape(-1), np.asarray(expected, np.float64).reshape(-1)
    finite, infinite = np.isfinite(expected), np.isinf(expected)
    if not np.array_equal(actual[infinite], expected[infinite]):
        return float("nan")
    difference = actual[finite] - expected[finite]
    norm = float(np.linalg.norm(expected[finite]))
    return float(np.linalg.norm(difference)) / (norm or 1.0)
