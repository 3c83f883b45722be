"""The kernels beside this folder: subgroups, common kinds of kernels, matrix instructions, modes, linking, containers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .case import CDNA, CHIPS, RDNA, Case, Inputs, Launch, normal
from .examples import blocks, gelu, saxpy, softmax

Launches = Callable[[np.random.Generator, bool], Iterator[Launch]]
Array = Any
F32, F64 = np.float32, np.float64
FOLDER = "tests/amd/kernels"


# -- subgroups


def shuffled(mode: str, x: Array, offset: int, width: int) -> Array:
    """gpu.shuffle as the dialect documents it, for lanes 0 to width - 1 of one subgroup; -1 where there is no source lane."""
    lane = np.arange(width)
    source = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": np.full(width, offset)}[mode]
    valid = (source >= 0) & (source < width)
    return np.where(valid, x[np.clip(source, 0, width - 1)], F32(-1))


def first_lanes(expected: Array, wave: int) -> Array:
    """The expected values of whole subgroups, where only the first lanes of each are defined: NaN stands for anything."""
    rows = expected.reshape(-1, expected.shape[-1])
    return np.pad(rows.astype(F64), ((0, 0), (0, wave - rows.shape[1])), constant_values=np.nan).reshape(-1)


def shuffle(mode: str, width: int, wave: int) -> Launches:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        for offset in (1, 7, 31) if mode == "xor" else (1, 5, 16):
            x = normal(rng, 2, wave)
            expected = np.stack([shuffled(mode, row, offset, width) for row in x])
            inputs = Inputs().array("x", x.reshape(-1)).out("y", (2 * wave,), F32)
            inputs.scalar(np.int32(offset)).scalar(np.int32(width))
            yield inputs.launch(f"offset {offset}", (1,), (2 * wave,), first_lanes(expected, wave), 0)

    return launches


def scan(width: int, wave: int) -> Launches:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        x = rng.integers(-50, 50, (2, wave)).astype(F32)
        expected = np.cumsum(x[:, :width], axis=1, dtype=F64)
        inputs = Inputs().array("x", x.reshape(-1)).out("y", (2 * wave,), F32).scalar(np.int32(width))
        yield inputs.launch(f"width {width}", (1,), (2 * wave,), first_lanes(expected, wave), 0)

    return launches


def butterfly(width: int, wave: int) -> Launches:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        x = rng.integers(-(2**31), 2**31, (2, wave), np.int32)
        expected = np.repeat(x[:, :32].sum(axis=1, dtype=np.int32), 32).reshape(2, 32)
        inputs = Inputs().array("x", x.reshape(-1)).out("y", (2 * wave,), np.int32)
        yield inputs.launch("width 32", (1,), (2 * wave,), first_lanes(expected, wave), 0)

    return launches


def reduce_block(n: int) -> Launches:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        x = rng.integers(-(2**31), 2**31, n, np.int32)
        results = [x.sum(dtype=np.int32), x.min(), x.view(np.uint32).max().view(np.int32), np.bitwise_xor.reduce(x)]
        expected = np.tile(np.array(results, np.int32), (n, 1))
        yield Inputs().array("x", x).out("y", (n, 4), np.int32).launch(f"n={n}", (1,), (n,), expected, 0)

    return launches


def reduce_any(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    for block in ((1024,), (31, 33)) if large else ((1,), (20,), (32,), (33,), (7, 5, 3), (130,), (100, 3)):
        n = math.prod(block)
        x = rng.integers(-1000, 1000, n, np.int32)
        expected = np.tile(np.array([x.sum(), x.max(), x.sum()], np.int64), (n, 1))
        size = "x".join(map(str, block))
        yield Inputs().array("x", x).out("y", (n, 3), np.int64).launch(size, (1,), block, expected, 0)


def reduce_subgroup(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    x = rng.integers(-50, 50, 64).astype(F32)
    expected = np.repeat(x.reshape(-1, 8).sum(axis=1, dtype=F64), 8)
    yield Inputs().array("x", x).out("y", (64,), F32).launch("n=64", (1,), (64,), expected, 0)


# -- common kinds


def stencil(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    for rows, columns in ((100, 130),) if large else ((1, 5), (19, 37)):
        x = normal(rng, rows, columns)
        expected = x.astype(F64)
        wide = x.astype(F64)
        expected[1:-1, 1:-1] = 0.25 * (wide[:-2, 1:-1] + wide[2:, 1:-1] + wide[1:-1, :-2] + wide[1:-1, 2:])
        inputs = Inputs().array("x", x).out("y", x.shape, F32)
        yield inputs.launch(f"{rows}x{columns}", (blocks(columns, 32), blocks(rows, 4)), (32, 4), expected, 1e-6)


def block_sum(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    n = 10_007 if large else 300
    x = normal(rng, n)
    padded = np.pad(x.astype(F64), (0, -n % 128)).reshape(-1, 128).sum(axis=1)
    inputs = Inputs().array("x", x).out("y", padded.shape, F32)
    yield inputs.launch(f"n={n}", padded.shape, (128,), padded, 1e-6)


def block_scan(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    x = rng.integers(-50, 50, 256).astype(F32)
    expected = np.cumsum(x.reshape(2, 128), axis=1, dtype=F64).reshape(-1)
    yield Inputs().array("x", x).out("y", (256,), F32).launch("n=256", (2,), (128,), expected, 0)


def convolution(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    x, w = normal(rng, 11, 20, kind=np.float16), normal(rng, 3, 3, 3, kind=np.float16)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(F64), (3, 3))
    expected = np.einsum("pqrs,frs->fpq", windows, w.astype(F64))
    inputs = Inputs().array("x", x).array("w", w).out("y", expected.shape, F32)
    yield inputs.launch("11x20", (1, blocks(9, 4), 3), (32, 4), expected, 1e-6)


def csr(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    rows, width = 70, 50
    dense = np.where(rng.random((rows, width)) < 0.1, rng.standard_normal((rows, width)), 0.0)
    starts = np.concatenate([[0], np.cumsum((dense != 0).sum(axis=1))]).astype(np.int32)
    columns, values = np.nonzero(dense)[1].astype(np.int32), dense[dense != 0]
    x = rng.standard_normal(width)
    inputs = Inputs().array("starts", starts).array("columns", columns).array("values", values).array("x", x).out("y", (rows,), F64)
    yield inputs.launch(f"{rows}x{width}", (2,), (64,), dense @ x, 1e-13)


def bodies(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    n = 33
    position = np.concatenate([normal(rng, n, 3), rng.random((n, 1), F32)], axis=1)
    wide = position.astype(F64)
    difference = wide[None, :, :3] - wide[:, None, :3]
    distance = (difference**2).sum(axis=2) + np.float64(F32(0.01))
    expected = (difference * (wide[None, :, 3] * distance**-1.5)[:, :, None]).sum(axis=1)
    inputs = Inputs().array("position", position).out("acceleration", (n, 3), F32)
    yield inputs.launch(f"n={n}", (1,), (64,), expected, 5e-6)


def argmax(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    x = rng.integers(0, 9, (40, 23)).astype(F32)
    inputs = Inputs().array("x", x).out("y", (40,), np.int64)
    yield inputs.launch("40x23", (1,), (64,), x.argmax(axis=1), 0)


def sums_in_place(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    """A sum in memory: beside what is read, and among it, where it changes what is read."""
    for at, first in ((0, 1), (0, 0), (9, 0), (22, 0), (5, 23)):
        x = rng.integers(-9, 9, (40, 23)).astype(F32)
        expected = x.astype(F64)
        for j in range(first, 23):
            expected[:, at] += expected[:, j]
        inputs = Inputs().out("x", x.shape, F32, x).scalar(np.int64(at)).scalar(np.int64(first))
        yield inputs.launch(f"at {at}, from {first}", (1,), (64,), expected, 0)


def attention(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    q, k, v = normal(rng, 2, 8), normal(rng, 50, 8), normal(rng, 50, 8)
    scores = q.astype(F64) @ k.T.astype(F64) * np.float64(F32(0.35355338))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True) @ v.astype(F64)
    inputs = Inputs().array("q", q).array("k", k).array("v", v).out("o", (2, 8), F32)
    yield inputs.launch("2 rows, 50 keys", (2,), (64,), expected, 2e-6)


def integers(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    a = rng.integers(-(2**62), 2**62, 64)
    b = rng.integers(1, 2**20, 64) * np.where(rng.random(64) < 0.5, 1, -1) | 1
    a[:8] = [0, 1, -1, 2**31, -(2**31), 2**62, 255, -256]
    inputs = Inputs().array("x", a).array("y", b).out("z", (64, 16), np.int64)
    expected = np.array([_integers(int(x), int(y)) for x, y in zip(a, b, strict=True)])
    yield inputs.launch("n=64", (1,), (64,), expected, 0)


def _wrap(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def _quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _integers(a: int, b: int) -> list[int]:
    """What @integers computes of a and b, in Python's integers."""
    unsigned = 1 << 64
    places = b & 7
    a32, b32 = _wrap(a, 32), _wrap(b, 32)
    return [
        _wrap(_quotient(a, b), 64),
        _wrap(a % unsigned // (b % unsigned), 64),
        a - _quotient(a, b) * b,
        _wrap(a * b, 64),
        a * b >> 64,
        _wrap(a << places, 64),
        a >> places,
        64 - (a % unsigned).bit_length(),
        (a % unsigned).bit_count(),
        (b & -b).bit_length() - 1,
        _wrap(_quotient(a32, b32), 32),
        a32 % 2**32 % (b32 % 2**32),
        _wrap(a * b, 16),
        max(_wrap(a, 8), _wrap(b, 8)),
        int(float(a)),
        int(np.float32(np.uint32(a % 2**32))),
    ]


def tickets(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    """Each thread gets another number; which one is open, so the counter is what is compared."""
    order = np.full(130, -1, np.int32)
    inputs = Inputs().out("counter", (1,), np.int32, np.array([7])).out("order", (130,), np.int32, order)
    inputs.output = "counter"
    yield inputs.launch("n=130", (2,), (65,), np.array([137]), 0)


def private_array(mask: int) -> Launches:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        x = rng.integers(0, 1000, 70, np.int32)
        expected = np.array([x[(i + (x[i] & mask)) % 70] for i in range(70)])
        yield Inputs().array("x", x).out("y", (70,), np.int32).launch("n=70", (1,), (70,), expected, 0)

    return launches


def denormals(flushed: bool) -> Launches:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        x = (rng.standard_normal(64) * 2.0 ** rng.integers(-149, -120, 64)).astype(F32)
        tiny = np.finfo(F32).tiny
        keep = np.where(np.abs(x) < tiny, 0, x) if flushed else x
        half = keep * F32(0.5)
        expected = np.where(np.abs(half) < tiny, 0, half) if flushed else half
        yield Inputs().array("x", x).out("y", (64,), F32).launch("n=64", (1,), (64,), expected, 0)

    return launches


# -- matrices


def matrix(kind: Any, m: int, k: int, n: int, tolerance: float, transposed: bool = False, lanes: int = 64) -> Launches:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        bfloat = kind == "bf16"
        shape = (n, k) if transposed else (k, n)
        a, b = rng.standard_normal((m, k)), rng.standard_normal(shape)
        stored_a, stored_b = (_bfloat16(a), _bfloat16(b)) if bfloat else (a.astype(kind), b.astype(kind))
        wide_a, wide_b = (_from_bfloat16(stored_a), _from_bfloat16(stored_b)) if bfloat else (stored_a.astype(F64), stored_b.astype(F64))
        out = F64 if kind is F64 else F32
        inputs = Inputs().array("a", stored_a).array("b", stored_b).out("d", (m, n), out)
        yield inputs.launch(f"{m}x{k}x{n}", (1,), (lanes,), wide_a @ (wide_b.T if transposed else wide_b), tolerance)

    return launches


def _bfloat16(x: Array) -> Array:
    bits = x.astype(F32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def _from_bfloat16(bits: Array) -> Array:
    return (bits.astype(np.uint32) << 16).view(F32).astype(F64)


def heap_rows(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    x = rng.integers(-1000, 1000, 150 if large else 50, np.int32)
    lengths = np.arange(len(x)) % 5 + 1
    expected = 2 * (x * lengths + lengths * (lengths - 1) // 2)
    yield Inputs().array("x", x).out("y", x.shape, np.int32).launch(f"n={len(x)}", (blocks(len(x), 32),), (32,), expected, 0)


def intrinsics(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    x = np.concatenate((np.array([0.5, -1.5, 2.0, 90.25]), 20 * rng.standard_normal(60)))
    rows = (
        np.sin(x),
        np.sin(x.astype(F32).astype(F64)),
        np.abs(x) ** 2.75,
        np.exp2(x),
        np.fmod(x * 2.0**40, 0.3),
        np.copysign(np.floor(np.abs(x) + 0.5), x),
        (-1.25) ** np.trunc(x),
        np.modf(x)[0],
    )
    # Each row is as large as the others, so that none hides an error of another.
    scale = np.array([np.abs(row).max() for row in rows])[:, None]
    expected = np.stack(rows) / scale
    inputs = Inputs().array("x", x).out("y", expected.shape, F64)
    yield inputs.launch("n=64", (1,), (64,), expected, 1e-7, compared=lambda y: y.reshape(expected.shape) / scale)


def device_link(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
    x = normal(rng, 64)
    inputs = Inputs().out("data", (64,), F32, x)
    yield inputs.launch("n=64", (1,), (64,), 3 * x.astype(F64) + 20, 1e-6)


def _kernel(source: str, name: str, launches: Launches, **more: Any) -> Case:
    return Case(more.pop("case", name), f"{FOLDER}/{source}.mlir", launches, kernel=name, **more)


def _subgroup_cases() -> Iterator[Case]:
    """With 32 lanes of a wave of 32, with 32 lanes of a wave of 64, and with all 64."""
    wave64 = ("--wave-size", "64")
    groups: tuple[tuple[str, int, int, tuple[str, ...], tuple[str, ...]], ...] = (
        ("", 32, 32, RDNA, ()),
        ("_32_of_64", 32, 64, CDNA, ()),
        ("_64", 64, 64, CDNA, ()),
        ("_rdna_64", 64, 64, RDNA, wave64),
    )
    for suffix, width, wave, targets, options in groups:
        kernels: dict[str, Launches] = {f"shuffle_{mode}": shuffle(mode, width, wave) for mode in ("xor", "up", "down", "idx")}
        kernels["scan"] = scan(width, wave)
        kernels["butterfly"] = butterfly(width, wave)
        for name, launches in kernels.items():
            yield _kernel("subgroups", name, launches, case=f"{name}{suffix}", targets=targets, options=options)
    for suffix, targets, options in (("", CHIPS, ()), ("_rdna_64", RDNA, wave64)):
        more: dict[str, Launches] = {
            "reduce_block": reduce_block(256),
            "reduce_block_3": reduce_block(96),
            "reduce_any": reduce_any,
            "reduce_subgroup": reduce_subgroup,
        }
        for name, launches in more.items():
            yield _kernel("subgroups", name, launches, case=f"{name}{suffix}", targets=targets, options=options)


def _common_cases() -> Iterator[Case]:
    kernels: dict[str, Launches] = {
        "stencil": stencil,
        "block_sum": block_sum,
        "block_scan": block_scan,
        "convolution": convolution,
        "csr": csr,
        "bodies": bodies,
        "argmax": argmax,
        "sums_in_place": sums_in_place,
        "attention": attention,
        "integers": integers,
        "tickets": tickets,
        "private_array": private_array(15),
        "private_memory": private_array(255),
        "denormals": denormals(False),
    }
    for name, launches in kernels.items():
        yield _kernel("common", name, launches)
    yield _kernel("common", "denormals", denormals(True), case="denormals_daz", options=("--daz",))


def _more_cases() -> Iterator[Case]:
    for kind, name in ((np.float16, "wmma_f16"), ("bf16", "wmma_bf16")):
        multiply = matrix(kind, 16, 16, 16, 1e-6, transposed=True, lanes=32)
        yield _kernel("wmma_gfx11", name, multiply, targets=("gfx1100", "gfx1150"))
        yield _kernel("wmma_gfx12", name, multiply, case=f"{name}_gfx12", targets=("gfx1201",))
    yield _kernel("mfma", "mfma_f32", matrix(F32, 16, 4, 16, 1e-6), targets=CDNA)
    yield _kernel("mfma", "mfma_f64", matrix(F64, 16, 4, 16, 1e-14), targets=CDNA)
    yield Case("softmax_fast", "examples/softmax.mlir", softmax, kernel="softmax", options=("--fast",))
    yield Case("gelu_daz", "examples/gelu.mlir", gelu, kernel="gelu", options=("--daz",))
    yield Case("saxpy_O0", "examples/saxpy.mlir", saxpy, kernel="saxpy", options=("-O0",))
    yield Case("saxpy_v4", "examples/saxpy.mlir", saxpy, kernel="saxpy", options=("--code-object-version", "4"))
    yield Case("saxpy_v6", "examples/saxpy.mlir", saxpy, kernel="saxpy", options=("--code-object-version", "6"))
    families = {"gfx9-4-generic": ("gfx942", "gfx950"), "gfx11-generic": ("gfx1100", "gfx1150"), "gfx12-generic": ("gfx1201",)}
    generic = tuple((chip, name) for name, chips in families.items() for chip in chips)
    yield Case("softmax_generic", "examples/softmax.mlir", softmax, kernel="softmax", targets=CHIPS[1:], spelled=generic)
    features = (("gfx90a", "gfx90a:sramecc-:xnack-"), ("gfx942", "gfx942:sramecc+:xnack+"))
    yield Case("softmax_features", "examples/softmax.mlir", softmax, kernel="softmax", targets=CDNA[:2], spelled=features)
    yield _kernel("heap", "rows", heap_rows, case="heap_rows")
    yield _kernel("heap", "rows", heap_rows, case="heap_rows_v4", options=("--code-object-version", "4"), targets=("gfx942", "gfx1100"))
    yield Case("intrinsics", f"{FOLDER}/math_functions.ll", intrinsics)
    yield Case("saxpy_bundle", "examples/saxpy.mlir", saxpy, kernel="saxpy", options=("--emit", "bundle"))
    yield Case("device_link", "examples/device_link/joined.mlir", device_link, kernel="apply", options=("--device-link",))


CASES = (*_subgroup_cases(), *_common_cases(), *_more_cases())
