"""Kernels of numba-cuda-mlir, and what they should compute."""

from __future__ import annotations

from typing import Any

from numba_cuda_mlir import cuda, types

BLOCK = 128


def vector_add(x: Any, y: Any, out: Any) -> None:
    i = cuda.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def block_sums(x: Any, out: Any) -> None:
    partial = cuda.shared.array(BLOCK, types.float32)
    thread = cuda.threadIdx.x
    i = cuda.grid(1)
    value = types.float32(0)
    if i < x.size:
        value = x[i]
    partial[thread] = value
    cuda.syncthreads()
    step = BLOCK // 2
    while step > 0:
        if thread < step:
            partial[thread] += partial[thread + step]
        cuda.syncthreads()
        step //= 2
    if thread == 0:
        out[cuda.blockIdx.x] = partial[0]


def counts(x: Any, out: Any) -> None:
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, x[i], 1)


def transpose(x: Any, out: Any) -> None:
    tile = cuda.shared.array((16, 17), types.float32)
    column, row = cuda.grid(2)
    if row < x.shape[0] and column < x.shape[1]:
        tile[cuda.threadIdx.y, cuda.threadIdx.x] = x[row, column]
    cuda.syncthreads()
    column = cuda.blockIdx.y * 16 + cuda.threadIdx.x
    row = cuda.blockIdx.x * 16 + cuda.threadIdx.y
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = tile[cuda.threadIdx.x, cuda.threadIdx.y]


def warp_sums(x: Any, out: Any) -> None:
    i = cuda.grid(1)
    value = x[i]
    step = 16
    while step > 0:
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
        step //= 2
    if cuda.laneid == 0:
        out[i // 32] = value


def grid_phases(x: Any, out: Any) -> None:
    grid = cuda.cg.this_grid()
    i = cuda.grid(1)
    x[i] = x[i] * 2
    grid.sync()
    out[i] = x[out.size - 1 - i]


f1 = types.float32[::1]
i1 = types.int32[::1]
f2 = types.float32[:, ::1]

#: Each kernel with the types of its arguments.
KERNELS = {
    vector_add: types.void(f1, f1, f1),
    block_sums: types.void(f1, f1),
    counts: types.void(i1, i1),
    transpose: types.void(f2, f2),
    warp_sums: types.void(f1, f1),
    grid_phases: types.void(f1, f1),
}
