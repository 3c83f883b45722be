"""The kernels under examples/, with the references of scripts/gpu/examples.py."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .case import CDNA, Case, Inputs, Launch, normal

ROOT = Path(__file__).resolve().parents[3]


def gpu_check(name: str) -> Any:
    """A check of NVIDIA's GPUs, by the name of its file."""
    if (folder := str(ROOT / "scripts/gpu")) not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


gpu = gpu_check("examples")
Launches = Callable[[np.random.Generator, bool], Iterator[Launch]]
F32 = np.float32


def blocks(count: int, size: int) -> int:
    return -(-count // size)


def saxpy(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    for n in (1, 255, 100_003) if large else (1, 255, 1_003):
        a, x, y = F32(rng.standard_normal()), normal(rng, n), normal(rng, n)
        inputs = Inputs().scalar(a).array("x", x).out("y", (n,), F32, y)
        yield inputs.launch(f"n={n}", (blocks(n, 256),), (256,), gpu.reference_saxpy(a, x, y), 1e-6)


def gelu(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    for n, grid in ((255, 1), (10_007, 7)) if large else ((255, 1), (1_003, 2)):
        x = 3 * normal(rng, n)
        inputs = Inputs().array("x", x).out("y", (n,), F32)
        yield inputs.launch(f"n={n}", (grid,), (256,), gpu.reference_gelu(x), 1e-6)


def softmax(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    for rows, columns in ((1, 1), (7, 31), (29, 1_001)) if large else ((1, 1), (3, 31), (2, 513)):
        # The long rows so large that exp overflows unless the largest element is subtracted first.
        x = (300 if columns > 100 else 5) * normal(rng, rows, columns)
        inputs = Inputs().array("x", x).out("y", x.shape, F32)
        yield inputs.launch(f"{rows}x{columns}", (rows,), (256,), gpu.reference_softmax(x), 5e-6)


def layer_norm(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    epsilon = F32(1e-5)
    for rows, columns in ((1, 31), (7, 257), (29, 1_001)) if large else ((1, 31), (2, 257)):
        x, gamma, beta = 5 + normal(rng, rows, columns), normal(rng, columns), normal(rng, columns)
        inputs = Inputs().array("x", x).array("gamma", gamma).array("beta", beta).scalar(epsilon).out("y", x.shape, F32)
        yield inputs.launch(f"{rows}x{columns}", (rows,), (256,), gpu.reference_layer_norm(x, gamma, beta, epsilon), 5e-6)


def transpose(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    for rows, columns in ((1, 1), (33, 65), (255, 127)) if large else ((1, 1), (33, 65)):
        x = normal(rng, rows, columns)
        inputs = Inputs().array("x", x).out("y", (columns, rows), F32)
        yield inputs.launch(f"{rows}x{columns}", (blocks(columns, 32), blocks(rows, 32)), (32, 8), x.T, 0)


def matmul(kind: Any, block: tuple[int, ...]) -> Launches:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        for m, k, n in ((1, 1, 1), (17, 33, 65), (65, 63, 67)) if large else ((1, 1, 1), (17, 33, 40)):
            a, b = normal(rng, m, k, kind=kind), normal(rng, k, n, kind=kind)
            inputs = Inputs().array("a", a).array("b", b).out("c", (m, n), F32)
            yield inputs.launch(f"{m}x{k}x{n}", (blocks(n, 16), blocks(m, 16)), block, gpu.reference_matmul(a, b), 1e-5)

    return launches


def histogram(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    for n, grid in ((1, 1), (1_003, 3), (50_003, 11)) if large else ((1, 1), (1_003, 3)):
        values, start = rng.integers(-20, 276, n, np.int32), rng.integers(0, 1_000, 256, np.int32)
        inputs = Inputs().array("values", values).out("bins", (256,), np.int32, start)
        yield inputs.launch(f"n={n}", (grid,), (256,), gpu.reference_histogram(values) + start, 0)


def reduction(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    for n, grid in ((1, 1), (1_003, 2), (50_003, 11)) if large else ((1, 1), (1_003, 2)):
        x = rng.random(n, F32)
        inputs = Inputs().array("x", x).out("sum", (1,), F32, np.array([2.0]))
        yield inputs.launch(f"n={n}", (grid,), (256,), np.array([2.0 + x.sum(dtype=np.float64)]), 1e-5)


def user_library(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    for n in (1, 255, 100_003) if large else (1, 255, 1_003):
        x = normal(rng, n)
        inputs = Inputs().array("x", x).out("y", (n,), F32)
        yield inputs.launch(f"n={n}", (blocks(n, 256),), (256,), gpu.reference_user_library(x), 1e-6)


def app_saxpy(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    n = 100_003 if large else 515
    a, x, y = F32(rng.standard_normal()), normal(rng, n), normal(rng, n)
    inputs = Inputs().scalar(np.int64(n)).scalar(a).array("x", x).out("y", (n,), F32, y)
    yield inputs.launch(f"n={n}", (blocks(n, 256),), (256,), gpu.reference_saxpy(a, x, y), 1e-6)


def app_turn_blocks(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    n = 10_003 if large else 515
    x = normal(rng, n)
    expected = np.concatenate([x[start : start + 256][::-1] for start in range(0, n, 256)])
    inputs = Inputs().scalar(np.int64(n)).array("x", x).out("y", (n,), F32)
    yield inputs.launch(f"n={n}", (blocks(n, 256),), (256,), expected, 0, dynamic_lds=1024)


def _example(name: str, launches: Launches, **more: Any) -> Case:
    return Case(name, f"examples/{name}.mlir", launches, **more)


CASES = (
    _example("saxpy", saxpy),
    _example("gelu", gelu),
    _example("softmax", softmax),
    _example("layer_norm", layer_norm),
    _example("transpose", transpose),
    _example("matmul_tiled", matmul(F32, (16, 16))),
    _example("matmul_mfma", matmul(np.float16, (64,)), targets=CDNA),
    _example("histogram", histogram),
    _example("reduction", reduction),
    _example("user_library", user_library, options=("--link", "examples/lib/scale_and_shift.ll")),
    Case("app_saxpy", "examples/app.mlir", app_saxpy, kernel="saxpy"),
    Case("app_turn_blocks", "examples/app.mlir", app_turn_blocks, kernel="turn_blocks"),
)
