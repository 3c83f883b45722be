"""The kernels of numba-cuda-mlir on a GPU: by gpulower from MLIR, and by numba-cuda-mlir itself where that is installed.

    python on_gpu.py make FOLDER     writes the MLIR, where there need be no GPU
    python on_gpu.py run FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

BLOCK = 128
N = 1 << 20


def cases() -> dict[str, tuple[Any, Any, list[Any], Any]]:
    """Grid, block, arguments (the output last), and what the output should be."""
    random = np.random.default_rng(1)
    x, y = random.random(N, np.float32), random.random(N, np.float32)
    places = random.integers(0, 64, N, np.int32)
    table = random.random((1000, 700), np.float32)
    sums = np.zeros(N // BLOCK, np.float32)
    return {
        "vector_add": (N // BLOCK, BLOCK, [x, y, np.zeros_like(x)], x + y),
        "block_sums": (N // BLOCK, BLOCK, [x, sums], x.reshape(-1, BLOCK).sum(1)),
        "counts": (N // BLOCK, BLOCK, [places, np.zeros(64, np.int32)], np.bincount(places, minlength=64)),
        "transpose": ((44, 63), (16, 16), [table, np.zeros((700, 1000), np.float32)], table.T),
        "warp_sums": (N // BLOCK, BLOCK, [x, np.zeros(N // 32, np.float32)], x.reshape(-1, 32).sum(1)),
    }


def make(folder: Path) -> None:
    """Writes each kernel as numba-cuda-mlir lowers it."""
    import numba_cuda_mlir.mlir_lowering
    import numba_cuda_mlir.tools
    from kernels import KERNELS
    from numba_cuda_mlir.compiler import compile_mlir

    numba_cuda_mlir.tools._cached_cc = (9, 0)
    numba_cuda_mlir.mlir_lowering.get_max_ptx_version = lambda: 80
    folder.mkdir(parents=True, exist_ok=True)
    for function, signature in KERNELS.items():
        if function.__name__ in cases():
            folder.joinpath(f"{function.__name__}.mlir").write_text(compile_mlir(function, signature, chip="sm_90"))


def milliseconds(launch: Any) -> float:
    """The median of some launches."""
    import cupy

    times = []
    for _ in range(20):
        begin, end = cupy.cuda.Event(), cupy.cuda.Event()
        begin.record()
        launch()
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(begin, end))
    return sorted(times)[len(times) // 2]


def own(name: str, grid: Any, block: Any, arguments: list[Any]) -> str:
    """How long numba-cuda-mlir's own kernel takes."""
    try:
        from kernels import KERNELS
        from numba_cuda_mlir import cuda
    except ImportError:
        return "numba-cuda-mlir is not installed"
    function = next(function for function in KERNELS if function.__name__ == name)
    kernel = cuda.jit(function)[grid, block]
    kernel(*arguments)
    return f"its own {milliseconds(lambda: kernel(*arguments)) * 1e3:.1f} us"


def run(folder: Path) -> int:
    """Prints a line for each kernel."""
    import cupy
    import gpulower

    failed = 0
    for name, (grid, block, arrays, expected) in cases().items():
        try:
            artifact = gpulower.compile(folder / f"{name}.mlir", "native")
            (kernel,) = artifact.kernels
            launch = artifact[kernel.name](grid=grid, block=block)
            arguments = [cupy.asarray(array) for array in arrays]
            launch(*arguments)
            right = np.allclose(cupy.asnumpy(arguments[-1]), expected, rtol=1e-5)
            time = milliseconds(lambda launch=launch, arguments=arguments: launch(*arguments)) * 1e3
            print(f"{name:<12} {'right' if right else 'WRONG'}, {time:.1f} us; {own(name, grid, block, arguments)}")
            failed += not right
        except Exception as error:
            failed += 1
            print(f"{name:<12} FAILED: {type(error).__name__}: {str(error)[:300]}")
    return min(failed, 1)


if __name__ == "__main__":
    action, where = sys.argv[1], Path(sys.argv[2])
    sys.exit(make(where) if action == "make" else run(where))
