#!/usr/bin/env python3
"""Run gpu.shuffle in all modes, scans, reductions and a last-block pattern on an NVIDIA GPU, and compare them with numpy.

    gpulower compile tests/amd/kernels/subgroups.mlir --target sm_90 --emit cubin -o subgroups.cubin
    gpulower compile scripts/orderings.mlir --target sm_90 --emit cubin -o orderings.cubin
    check_subgroups_on_gpu.py subgroups.cubin orderings.cubin

The kernels are those that the AMD executor runs, too. Needs numpy, cupy and a driver. The exit status is 0 when everything
agrees.
"""

import sys

import cupy as cp
import numpy as np

WARP = 32
ROUNDS, BLOCKS = 300, 5000
wrong = 0


def memref(array):
    """The parameters of a memref: both pointers, offset, sizes, strides."""
    pointer = np.uint64(array.data.ptr)
    sizes = [np.int64(size) for size in array.shape]
    strides = [np.int64(stride // array.itemsize) for stride in array.strides]
    return [pointer, pointer, np.int64(0), *sizes, *strides]


def launch(function, grid, block, *arguments):
    parameters = []
    for argument in arguments:
        parameters += memref(argument) if isinstance(argument, cp.ndarray) else [argument]
    function((grid,), (block,), tuple(parameters))
    cp.cuda.Device().synchronize()


def check(what, count, bad):
    global wrong
    wrong += bool(bad)
    print(f"{what:24}{count:6} cases  {'ok' if not bad else f'WRONG: {len(bad)}, such as {bad[0]}'}")


def shuffled(mode, x, offset, width):
    """gpu.shuffle as the dialect documents it; -1 where a lane has no source."""
    lane = np.arange(WARP)
    source = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": np.full(WARP, offset)}[mode]
    valid = (lane < width) & (source >= 0) & (source < width)
    return np.where(valid, x[np.clip(source, 0, WARP - 1)], -1).astype(np.float32)


def check_shuffles(module, x):
    for mode in ("xor", "up", "down", "idx"):
        function, bad, count = module.get_function(f"shuffle_{mode}"), [], 0
        for width in range(1, WARP + 1):
            for offset in (*range(0, WARP + 2), 40, 64):
                y = cp.zeros(WARP, dtype=cp.float32)
                launch(function, 1, WARP, cp.asarray(x), y, np.int32(offset), np.int32(width))
                count += 1
                if not np.array_equal(cp.asnumpy(y), shuffled(mode, x, offset, width)):
                    bad.append(f"offset {offset}, width {width}")
        check(f"shuffle {mode}", count, bad)


def check_scans(module, x):
    function, bad = module.get_function("scan"), []
    for width in (1, 2, 3, 5, 8, 16, 17, 31, 32):
        y = cp.zeros(WARP, dtype=cp.float32)
        launch(function, 1, WARP, cp.asarray(x), y, np.int32(width))
        if not np.array_equal(cp.asnumpy(y)[:width], np.cumsum(x[:width], dtype=np.float32)):
            bad.append(f"width {width}")
    check("inclusive scan", 9, bad)


def check_reductions(module, random):
    bad = []
    for name, threads in (("reduce_block", 256), ("reduce_block_3", 96)):
        x = random.integers(-1000, 1000, threads, dtype=np.int32)
        y = cp.zeros((threads, 4), dtype=cp.int32)
        launch(module.get_function(name), 1, threads, cp.asarray(x), y)
        want = [x.sum(), x.min(), x.view(np.uint32).max().view(np.int32), np.bitwise_xor.reduce(x)]
        if not np.array_equal(cp.asnumpy(y), np.tile(np.array(want, dtype=np.int32), (threads, 1))):
            bad.append(name)
    check("all_reduce", 2, bad)


def check_orderings(module):
    function, bad = module.get_function("last_block"), []
    for number in range(ROUNDS):
        counter, out = cp.zeros(1, dtype=cp.int32), cp.zeros(1, dtype=cp.int32)
        parts = cp.zeros(BLOCKS, dtype=cp.int32)
        launch(function, BLOCKS, 1, counter, parts, out)
        if int(out[0]) != BLOCKS * (BLOCKS + 1) // 2:
            bad.append(f"round {number}: {int(out[0])}")
    check("the last block", ROUNDS, bad)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    subgroups, orderings = (cp.RawModule(path=path) for path in sys.argv[1:])
    random = np.random.default_rng(1)
    x = random.integers(0, 100, WARP).astype(np.float32)
    check_shuffles(subgroups, x)
    check_scans(subgroups, x)
    check_reductions(subgroups, random)
    check_orderings(orderings)
    print("everything agrees" if not wrong else f"{wrong} WRONG")
    sys.exit(1 if wrong else 0)


main()
