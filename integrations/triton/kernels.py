"""Kernels of the kinds that Triton's tutorials teach, and others that stress what a back end does."""

from __future__ import annotations

import dataclasses
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, inside) + tl.load(y + at, inside), inside)


@triton.jit
def softmax(x, out, stride, rows, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        values = tl.load(x + row * stride + at, at < columns, other=-float("inf"))
        powers = tl.exp(values - tl.max(values, 0))
        tl.store(out + row * stride + at, powers / tl.sum(powers, 0), at < columns)


@triton.jit
def matmul(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tiles_m = tl.cdiv(M, BM)
    tiles_n = tl.cdiv(N, BN)
    tile = tl.program_id(0)
    group = tile // (GROUP * tiles_n)
    height = min(tiles_m - group * GROUP, GROUP)
    row = group * GROUP + (tile % (GROUP * tiles_n)) % height
    column = (tile % (GROUP * tiles_n)) // height
    m = (row * BM + tl.arange(0, BM)) % M
    n = (column * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    left = a + m[:, None] * sa + k[None, :]
    right = b + k[:, None] * sb + n[None, :]
    sums = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        inside = k < K - step * BK
        sums = tl.dot(tl.load(left, inside[None, :], 0.0), tl.load(right, inside[:, None], 0.0), sums)
        left += BK
        right += BK * sb
    sums = tl.where(sums >= 0, sums, 0.01 * sums)
    m = row * BM + tl.arange(0, BM)
    n = column * BN + tl.arange(0, BN)
    tl.store(c + m[:, None] * sc + n[None, :], sums.to(c.dtype.element_ty), (m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_int8(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sums = tl.zeros((BM, BN), tl.int32)
    for step in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (step + k)[None, :])
        right = tl.load(b + (step + k)[:, None] * N + n[None, :])
        sums += tl.dot(left, right)
    tl.store(c + m[:, None] * N + n[None, :], sums)


@triton.jit
def matmul_described(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [N, K], [K, 1], [BN, BK])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    sums = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        sums = tl.dot(left.load([m, k]), right.load([n, k]).T, sums)
    out.store([m, n], sums.to(tl.float16))


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    kept = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(kept, tl.load(x + at, at < n) / (1 - p), 0.0), at < n)


@triton.jit
def normal_numbers(out, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.randn(seed, at), at < n)


@triton.jit
def random_four(out, n, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    first, second, third, fourth = tl.rand4x(seed, at)
    tl.store(out + at, first + second * third - fourth, at < n)


@triton.jit
def layer_norm(x, out, weight, bias, mean, scale, stride, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    x += row * stride
    out += row * stride
    sums = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        sums += tl.load(x + at, at < columns, other=0.0).to(tl.float32)
    average = tl.sum(sums, 0) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + at, at < columns, other=0.0).to(tl.float32)
        distance = tl.where(at < columns, value - average, 0.0)
        squares += distance * distance
    inverse = 1 / tl.sqrt(tl.sum(squares, 0) / columns + eps)
    tl.store(mean + row, average)
    tl.store(scale + row, inverse)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        value = tl.load(x + at, inside, other=0.0).to(tl.float32)
        result = (value - average) * inverse * tl.load(weight + at, inside) + tl.load(bias + at, inside)
        tl.store(out + at, result.to(out.dtype.element_ty), inside)


@triton.jit
def layer_norm_backward(dx, dy, dw, db, x, weight, mean, scale, lock, stride, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    value = tl.load(x + row * stride + at, inside, other=0).to(tl.float32)
    slope = tl.load(dy + row * stride + at, inside, other=0).to(tl.float32)
    inverse = tl.load(scale + row)
    unit = tl.where(inside, (value - tl.load(mean + row)) * inverse, 0.0)
    weighted = tl.where(inside, tl.load(weight + at, inside).to(tl.float32) * slope, 0.0)
    one = tl.sum(unit * weighted, 0) / columns
    two = tl.sum(weighted, 0) / columns
    result = (weighted - (unit * one + two)) * inverse
    tl.store(dx + row * stride + at, result.to(dx.dtype.element_ty), inside)
    group = row % GROUP
    count = lock + GROUP + group
    while tl.atomic_cas(lock + group, 0, 1) == 1:
        pass
    part_w = slope * unit
    part_b = slope
    if tl.load(count) == 0:
        tl.atomic_xchg(count, 1)
    else:
        part_w += tl.load(dw + group * columns + at, inside)
        part_b += tl.load(db + group * columns + at, inside)
    tl.store(dw + group * columns + at, part_w, inside)
    tl.store(db + group * columns + at, part_b, inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock + group, 0)


@triton.jit
def attention(q, k, v, out, logs, scale, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64) * length * D
    m = block * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    query = tl.load(q + head + m[:, None] * D + d[None, :])
    most = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    sums = tl.zeros([BM, D], tl.float32)
    factor = scale * 1.44269504
    end = length
    if CAUSAL:
        end = (block + 1) * BM
    for start in range(0, end, BN):
        n = start + tl.arange(0, BN)
        keys = tl.load(k + head + n[None, :] * D + d[:, None])
        scores = tl.dot(query, keys) * factor
        if CAUSAL:
            scores = tl.where(m[:, None] >= n[None, :], scores, -float("inf"))
        larger = tl.maximum(most, tl.max(scores, 1))
        powers = tl.exp2(scores - larger[:, None])
        shrink = tl.exp2(most - larger)
        total = total * shrink + tl.sum(powers, 1)
        values = tl.load(v + head + n[:, None] * D + d[None, :])
        sums = tl.dot(powers.to(values.dtype), values, sums * shrink[:, None])
        most = larger
    tl.store(logs + tl.program_id(1) * length + m, most + tl.log2(total))
    tl.store(out + head + m[:, None] * D + d[None, :], (sums / total[:, None]).to(out.dtype.element_ty))


@triton.jit
def attention_backward(q, k, v, dout, dk, dv, logs, delta, scale, length, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * length * D
    rows = tl.program_id(1) * length
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    d = tl.arange(0, D)
    keys = tl.load(k + head + n[:, None] * D + d[None, :])
    values = tl.load(v + head + n[:, None] * D + d[None, :])
    sum_k = tl.zeros([BN, D], tl.float32)
    sum_v = tl.zeros([BN, D], tl.float32)
    for start in range(0, length, BM):
        m = start + tl.arange(0, BM)
        query = tl.load(q + head + m[None, :] * D + d[:, None])
        scores = tl.dot(keys, query) * scale * 1.44269504
        powers = tl.exp2(scores - tl.load(logs + rows + m)[None, :])
        slope = tl.load(dout + head + m[:, None] * D + d[None, :])
        sum_v += tl.dot(powers.to(tl.float16), slope)
        inner = tl.dot(values, tl.trans(slope))
        inner = powers * (inner - tl.load(delta + rows + m)[None, :])
        sum_k += tl.dot(inner.to(tl.float16), tl.trans(query))
    tl.store(dk + head + n[:, None] * D + d[None, :], (sum_k * scale).to(tl.float16))
    tl.store(dv + head + n[:, None] * D + d[None, :], sum_v.to(tl.float16))


@triton.jit
def math_functions(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n)
    result = tl.sin(value) + tl.cos(value) * tl.exp(value) + tl.log(tl.abs(value) + 1) + tl.erf(value)
    result += libdevice.asin(value * 0.25) + libdevice.tanh(value) + libdevice.log1p(tl.abs(value)) + tl.rsqrt(value * value + 1)
    result += libdevice.pow(tl.abs(value), value)
    tl.store(out + at, result, at < n)


@triton.jit
def gamma_function(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n)
    tl.store(out + at, libdevice.lgamma(value) + libdevice.atan2(value, value + 1) + libdevice.erfinv(value * 0.1), at < n)


@triton.jit
def gelu(x, gate, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, at < n).to(tl.float32)
    weight = tl.load(gate + at, at < n).to(tl.float32)
    result = 0.5 * value * (1 + tl.erf(value * 0.70710678)) * weight * tl.sigmoid(weight)
    tl.store(out + at, result.to(out.dtype.element_ty), at < n)


@triton.jit
def rms_norm(x, weight, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + at, at < columns, other=0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + eps)
    tl.store(out + row * columns + at, value * scale * tl.load(weight + at, at < columns, other=0), at < columns)


@triton.jit
def cross_entropy(x, labels, loss, slope, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels + row)
    most = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, at < columns, other=-float("inf")).to(tl.float32)
        larger = tl.maximum(most, tl.max(value, 0))
        total = total * tl.exp(most - larger) + tl.sum(tl.exp(value - larger), 0)
        most = larger
    tl.store(loss + row, tl.log(total) + most - tl.load(x + row * columns + label).to(tl.float32))
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        value = tl.load(x + row * columns + at, at < columns, other=-float("inf")).to(tl.float32)
        part = tl.exp(value - most) / total - tl.where(at == label, 1.0, 0.0)
        tl.store(slope + row * columns + at, part, at < columns)


@triton.jit
def rotary(x, cosine, sine, out, heads, D: tl.constexpr):
    place = tl.program_id(0)
    half = tl.arange(0, D // 2)
    c = tl.load(cosine + place * (D // 2) + half)
    s = tl.load(sine + place * (D // 2) + half)
    for head in range(heads):
        base = (place * heads + head) * D
        one = tl.load(x + base + half)
        two = tl.load(x + base + D // 2 + half)
        tl.store(out + base + half, one * c - two * s)
        tl.store(out + base + D // 2 + half, two * c + one * s)


@triton.jit
def first_largest(x, values, places, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value, place = tl.max(tl.load(x + row * columns + at, at < columns, other=-float("inf")), 0, return_indices=True)
    tl.store(values + row, value)
    tl.store(places + row, place)


@triton.jit
def _step(first, one, second, two):
    return first * second, one * second + two


@triton.jit
def recurrence(a, b, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    at = tl.arange(0, BLOCK)
    factor = tl.load(a + row + at, at < columns, other=1.0)
    value = tl.load(b + row + at, at < columns, other=0.0)
    _, result = tl.associative_scan((factor, value), 0, _step)
    tl.store(out + row + at, result, at < columns)


@triton.jit
def sorted_rows(x, out, columns: tl.constexpr):
    at = tl.program_id(0) * columns + tl.arange(0, columns)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def counts(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    found = tl.histogram(tl.load(x + at, at < n, other=0), BINS, mask=at < n)
    tl.atomic_add(out + tl.arange(0, BINS), found, sem="relaxed")


@triton.jit
def transposed(x, out, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    value = tl.load(x + m[:, None] * N + n[None, :], (m[:, None] < M) & (n[None, :] < N))
    tl.store(out + n[:, None] * M + m[None, :], tl.trans(value), (n[:, None] < N) & (m[None, :] < M))


@triton.jit
def convolution(x, weight, out, H, W, BLOCK: tl.constexpr, SIZE: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    sums = tl.zeros([BLOCK], tl.float32)
    for i in tl.static_range(SIZE):
        for j in tl.static_range(SIZE):
            value = tl.load(x + (row + i) * (W + SIZE - 1) + at + j, at < W, other=0.0)
            sums += value * tl.load(weight + i * SIZE + j)
    tl.store(out + row * W + at, sums, at < W)


@triton.jit
def double_sums(x, out, rows, columns, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    sums = tl.zeros([BM, BN], tl.float64)
    for start in range(0, columns, BN):
        n = start + tl.arange(0, BN)
        sums += tl.load(x + m[:, None] * columns + n[None, :], (m[:, None] < rows) & (n[None, :] < columns), other=0.0)
    tl.store(out + m, tl.sum(sums, 1), m < rows)


@triton.jit
def unpacked_matmul(a, b, scales, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    scale = tl.load(scales + n)
    sums = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        packed = tl.load(b + ((start + k) // 2)[:, None] * N + n[None, :])
        four = (packed >> ((k % 2) * 4)[:, None]) & 15
        right = ((four.to(tl.float16) - 8) * scale[None, :]).to(tl.float16)
        sums = tl.dot(left, right, sums)
    tl.store(c + m[:, None] * N + n[None, :], sums.to(tl.float16))


@triton.jit
def silu_tiles(gate, x, out, rows, columns, stride, BM: tl.constexpr, BN: tl.constexpr):
    tile, across = tl.program_id(0).to(tl.int64), tl.cdiv(columns, BN)
    m, n = tile // across * BM + tl.arange(0, BM), tile % across * BN + tl.arange(0, BN)
    at, inside = m[:, None] * stride + n[None, :], (m[:, None] < rows) & (n[None, :] < columns)
    value = tl.load(gate + at, inside).to(tl.float32)
    tl.store(out + at, (value * tl.sigmoid(value)).to(tl.float16) * tl.load(x + at, inside), inside)


@dataclasses.dataclass(frozen=True)
class Case:
    """A kernel with the types of its arguments, in their order: `*fp16`, `i32`, or a number for a constant."""

    name: str
    function: Any
    arguments: dict[str, Any]
    warps: int = 4
    stages: int = 3
    #: Arguments that are multiples of 16, as Triton's launcher would find them; by default all pointers.
    aligned: tuple[str, ...] = ()
    #: Prefixes of targets that Triton itself compiles it for.
    targets: tuple[str, ...] = ("sm_", "gfx")


def _case(function: Any, types: str, warps: int = 4, name: str | None = None, **more: Any) -> Case:
    """`types` has a word for each argument."""
    words = [int(word) if word.lstrip("-").isdigit() else word for word in types.split()]
    arguments = dict(zip(function.arg_names, words, strict=True))
    return Case(name or function.__name__, function, arguments, warps, **more)


CASES = [
    _case(vector_add, "*fp32 *fp32 *fp32 i32 1024", aligned=("n",)),
    _case(softmax, "*fp32 *fp32 i32 i32 i32 2048", warps=8, aligned=("stride",)),
    _case(matmul, "*fp16 *fp16 *fp16 i32 i32 i32 i32 i32 i32 128 128 64 8", aligned=("M", "N", "K", "sa", "sb", "sc")),
    _case(
        matmul,
        "*fp8e4nv *fp8e4nv *fp16 i32 i32 i32 i32 i32 i32 128 128 64 8",
        name="matmul_fp8",
        aligned=("M", "N", "K", "sa", "sb", "sc"),
        targets=("sm_",),
    ),
    _case(
        matmul,
        "*bf16 *bf16 *bf16 i32 i32 i32 i32 i32 i32 64 64 32 8",
        name="matmul_bf16",
        aligned=("M", "N", "K", "sa", "sb", "sc"),
    ),
    _case(
        matmul,
        "*fp32 *fp32 *fp32 i32 i32 i32 i32 i32 i32 64 64 32 8",
        name="matmul_fp32",
        aligned=("M", "N", "K", "sa", "sb", "sc"),
    ),
    _case(matmul_int8, "*i8 *i8 *i32 i32 i32 i32 64 64 64", aligned=("M", "N", "K")),
    _case(matmul_described, "*fp16 *fp16 *fp16 i32 i32 i32 128 128 64", aligned=("M", "N", "K"), targets=("sm_",)),
    _case(dropout, "*fp32 *fp32 i32 fp32 i32 1024", aligned=("n",)),
    _case(normal_numbers, "*fp32 i32 i32 1024", aligned=("n",)),
    _case(random_four, "*fp32 i32 i32 1024", aligned=("n",)),
    _case(layer_norm, "*fp16 *fp16 *fp32 *fp32 *fp32 *fp32 i32 i32 fp32 1024", aligned=("stride", "columns")),
    _case(
        layer_norm_backward,
        "*fp16 *fp16 *fp32 *fp32 *fp16 *fp32 *fp32 *fp32 *i32 i32 i32 64 1024",
        aligned=("stride", "columns"),
    ),
    _case(attention, "*fp16 *fp16 *fp16 *fp16 *fp32 fp32 i32 64 128 64 0", name="attention", aligned=("length",)),
    _case(
        attention,
        "*fp16 *fp16 *fp16 *fp16 *fp32 fp32 i32 64 64 64 1",
        name="attention_causal",
        aligned=("length",),
    ),
    _case(attention_backward, "*fp16 *fp16 *fp16 *fp16 *fp16 *fp16 *fp32 *fp32 fp32 i32 64 32 64", aligned=("length",)),
    _case(math_functions, "*fp32 *fp32 i32 1024", aligned=("n",)),
    _case(gamma_function, "*fp32 *fp32 i32 1024", aligned=("n",)),
    _case(gelu, "*bf16 *bf16 *bf16 i32 1024", aligned=("n",)),
    _case(rms_norm, "*fp32 *fp32 *fp32 i32 fp32 4096", warps=8, aligned=("columns",)),
    _case(cross_entropy, "*fp32 *i64 *fp32 *fp32 i32 2048", warps=8, aligned=("columns",)),
    _case(rotary, "*fp32 *fp32 *fp32 *fp32 i32 128", warps=1),
    _case(first_largest, "*fp32 *fp32 *i32 i32 1024", aligned=("columns",)),
    _case(recurrence, "*fp32 *fp32 *fp32 i32 1024", aligned=("columns",)),
    _case(sorted_rows, "*fp32 *fp32 512"),
    _case(counts, "*i32 *i32 i32 64 1024", aligned=("n",)),
    _case(transposed, "*fp32 *fp32 i32 i32 64 64", aligned=("M", "N")),
    _case(convolution, "*fp32 *fp32 *fp32 i32 i32 256 5", aligned=("W",)),
    _case(double_sums, "*fp64 *fp64 i32 i32 32 64", aligned=("columns",)),
    _case(silu_tiles, "*fp16 *fp16 *fp16 i32 i32 i32 1 256"),
    _case(unpacked_matmul, "*fp16 *i8 *fp16 *fp16 i32 i32 i32 64 64 64", aligned=("M", "N", "K")),
]
