"""Matrices of subgroups, as MFMA and WMMA compute them, and atomic sums of floats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .case import CDNA, CHIPS, RDNA, Case, Inputs, Launch, normal

F64 = np.float64
FOLDER = "tests/amd/kernels"


def tiles(lanes: int) -> Callable[[np.random.Generator, bool], Iterator[Launch]]:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        a, b = normal(rng, 32, 48, kind=np.float16), normal(rng, 48, 32, kind=np.float16)
        inputs = Inputs().array("a", a).array("b", b).out("c", (32, 32), np.float32)
        yield inputs.launch("32x48x32", (2,), (2 * lanes,), a.astype(F64) @ b.astype(F64), 1e-6)

    return launches


def transposed(lanes: int) -> Callable[[np.random.Generator, bool], Iterator[Launch]]:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        a, b, c = normal(rng, 16, 20, kind=np.float16), normal(rng, 16, 24, kind=np.float16), normal(rng, 16, 18)
        expected = c.astype(F64)
        expected[:, 2:] += (a[:, 2:18].T.astype(F64) @ b[:, 2:18].T.astype(F64)).T
        inputs = Inputs().array("a", a).array("b", b).out("c", c.shape, np.float32, c)
        yield inputs.launch("16x16x16", (1,), (lanes,), expected, 1e-6)

    return launches


def through_workgroup_memory(lanes: int) -> Callable[[np.random.Generator, bool], Iterator[Launch]]:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        # Small integers: f16 has all sums.
        a, b = (rng.integers(-8, 9, (16, 16)).astype(np.float16) for _ in range(2))
        expected = np.maximum(2 * (a.astype(F64) @ b.astype(F64)) - a.astype(F64), 0)
        inputs = Inputs().array("a", a).array("b", b).out("d", (16, 16), np.float32)
        yield inputs.launch("16x16x16", (1,), (lanes,), expected, 0)

    return launches


def integers(kinds: tuple[Any, Any], turned: bool) -> Callable[[int], Callable[[np.random.Generator, bool], Iterator[Launch]]]:
    def of(lanes: int) -> Callable[[np.random.Generator, bool], Iterator[Launch]]:
        def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
            a, b = (rng.integers(np.iinfo(kind).min, np.iinfo(kind).max, (16, 16), kind, endpoint=True) for kind in kinds)
            c = rng.integers(-1000, 1000, (16, 16), np.int32)
            wide_a, wide_b = a.astype(np.int32), b.astype(np.int32)
            expected = (wide_a.T @ wide_b).T + c if turned else -(c + wide_a @ wide_b.T)
            inputs = Inputs().array("a", a).array("b", b).out("c", c.shape, np.int32, c)
            yield inputs.launch("16x16x16", (1,), (lanes,), expected, 0)

        return launches

    return of


def elements(lanes: int) -> Callable[[np.random.Generator, bool], Iterator[Launch]]:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        c = normal(rng, 16, 16)
        yield Inputs().out("c", c.shape, np.float32, c).launch("16x16", (1,), (lanes,), 2 * c.astype(F64), 0)

    return launches


def floats(kind: Any, depth: int, tolerance: float) -> Callable[[int], Callable[[np.random.Generator, bool], Iterator[Launch]]]:
    def of(lanes: int) -> Callable[[np.random.Generator, bool], Iterator[Launch]]:
        def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
            turned = kind is F64
            a = rng.standard_normal((16, depth)).astype(kind)
            b = rng.standard_normal((16, depth) if turned else (depth, 16)).astype(kind)
            c = np.zeros((16, 16), kind)
            expected = a.astype(F64) @ (b.T if turned else b).astype(F64)
            inputs = Inputs().array("a", a).array("b", b).out("c", c.shape, kind, c)
            yield inputs.launch(f"16x{depth}x16", (1,), (lanes,), expected, tolerance)

        return launches

    return of


def sums(kind: Any) -> Callable[[np.random.Generator, bool], Iterator[Launch]]:
    """Small integers, whose sums are exact in any order."""

    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        x = rng.integers(-9, 10, 300).astype(kind)
        inputs = Inputs().array("x", x).out("y", (4,), kind, np.array([1, 2, 4, 8]))
        yield inputs.launch("n=300", (3,), (128,), np.array([1 + x.sum(), 2 + x.sum(), 4 + 300, 8]), 0)

    return launches


def _matrix_cases() -> Iterator[Case]:
    everywhere = {
        "mma_f16": tiles,
        "mma_transposed": transposed,
        "mma_workgroup": through_workgroup_memory,
        "mma_si8": integers((np.int8, np.int8), turned=False),
        "mma_elements": elements,
    }
    of_mfma = {"mma_f32": floats(np.float32, 8, 1e-6), "mma_f64": floats(F64, 4, 1e-14)}
    of_wmma = {"mma_ui8": integers((np.uint8, np.int8), turned=True)}
    for suffix, targets, lanes, more in (("cdna", CDNA, 64, of_mfma), ("rdna", RDNA, 32, of_wmma)):
        for name, make in everywhere.items():
            yield Case(f"{name}_{suffix}", f"{FOLDER}/matrices.mlir", make(lanes), kernel=name, targets=targets)
        for name, make in more.items():
            yield Case(name, f"{FOLDER}/matrices_{suffix}.mlir", make(lanes), targets=targets)


def _atomic_cases() -> Iterator[Case]:
    """As they are, and with the instructions that memory seen by the host at the same time ignores."""
    coarse = ("--coarse-grained-memory", "--ftz")
    for kind, name in ((np.float32, "sums_f32"), (F64, "sums_f64"), (np.float16, "sums_f16")):
        yield Case(name, f"{FOLDER}/atomics.mlir", sums(kind), targets=CHIPS)
        yield Case(f"{name}_coarse", f"{FOLDER}/atomics.mlir", sums(kind), kernel=name, targets=CHIPS, options=coarse)


CASES = (*_matrix_cases(), *_atomic_cases())
