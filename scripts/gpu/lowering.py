#!/usr/bin/env python3
"""Run scripts/gpu/lowering.mlir on an NVIDIA GPU and compare it with the host.

    gpulower compile scripts/gpu/lowering.mlir --target sm_90 --emit cubin -o lowering/lowering.cubin
    lowering.py run lowering

Needs numpy, cupy and a driver. The AMD executor takes what is expected from here: tests/amd/checks/lowering.py.
"""

from __future__ import annotations

import argparse
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import harness

np = harness.need("numpy")
THREADS, WARP, RESULTS = 64, 32, 512
checks = harness.Checks(width=34)


def launch(module: Any, name: str, values: Sequence[float]) -> Any:
    """The 512 results of one kernel; `out[64]` starts as 1, the atomics' neutral factor."""
    cp = harness.need("cupy")
    source = cp.asarray(values, dtype=np.float32)
    out = cp.zeros(RESULTS, dtype=np.float32)
    out[64] = 1.0
    harness.launch(module.get_function(name), (1,), (THREADS,), source, out)
    return cp.asnumpy(out)


def check(what: str, got: Any, want: Any, tolerance: float = 0.0) -> None:
    want = np.asarray(want, dtype=np.float64)
    wrong = np.flatnonzero(~np.isclose(got, want, rtol=tolerance, atol=tolerance, equal_nan=True))
    checks.check(what, not wrong.size, ", ".join(f"[{at}] {got[at]} instead of {want[at]}" for at in wrong[:4]))


def warps(values: list[float], reduce: Callable[[list[float]], float]) -> list[float]:
    """`reduce` of each thread's warp."""
    return [reduce(values[i // WARP * WARP :][:WARP]) for i in range(THREADS)]


def check_reductions(module: Any, x: list[float]) -> None:
    out = launch(module, "reduce", x)
    check("subgroup_reduce add f32", out[0:64], warps(x, sum))
    check("subgroup_reduce maxsi i32", out[64:128], warps(x, max))
    check("subgroup_reduce minsi i8", out[128:192], warps(x, min))
    check("subgroup_reduce add f64", out[192:256], warps(x, sum))
    check("subgroup_reduce clusters of 4", out[256:320], [sum(x[i // 4 * 4 :][:4]) for i in range(THREADS)])
    check("subgroup_reduce max f16", out[320:384], warps(x, max))
    check("subgroup_reduce add vector<4xf16>", out[384:448], warps(x, sum), 1e-3)


def check_moves(module: Any, x: list[float]) -> None:
    out = launch(module, "moves", x)
    first = [i // WARP * WARP for i in range(THREADS)]
    check("rotate", out[0:64], [x[first[i] + (i + 3) % WARP] for i in range(THREADS)])
    check("subgroup_broadcast first", out[64:128], [x[first[i] + 1] if i % 2 else x[i] for i in range(THREADS)])
    check("shuffle f16", out[128:192], [x[i ^ 1] for i in range(THREADS)])
    # The last lane of each warp has no neighbour: its result is not defined.
    inside = [i for i in range(THREADS) if i % WARP < WARP - 1]
    check("shuffle vector<3xf16>", out[192:256][inside], [x[i + 1] for i in inside])
    check("subgroup ids and sizes", out[256:320], [320000 + 200 + i // WARP for i in range(THREADS)])
    check("warp_execute_on_lane_0", out[320:384], [2 * x[i] for i in first])
    check("subgroup_broadcast lane f64", out[384:448], [x[i + 5] for i in first])


def integer_power(base: int, exponent: int) -> int:
    if exponent >= 0:
        return int(base**exponent)
    return {1: 1, -1: 1 - 2 * (exponent % 2)}.get(base, 0)


def half(value: float) -> float:
    try:
        return float(struct.unpack("e", struct.pack("e", value))[0])
    except OverflowError:
        return math.inf


def check_math(module: Any) -> None:
    special = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 1e-40, 1.1754944e-38, 3e38, 1e-5, 6e-5, 7e-5]
    special += [100.0, -2.5, 3.75, 1e5, 12345.678]
    y = [float(v) for v in np.asarray(special + [i * 0.37 - 9 for i in range(46)], dtype=np.float32)]
    finite = [math.isfinite(v) for v in y]
    out = launch(module, "math", y)
    check("clampf", out[0:64], [v if math.isnan(v) else max(min(v, 3.5), -2.0) for v in y])
    normal = [f and abs(v) >= 2**-126 for f, v in zip(finite, y, strict=True)]
    check("isnormal, isinf", out[64:128], [2 * math.isinf(v) + n for n, v in zip(normal, y, strict=True)])
    check("sincos, sine", out[128:192], [math.sin(v) if f else math.nan for f, v in zip(finite, y, strict=True)], 1e-6)
    check("sincos, cosine", out[192:256], [math.cos(v) if f else math.nan for f, v in zip(finite, y, strict=True)], 1e-6)
    check("ipowi", out[256:320], [integer_power(i // 8 - 3, i % 8 - 3) for i in range(THREADS)])
    check("ipowi vector<2xi32>", out[320:384], [integer_power(i // 8 - 3, i % 8) for i in range(THREADS)])
    halves = [half(v) if f else math.nan for f, v in zip(finite, y, strict=True)]
    check("isnormal f16", out[384:448], [math.isfinite(v) and abs(v) >= 2**-14 for v in halves])


def check_memory(module: Any, x: list[float]) -> None:
    out = launch(module, "memory", x)
    check("workgroup memref.alloca", out[0:64], x[::-1])
    check("atomics by compare and swap", out[64:66], [1024.0, 64.0])
    check("strided memref.copy", out[128:144], [x[(row + 1) * 8 + column + 2] for row in range(4) for column in range(4)])
    check("all_reduce in a loop", out[192:256], [sum(sum(x) + 64 * i for i in range(50))] * THREADS)
    check("all_reduce max f16", out[256:320], [max(x)] * THREADS)


def run(chosen: argparse.Namespace) -> int:
    module = harness.gpu().RawModule(path=str(chosen.folder / "lowering.cubin"))
    x = [float((i * 37) % 61 - 30) for i in range(THREADS)]
    check_reductions(module, x)
    check_moves(module, x)
    check_math(module)
    check_memory(module, x)
    return checks.status()


if __name__ == "__main__":
    harness.command_line(__doc__, run)
