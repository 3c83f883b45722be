"""Chooses the options and the launch shape of a kernel by measuring: run it on a machine with a GPU, cupy beside.

python tune.py saxpy.mlir saxpy
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import gpulower


def variants(source: Path) -> dict[tuple[int, int], gpulower.Artifact]:
    """The kernel with several options, compiled at the same time."""
    made = {}
    for level, unrolled in itertools.product((2, 3), (1, 4)):
        [artifact] = gpulower.compile_many([source], "native", O=level, interleave=unrolled)
        made[level, unrolled] = artifact
    return made


def seconds(kernel: Any, grid: int, block: int, arguments: tuple[Any, ...]) -> float:
    """The time of one launch: the median of twenty."""
    import cupy

    times: list[float] = []
    for _ in range(20):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        kernel(grid, block, cupy.cuda.get_current_stream())(*arguments)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end) / 1000)
    return sorted(times)[len(times) // 2]


def main() -> None:
    """Measures a kernel with the parameters of `saxpy`: n, a, x, y."""
    import cupy

    source, name = Path(sys.argv[1]), sys.argv[2]
    n = 1 << 24
    x, y = cupy.ones(n, cupy.float32), cupy.zeros(n, cupy.float32)
    for (level, unrolled), artifact in variants(source).items():
        for block in (128, 256, 512, 1024):
            time = seconds(artifact[name], -(-n // block), block, (n, 2.0, x, y))
            occupancy = artifact.kernel(name).occupancy(block)
            print(f"O={level} interleave={unrolled} block={block:5}: {12 * n / time / 1e9:6.0f} GB/s, {occupancy}")


if __name__ == "__main__":
    main()
