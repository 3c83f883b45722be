#!/usr/bin/env python3
"""Run gpu.shuffle in all modes, scans, reductions and a last-block pattern on an NVIDIA GPU, and compare them with numpy.

    gpulower compile tests/amd/kernels/subgroups.mlir --target sm_90 --emit cubin -o subgroups.cubin
    gpulower compile scripts/gpu/orderings.mlir --target sm_90 --emit cubin -o orderings.cubin
    subgroups.py run FOLDER      # of these two

The kernels are those that the AMD executor runs, too. Needs numpy, cupy and a driver.
"""

from __future__ import annotations

import argparse
from typing import Any

import harness
from harness import launch

np = harness.need("numpy")
WARP = 32
ROUNDS, BLOCKS = 300, 5000
checks = harness.Checks(width=24)


def check(what: str, count: int, bad: list[str]) -> None:
    checks.check(what, not bad, f"{count} cases" + (f", {len(bad)} wrong, such as {bad[0]}" if bad else ""))


def shuffled(mode: str, x: Any, offset: int, width: int) -> Any:
    """gpu.shuffle as the dialect documents it; -1 where a lane has no source."""
    lane = np.arange(WARP)
    source = {"xor": lane ^ offset, "up": lane - offset, "down": lane + offset, "idx": np.full(WARP, offset)}[mode]
    valid = (lane < width) & (source >= 0) & (source < width)
    return np.where(valid, x[np.clip(source, 0, WARP - 1)], -1).astype(np.float32)


def check_shuffles(cp: Any, module: Any, x: Any) -> None:
    for mode in ("xor", "up", "down", "idx"):
        function, bad, count = module.get_function(f"shuffle_{mode}"), [], 0
        for width in range(1, WARP + 1):
            for offset in (*range(WARP + 2), 40, 64):
                y = cp.zeros(WARP, dtype=cp.float32)
                launch(function, (1,), (WARP,), cp.asarray(x), y, np.int32(offset), np.int32(width))
                count += 1
                if not np.array_equal(cp.asnumpy(y), shuffled(mode, x, offset, width)):
                    bad.append(f"offset {offset}, width {width}")
        check(f"shuffle {mode}", count, bad)


def check_scans(cp: Any, module: Any, x: Any) -> None:
    function, bad = module.get_function("scan"), []
    for width in (1, 2, 3, 5, 8, 16, 17, 31, 32):
        y = cp.zeros(WARP, dtype=cp.float32)
        launch(function, (1,), (WARP,), cp.asarray(x), y, np.int32(width))
        if not np.array_equal(cp.asnumpy(y)[:width], np.cumsum(x[:width], dtype=np.float32)):
            bad.append(f"width {width}")
    check("inclusive scan", 9, bad)


def check_reductions(cp: Any, module: Any, random: Any) -> None:
    bad = []
    for name, threads in (("reduce_block", 256), ("reduce_block_3", 96)):
        x = random.integers(-1000, 1000, threads, dtype=np.int32)
        y = cp.zeros((threads, 4), dtype=cp.int32)
        launch(module.get_function(name), (1,), (threads,), cp.asarray(x), y)
        want = [x.sum(), x.min(), x.view(np.uint32).max().view(np.int32), np.bitwise_xor.reduce(x)]
        if not np.array_equal(cp.asnumpy(y), np.tile(np.array(want, dtype=np.int32), (threads, 1))):
            bad.append(name)
    any_size, shapes = module.get_function("reduce_any"), [(n,) for n in range(1, 1025)] + [(7, 5, 3), (31, 33), (1, 96), (1, 1, 33)]
    for shape in shapes:
        threads = int(np.prod(shape))
        x = random.integers(-1000, 1000, threads, dtype=np.int32)
        y = cp.zeros((threads, 3), dtype=cp.int64)
        launch(any_size, (1,), shape, cp.asarray(x), y)
        if not np.array_equal(cp.asnumpy(y), np.tile(np.array([x.sum(), x.max(), x.sum()], dtype=np.int64), (threads, 1))):
            bad.append(f"a block of {shape}")
    check("all_reduce", 2 + len(shapes), bad)


def check_orderings(cp: Any, module: Any) -> None:
    function, bad = module.get_function("last_block"), []
    for number in range(ROUNDS):
        counter, out = cp.zeros(1, dtype=cp.int32), cp.zeros(1, dtype=cp.int32)
        parts = cp.zeros(BLOCKS, dtype=cp.int32)
        launch(function, (BLOCKS,), (1,), counter, parts, out)
        if int(out[0]) != BLOCKS * (BLOCKS + 1) // 2:
            bad.append(f"round {number}: {int(out[0])}")
    check("the last block", ROUNDS, bad)


def run(chosen: argparse.Namespace) -> int:
    cp = harness.gpu()
    subgroups, orderings = (cp.RawModule(path=str(chosen.folder / f"{name}.cubin")) for name in ("subgroups", "orderings"))
    random = np.random.default_rng(1)
    x = random.integers(0, 100, WARP).astype(np.float32)
    check_shuffles(cp, subgroups, x)
    check_scans(cp, subgroups, x)
    check_reductions(cp, subgroups, random)
    check_orderings(cp, orderings)
    return checks.status()


harness.command_line(__doc__, run)
