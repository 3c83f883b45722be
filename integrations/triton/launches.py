"""Launches of the kernels, with what numpy says should come out: small ones that an interpreter executes, and large ones."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from kernels import CASES, Case

Array = Any


@dataclasses.dataclass
class Launch:
    """One launch. `values` has arrays and numbers by the names of parameters; outputs are among them."""

    case: Case
    grid: tuple[int, int, int]
    values: dict[str, Any]
    #: What the outputs should be; absent where nothing but Triton says it.
    expected: dict[str, Array]
    tolerance: float = 1e-5
    outputs: tuple[str, ...] = ()


def _case(name: str, **constants: int) -> Case:
    case = next(case for case in CASES if case.name == name)
    return dataclasses.replace(case, arguments={**case.arguments, **constants})


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _attention(q: Array, k: Array, v: Array, scale: float, causal: bool) -> tuple[Array, Array]:
    scores = np.einsum("hmd,hnd->hmn", q.astype(float), k.astype(float)) * scale
    if causal:
        length = scores.shape[1]
        scores[:, np.triu(np.ones((length, length), bool), 1)] = -np.inf
    most = scores.max(2, keepdims=True)
    powers = np.exp(scores - most)
    total = powers.sum(2, keepdims=True)
    return (powers / total) @ v.astype(float), ((most + np.log(total)) * math.log2(math.e))[..., 0]


def vector_add(r: Any, small: bool) -> Launch:
    case = _case("vector_add", **({"BLOCK": 128} if small else {}))
    n = 300 if small else 1 << 25
    x, y = r.random(n, np.float32), r.random(n, np.float32)
    grid = (_ceil(n, case.arguments["BLOCK"]), 1, 1)
    return Launch(case, grid, {"x": x, "y": y, "out": np.zeros_like(x), "n": n}, {"out": x + y})


def softmax(r: Any, small: bool) -> Launch:
    case = _case("softmax", **({"BLOCK": 256} if small else {}))
    rows, columns = (3, 208) if small else (4096, 1808)
    x = r.standard_normal((rows, columns)).astype(np.float32)
    powers = np.exp(x - x.max(1, keepdims=True))
    values = {"x": x, "out": np.zeros_like(x), "stride": columns, "rows": rows, "columns": columns}
    return Launch(case, (2 if small else 1056, 1, 1), values, {"out": powers / powers.sum(1, keepdims=True)})


def _matmul(name: str, kind: Any, tolerance: float) -> Callable[[Any, bool], Launch]:
    def launch(r: Any, small: bool) -> Launch:
        case = _case(name, **({"BM": 32, "BN": 32, "BK": 32, "GROUP": 2} if small else {}))
        M, N, K = (48, 48, 64) if small else (4096, 4096, 2048)
        a = r.standard_normal((M, K)).astype(kind)
        b = r.standard_normal((K, N)).astype(kind)
        exact = a.astype(float) @ b.astype(float) if small else np.zeros((1, 1))
        values = {"a": a, "b": b, "c": np.zeros((M, N), kind), "M": M, "N": N, "K": K, "sa": K, "sb": N, "sc": N}
        tiles = _ceil(M, case.arguments["BM"]) * _ceil(N, case.arguments["BN"])
        return Launch(case, (tiles, 1, 1), values, {"c": np.where(exact >= 0, exact, 0.01 * exact)}, tolerance)

    launch.__name__ = name
    return launch


def matmul_int8(r: Any, small: bool) -> Launch:
    case = _case("matmul_int8", **({"BM": 32, "BN": 32, "BK": 32} if small else {}))
    M, N, K = (32, 64, 64) if small else (4096, 4096, 4096)
    a, b = r.integers(-128, 127, (M, K), np.int8), r.integers(-128, 127, (K, N), np.int8)
    grid = (M // case.arguments["BM"], N // case.arguments["BN"], 1)
    exact = a.astype(np.int32) @ b.astype(np.int32) if small else np.zeros((1, 1))
    return Launch(case, grid, {"a": a, "b": b, "c": np.zeros((M, N), np.int32), "M": M, "N": N, "K": K}, {"c": exact}, 0)


def dropout(r: Any, small: bool) -> Launch:
    case = _case("dropout", **({"BLOCK": 128} if small else {}))
    n = 300 if small else 1 << 24
    values = {"x": r.random(n, np.float32), "out": np.zeros(n, np.float32), "n": n, "p": 0.5, "seed": 123}
    return Launch(case, (_ceil(n, case.arguments["BLOCK"]), 1, 1), values, {}, outputs=("out",))


def normal_numbers(r: Any, small: bool) -> Launch:
    case = _case("normal_numbers", **({"BLOCK": 128} if small else {}))
    n = 128 if small else 1 << 24
    grid = (_ceil(n, case.arguments["BLOCK"]), 1, 1)
    return Launch(case, grid, {"out": np.zeros(n, np.float32), "n": n, "seed": 7}, {}, outputs=("out",))


def layer_norm(r: Any, small: bool) -> Launch:
    case = _case("layer_norm", **({"BLOCK": 128} if small else {}))
    rows, columns = (2, 208) if small else (4096, 8192)
    x = r.standard_normal((rows, columns)).astype(np.float16)
    weight, bias = r.random(columns, np.float32), r.random(columns, np.float32)
    exact = x.astype(float)
    mean, variance = exact.mean(1), exact.var(1)
    scale = 1 / np.sqrt(variance + 1e-5)
    values = {
        "x": x, "out": np.zeros_like(x), "weight": weight, "bias": bias, "mean": np.zeros(rows, np.float32),
        "scale": np.zeros(rows, np.float32), "stride": columns, "columns": columns, "eps": 1e-5,
    }  # fmt: skip
    out = (exact - mean[:, None]) * scale[:, None] * weight + bias
    return Launch(case, (rows, 1, 1), values, {"out": out, "mean": mean, "scale": scale}, 2e-3)


def layer_norm_backward(r: Any, small: bool) -> Launch:
    case = _case("layer_norm_backward", **({"BLOCK": 256, "GROUP": 2} if small else {"BLOCK": 4096}))
    rows, columns = (3, 208) if small else (4096, 4096)
    group = case.arguments["GROUP"]
    x, dy = (r.standard_normal((rows, columns)).astype(np.float16) for _ in range(2))
    weight = r.random(columns, np.float32)
    exact, slope = x.astype(float), dy.astype(float)
    mean, scale = exact.mean(1), 1 / np.sqrt(exact.var(1) + 1e-5)
    unit = (exact - mean[:, None]) * scale[:, None]
    weighted = slope * weight.astype(float)
    dx = (weighted - unit * (unit * weighted).mean(1)[:, None] - weighted.mean(1)[:, None]) * scale[:, None]
    parts = [np.zeros((group, columns)), np.zeros((group, columns))]
    for row in range(rows):
        parts[0][row % group] += slope[row] * unit[row]
        parts[1][row % group] += slope[row]
    values = {
        "dx": np.zeros_like(x), "dy": dy, "dw": np.zeros((group, columns), np.float32),
        "db": np.zeros((group, columns), np.float32), "x": x, "weight": weight, "mean": mean.astype(np.float32),
        "scale": scale.astype(np.float32), "lock": np.zeros(2 * group, np.int32), "stride": columns, "columns": columns,
    }  # fmt: skip
    return Launch(case, (rows, 1, 1), values, {"dx": dx, "dw": parts[0], "db": parts[1]}, 4e-3)


def _attention_launch(name: str, causal: bool) -> Callable[[Any, bool], Launch]:
    def launch(r: Any, small: bool) -> Launch:
        case = _case(name, **({"BM": 32, "BN": 32, "D": 32} if small else {}))
        heads, length, d = (1, 64, 32) if small else (48, 4096, 64)
        q, k, v = (r.standard_normal((heads, length, d)).astype(np.float16) for _ in range(3))
        scale = d**-0.5
        values = {
            "q": q, "k": k, "v": v, "out": np.zeros_like(q), "logs": np.zeros((heads, length), np.float32),
            "scale": scale, "length": length,
        }  # fmt: skip
        out, logs = _attention(q, k, v, scale, causal) if small else (np.zeros(1), np.zeros(1))
        grid = (length // case.arguments["BM"], heads, 1)
        return Launch(case, grid, values, {"out": out, "logs": logs}, 5e-3)

    launch.__name__ = name
    return launch


def attention_backward(r: Any, small: bool) -> Launch:
    case = _case("attention_backward", **({"BM": 32, "BN": 32, "D": 32} if small else {}))
    heads, length, d = (1, 64, 32) if small else (48, 4096, 64)
    q, k, v, dout = (r.standard_normal((heads, length, d)).astype(np.float16) for _ in range(4))
    scale = d**-0.5
    expected: dict[str, Array] = {}
    logs = delta = np.ones((heads, length), np.float32)
    if small:
        out, logs = _attention(q, k, v, scale, False)
        delta = (out * dout).sum(2)
        powers = np.exp2(np.einsum("hmd,hnd->hmn", q.astype(float), k.astype(float)) * scale * math.log2(math.e) - logs[..., None])
        inner = powers * (np.einsum("hmd,hnd->hmn", dout.astype(float), v.astype(float)) - delta[..., None])
        expected = {"dk": np.einsum("hmn,hmd->hnd", inner, q.astype(float)) * scale, "dv": np.einsum("hmn,hmd->hnd", powers, dout.astype(float))}
    values = {
        "q": q, "k": k, "v": v, "dout": dout, "dk": np.zeros_like(q), "dv": np.zeros_like(q),
        "logs": logs.astype(np.float32), "delta": delta.astype(np.float32), "scale": scale, "length": length,
    }  # fmt: skip
    return Launch(case, (length // case.arguments["BN"], heads, 1), values, expected, 2e-2, outputs=("dk", "dv"))


def rms_norm(r: Any, small: bool) -> Launch:
    case = _case("rms_norm", **({"BLOCK": 256} if small else {}))
    rows, columns = (2, 208) if small else (8192, 4096)
    x = r.standard_normal((rows, columns)).astype(np.float32)
    weight = r.random(columns, np.float32)
    out = x / np.sqrt((x.astype(float) ** 2).mean(1, keepdims=True) + 1e-6) * weight
    return Launch(case, (rows, 1, 1), {"x": x, "weight": weight, "out": np.zeros_like(x), "columns": columns, "eps": 1e-6}, {"out": out})


def cross_entropy(r: Any, small: bool) -> Launch:
    case = _case("cross_entropy", **({"BLOCK": 128} if small else {}))
    rows, columns = (2, 208) if small else (1024, 32000)
    x = r.standard_normal((rows, columns)).astype(np.float32)
    labels = r.integers(0, columns, rows)
    powers = np.exp(x.astype(float))
    loss = np.log(powers.sum(1)) - x[np.arange(rows), labels]
    slope = powers / powers.sum(1, keepdims=True)
    slope[np.arange(rows), labels] -= 1
    values = {"x": x, "labels": labels, "loss": np.zeros(rows, np.float32), "slope": np.zeros_like(x), "columns": columns}
    return Launch(case, (rows, 1, 1), values, {"loss": loss, "slope": slope})


def first_largest(r: Any, small: bool) -> Launch:
    case = _case("first_largest", **({"BLOCK": 256} if small else {}))
    rows, columns = (3, 208) if small else (65536, 1024)
    x = r.standard_normal((rows, columns)).astype(np.float32)
    values = {"x": x, "values": np.zeros(rows, np.float32), "places": np.zeros(rows, np.int32), "columns": columns}
    return Launch(case, (rows, 1, 1), values, {"values": x.max(1), "places": x.argmax(1)}, 0)


def recurrence(r: Any, small: bool) -> Launch:
    case = _case("recurrence", **({"BLOCK": 256} if small else {}))
    rows, columns = (2, 208) if small else (16384, 1024)
    a, b = r.random((rows, columns), np.float32), r.random((rows, columns), np.float32)
    out, state = np.zeros((rows, columns)), np.zeros(rows)
    for column in range(columns if small else 0):
        state = a[:, column] * state + b[:, column]
        out[:, column] = state
    return Launch(case, (rows, 1, 1), {"a": a, "b": b, "out": np.zeros_like(a), "columns": columns}, {"out": out})


def sorted_rows(r: Any, small: bool) -> Launch:
    case = _case("sorted_rows", **({"columns": 64} if small else {}))
    x = r.standard_normal((2 if small else 16384, case.arguments["columns"])).astype(np.float32)
    return Launch(case, (len(x), 1, 1), {"x": x, "out": np.zeros_like(x)}, {"out": np.sort(x, 1)}, 0)


def counts(r: Any, small: bool) -> Launch:
    case = _case("counts", **({"BLOCK": 256} if small else {}))
    n = 300 if small else 1 << 22
    x = r.integers(0, 64, n, np.int32)
    values = {"x": x, "out": np.zeros(64, np.int32), "n": n}
    return Launch(case, (_ceil(n, case.arguments["BLOCK"]), 1, 1), values, {"out": np.bincount(x, minlength=64)}, 0)


def transposed(r: Any, small: bool) -> Launch:
    case = _case("transposed", **({"BM": 16, "BN": 16} if small else {}))
    M, N = (32, 48) if small else (8192, 8192)
    x = r.random((M, N), np.float32)
    grid = (_ceil(M, case.arguments["BM"]), _ceil(N, case.arguments["BN"]), 1)
    return Launch(case, grid, {"x": x, "out": np.zeros((N, M), np.float32), "M": M, "N": N}, {"out": x.T}, 0)


def convolution(r: Any, small: bool) -> Launch:
    case = _case("convolution", **({"BLOCK": 64} if small else {}))
    H, W = (2, 80) if small else (4096, 4096)
    x, weight = r.random((H + 4, W + 4), np.float32), r.random((5, 5), np.float32)
    out = sum(x[i : i + H, j : j + W] * weight[i, j] for i in range(5) for j in range(5))
    values = {"x": x, "weight": weight, "out": np.zeros((H, W), np.float32), "H": H, "W": W}
    return Launch(case, (H, _ceil(W, case.arguments["BLOCK"]), 1), values, {"out": out})


def double_sums(r: Any, small: bool) -> Launch:
    case = _case("double_sums", **({"BM": 16, "BN": 16} if small else {}))
    rows, columns = (20, 48) if small else (8192, 4096)
    x = r.random((rows, columns))
    values = {"x": x, "out": np.zeros(rows), "rows": rows, "columns": columns}
    return Launch(case, (_ceil(rows, case.arguments["BM"]), 1, 1), values, {"out": x.sum(1)}, 1e-13)


def math_functions(r: Any, small: bool) -> Launch:
    case = _case("math_functions", **({"BLOCK": 128} if small else {}))
    n = 128 if small else 1 << 23
    x = r.uniform(-3, 3, n).astype(np.float32)
    e = x.astype(float)
    erf = np.vectorize(math.erf)(e) if small else e
    out = np.sin(e) + np.cos(e) * np.exp(e) + np.log(np.abs(e) + 1) + erf
    out += np.arcsin(e * 0.25) + np.tanh(e) + np.log1p(np.abs(e)) + 1 / np.sqrt(e * e + 1) + np.abs(e) ** e
    values = {"x": x, "out": np.zeros_like(x), "n": n}
    return Launch(case, (_ceil(n, case.arguments["BLOCK"]), 1, 1), values, {"out": out}, 3e-5)


def rotary(r: Any, small: bool) -> Launch:
    case = _case("rotary")
    d, (places, heads) = case.arguments["D"], (2, 3) if small else (8192, 32)
    x = r.random((places, heads, d), np.float32)
    angles = r.random((places, d // 2)) * 6
    c, s = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    one, two = x[..., : d // 2], x[..., d // 2 :]
    out = np.concatenate([one * c[:, None] - two * s[:, None], two * c[:, None] + one * s[:, None]], 2)
    values = {"x": x, "cosine": c, "sine": s, "out": np.zeros_like(x), "heads": heads}
    return Launch(case, (places, 1, 1), values, {"out": out})


def silu_tiles(r: Any, small: bool) -> Launch:
    case = _case("silu_tiles")
    rows, columns, stride = (3, 500, 512) if small else (4096, 8000, 8192)
    gate, x = (r.standard_normal((rows, stride)).astype(np.float16) for _ in range(2))
    exact = np.zeros((rows, stride))
    exact[:, :columns] = (gate.astype(float) / (1 + np.exp(-gate.astype(float))) * x)[:, :columns]
    values = {"gate": gate, "x": x, "out": np.zeros_like(x), "rows": rows, "columns": columns, "stride": stride}
    return Launch(case, (rows * _ceil(columns, case.arguments["BN"]), 1, 1), values, {"out": exact}, 2e-3)


def unpacked_matmul(r: Any, small: bool) -> Launch:
    case = _case("unpacked_matmul", **({"BM": 32, "BN": 32, "BK": 32} if small else {}))
    M, N, K = (32, 32, 64) if small else (4096, 4096, 2048)
    a = r.standard_normal((M, K)).astype(np.float16)
    b = r.integers(-128, 127, (K // 2, N), np.int8)
    scales = r.random(N, np.float32).astype(np.float16)
    bits = b.view(np.uint8)
    full = np.empty((K, N))
    full[0::2], full[1::2] = bits & 15, bits >> 4
    exact = a.astype(float) @ ((full - 8) * scales.astype(float)).astype(np.float16).astype(float) if small else np.zeros((1, 1))
    values = {"a": a, "b": b, "scales": scales, "c": np.zeros((M, N), np.float16), "M": M, "N": N, "K": K}
    grid = (M // case.arguments["BM"], N // case.arguments["BN"], 1)
    return Launch(case, grid, values, {"c": exact}, 5e-3)


def gelu(r: Any, small: bool) -> Launch:
    case = _case("gelu")
    n = 1 << 12 if small else 1 << 25
    values = {name: r.standard_normal(n).astype(np.float32) for name in ("x", "gate")}
    grid = (_ceil(n, case.arguments["BLOCK"]), 1, 1)
    return Launch(case, grid, {**values, "out": np.zeros(n, np.float32), "n": n}, {}, outputs=("out",))


def matmul_described(r: Any, small: bool) -> Launch:
    case = _case("matmul_described")
    M, N, K = (256, 256, 128) if small else (4096, 4096, 2048)
    a, b = (r.standard_normal(shape).astype(np.float16) for shape in ((M, K), (N, K)))
    exact = a.astype(float) @ b.astype(float).T if small else np.zeros((1, 1))
    values = {"a": a, "b": b, "c": np.zeros((M, N), np.float16), "M": M, "N": N, "K": K}
    grid = (M // case.arguments["BM"], N // case.arguments["BN"], 1)
    return Launch(case, grid, values, {"c": exact}, 5e-3)


#: What needs types that numpy lacks, or instructions that AMD's chips lack.
ON_GPU = [gelu, matmul_described, _matmul("matmul_fp8", np.float16, 5e-3), _matmul("matmul_bf16", np.float32, 2e-2)]

LAUNCHES = [
    vector_add, softmax, _matmul("matmul", np.float16, 5e-3), _matmul("matmul_fp32", np.float32, 5e-3), matmul_int8,
    dropout, normal_numbers, layer_norm, layer_norm_backward, _attention_launch("attention", False),
    _attention_launch("attention_causal", True), attention_backward, rms_norm, cross_entropy, first_largest, recurrence,
    sorted_rows, counts, transposed, convolution, double_sums, math_functions, rotary, unpacked_matmul, silu_tiles,
]  # fmt: skip


def launches(small: bool, names: tuple[str, ...] = (), more: Any = ()) -> list[Launch]:
    """All of them, or those with the names; the same numbers every time."""
    chosen = [make for make in [*LAUNCHES, *more] if not names or make.__name__ in names]
    return [make(np.random.default_rng(1), small) for make in chosen]


def difference(got: Array, expected: Array) -> float:
    """The largest difference, relative to the largest of the numbers."""
    wanted = np.asarray(expected, float)
    return float(np.abs(got.astype(float).reshape(wanted.shape) - wanted).max() / max(np.abs(wanted).max(), 1e-30))
