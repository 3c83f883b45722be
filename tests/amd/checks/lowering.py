"""The rewrites of `scripts/gpu/lowering.mlir`, with what `scripts/gpu/lowering.py` expects of them on NVIDIA's GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .case import CDNA, RDNA, Array, Case, Inputs, Launch
from .examples import Launches, gpu_check

COUNT = 512


@dataclass
class Wanted:
    """What a kernel gets, and what it has to make of it, with the places and the tolerances."""

    values: Array
    results: dict[int, tuple[float, float]]


def wanted(wave: int) -> dict[str, Wanted]:
    """By kernel. The script's functions run on numbers of places in the place of results, and say what belongs there."""
    script = gpu_check("lowering")
    found: dict[str, Wanted] = {}

    def launch(module: None, name: str, values: list[float]) -> Array:
        found[name] = Wanted(np.array(values, np.float32), {})
        return np.arange(COUNT)

    def check(what: str, places: Array, results: Any, tolerance: float = 0.0) -> None:
        latest = list(found.values())[-1]
        latest.results |= {int(at): (float(result), tolerance) for at, result in zip(places, results, strict=True)}

    vars(script).update(WARP=wave, launch=launch, check=check)
    x = [float((i * 37) % 61 - 30) for i in range(script.THREADS)]
    script.check_reductions(None, x)
    script.check_moves(None, x)
    script.check_math(None)
    script.check_memory(None, x)
    return found


def rewrites(name: str, wave: int) -> Launches:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        given = wanted(wave)[name]
        assert given.results, f"nothing is expected of {name}"
        start = np.zeros(COUNT, np.float32)
        start[64] = 1  # What atomics multiply by.
        inputs = Inputs().array("in", given.values).out("out", (COUNT,), np.float32, start)

        def wrong(output: Array) -> Array:
            """1 where a result is not what it has to be."""
            verdict = np.zeros(COUNT)
            for at, (result, tolerance) in given.results.items():
                verdict[at] = not np.isclose(output[at], result, rtol=tolerance, atol=tolerance, equal_nan=True)
            return verdict

        yield inputs.launch("64 threads", (1,), (64,), np.zeros(COUNT), 0, compared=wrong)

    return launches


def _cases() -> Iterator[Case]:
    """`moves` is made for subgroups of 32."""
    for chips, wave, suffix in ((RDNA, 32, ""), (CDNA, 64, "_64")):
        for name in ("reduce", "math", "memory"):
            yield Case(f"lowering_{name}{suffix}", "scripts/gpu/lowering.mlir", rewrites(name, wave), kernel=name, targets=chips)
    yield Case("lowering_moves", "scripts/gpu/lowering.mlir", rewrites("moves", 32), kernel="moves", targets=RDNA)


CASES = tuple(_cases())
