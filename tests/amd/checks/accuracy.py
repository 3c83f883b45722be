"""The math dialect as gpulower compiles it for AMD (ocml), in units in the last place: `cargo xtask amd -- math --target gfx942`.

Kernels, inputs, references and bounds are those of scripts/gpu/accuracy.py, with fewer inputs. The bounds are those of
NVIDIA's libdevice: AMD states none. A result that cannot be measured in units (NaN for a number, a wrong sign of zero) is "inf".
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Argument, Buffer, execute, memref
from amdexec.traps import Trap

from .examples import gpu_check

Array = Any


def launch(code: codeobject.CodeObject, name: str, arrays: list[Array], kinds: list[Any]) -> list[Array]:
    """Stands in for the launch on a GPU."""
    size = arrays[0].size
    buffers, arguments = [], list[Argument]()
    for index, kind in enumerate(kinds):
        buffers.append(Buffer(f"out{index}", np.zeros(size, kind), writable=True))
    for index, array in enumerate(arrays):
        buffers.append(Buffer(f"in{index}", np.ascontiguousarray(array)))
    for buffer in buffers:
        arguments += memref(buffer.name, buffer.array)
    geometry = Geometry((-(-size // 256), 1, 1), (256, 1, 1))
    outputs = execute(code, name, geometry, buffers, arguments, fuel=5_000_000).outputs
    return [outputs[f"out{index}"] for index in range(len(kinds))]


def measure(image: str, target: str, operation: str, kind: str, count: int, seed: int) -> tuple[float, str]:
    """The largest error, and where it is."""
    module = gpu_check("accuracy")
    code = codeobject.read(Path(image), target)
    rng = np.random.default_rng(seed)
    module.SIZE = module.SMALL = count
    every, given = module.Format.all, module.inputs

    def few(name: str, form: Any, source: np.random.Generator) -> list[Array]:
        arrays = given(name, form, source)
        chosen = source.permutation(len(arrays[0]))[:count]
        return [array[chosen] for array in arrays]

    module.inputs, module.launch = few, launch
    try:
        error, where, _ = module.measure(code, operation, module.Format(kind), module.references(kind), rng)
    except Trap as trap:
        return float("nan"), str(trap)
    finally:
        module.inputs, module.Format.all = given, every
    return float(error), where


def compile_kernels(gpulower: Path, folder: Path, target: str, operations: list[str], kinds: list[str]) -> Path:
    module = gpu_check("accuracy")
    source = folder / "math.mlir"
    kernels = [module.kernel(operation, kind) for kind in kinds for operation in operations]
    source.write_text("gpu.module @math {\n" + "".join(kernels) + "}\n")
    made = folder / f"math.{target}.hsaco"
    subprocess.run([str(gpulower), "compile", str(source), "--target", target, "--emit", "hsaco", "-o", str(made)], check=True)
    return made


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(prog="cargo xtask amd -- math", description=__doc__)
    options.add_argument("--gpulower", type=Path, required=True)
    options.add_argument("--target", default="gfx942")
    options.add_argument("--only", nargs="+", metavar="OPERATION")
    options.add_argument("--kinds", nargs="+", default=["f16", "f32", "f64"], choices=["f16", "bf16", "f32", "f64"])
    options.add_argument("--count", type=int, default=768, help="inputs for each operation")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--processes", type=int, default=2)
    chosen = options.parse_args(arguments)
    operations = [name for name in gpu_check("accuracy").BOUNDS if not chosen.only or name in chosen.only]
    failed = []
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(chosen.processes) as pool:
        image = compile_kernels(chosen.gpulower, Path(folder), chosen.target, operations, chosen.kinds)
        print(f"largest error in ULP on {chosen.target} (libdevice's bound)")
        print(f"{'operation':12}" + "".join(f"{kind:>22}" for kind in chosen.kinds))
        rows = [
            (name, [pool.submit(measure, str(image), chosen.target, name, kind, chosen.count, chosen.seed) for kind in chosen.kinds])
            for name in operations
        ]
        for name, futures in rows:
            cells = []
            for kind, future in zip(chosen.kinds, futures, strict=True):
                error, where = future.result()
                limit = gpu_check("accuracy").bound(name, kind)
                cells.append(f"{error:.5f} ({limit:.5g})")
                if not error <= limit:
                    failed.append(f"{name} {kind}: {error} ULP, libdevice's bound is {limit}: {where}")
            print(f"{name:12}" + "".join(f"{cell:>22}" for cell in cells), flush=True)
    for text in failed:
        print(text)
    print(f"{len(failed)} beyond libdevice's bounds")
    return 0
