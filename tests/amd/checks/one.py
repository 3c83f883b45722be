"""Executes one kernel of anybody's: `cargo xtask amd KERNEL.mlir --target gfx942 --grid 4 --block 256 --arg ...`.

Arguments are given in the order of the kernel's parameters, one --arg for each:

  f32=2.5, i64=-1, index=7        a scalar
  in:f32[100]=iota                a memref that the kernel reads
  out:f32[4,25]=nan               a memref that it may write, too
  inptr:f32[100]=..., outptr:...  the same as one bare pointer

Types: f16 bf16 f32 f64 i8 i16 i32 i64 index. What is in an array: zeros, ones, nan, iota (0, 1, 2, ...), random (normal, or all bits
for integers), a number, or FILE.npy. bf16 is given as bits.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Argument, Buffer, Pointer, execute, memref
from amdexec.traps import Trap

Array = Any
TYPES = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
}
_ARRAY = re.compile(r"(in|out|inptr|outptr):(\w+)\[([\d,]*)\]=(.+)")
_SCALAR = re.compile(r"(\w+)=(.+)")


@dataclass
class Arguments:
    buffers: list[Buffer]
    values: list[Argument]


def parse_arguments(texts: list[str], rng: np.random.Generator) -> Arguments:
    """Raises ValueError with what is wrong in which argument."""
    parsed = Arguments([], [])
    for number, text in enumerate(texts):
        if match := _ARRAY.fullmatch(text):
            kind, shape = _type(match[2], text), tuple(int(size) for size in match[3].split(",") if size)
            array = _content(match[4], kind, shape, rng, text)
            name = f"argument {number}"
            parsed.buffers.append(Buffer(name, array, writable=match[1].startswith("out")))
            parsed.values += [Pointer(name)] if match[1].endswith("ptr") else memref(name, array)
        elif match := _SCALAR.fullmatch(text):
            kind = _type(match[1], text)
            value = float(match[2]) if np.dtype(kind).kind == "f" else int(match[2], 0)
            parsed.values.append(np.array(value).astype(kind).tobytes())
        else:
            raise ValueError(f"--arg {text}: neither TYPE=VALUE nor in:TYPE[SHAPE]=CONTENT, as `--help` explains")
    return parsed


def _type(name: str, text: str) -> Any:
    if name not in TYPES:
        raise ValueError(f"--arg {text}: {name} is none of {', '.join(TYPES)}")
    return TYPES[name]


def _content(content: str, kind: Any, shape: tuple[int, ...], rng: np.random.Generator, text: str) -> Array:
    count = int(np.prod(shape))
    if content.endswith(".npy"):
        loaded = np.load(content)
        if loaded.size != count:
            raise ValueError(f"--arg {text}: {content} has {loaded.size} elements, the shape has {count}")
        return loaded.astype(kind).reshape(shape)
    if content == "random":
        if np.dtype(kind).kind == "f":
            return rng.standard_normal(shape).astype(kind)
        return np.frombuffer(rng.bytes(count * np.dtype(kind).itemsize), kind).reshape(shape)
    if content == "iota":
        return np.arange(count).astype(kind).reshape(shape)
    fixed = {"zeros": 0.0, "ones": 1.0, "nan": float("nan")}
    try:
        value = fixed.get(content) if content in fixed else float(content)
    except ValueError:
        raise ValueError(f"--arg {text}: {content} is no content; `--help` lists them") from None
    if np.dtype(kind).kind != "f" and content == "nan":
        value = -1.0
    return np.full(shape, value).astype(kind)


def _sizes(text: str) -> tuple[int, int, int]:
    x, y, z = (*(int(part) for part in text.split(",")), 1, 1)[:3]
    return x, y, z


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(prog="cargo xtask amd", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("input", type=Path, help=".mlir, .ll, .bc to compile, or a code object or bundle (.hsaco, .co) as it is")
    options.add_argument("--gpulower", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--target", default="gfx942", help="the chip, or several with commas (default gfx942)")
    options.add_argument("--kernel", help="which kernel, where there are several")
    options.add_argument("--grid", type=_sizes, default=(1, 1, 1), metavar="X[,Y[,Z]]", help="in blocks")
    options.add_argument("--block", type=_sizes, default=(1, 1, 1), metavar="X[,Y[,Z]]", help="in threads")
    options.add_argument("--shared", type=int, default=0, metavar="BYTES", help="dynamic workgroup memory")
    options.add_argument("--arg", action="append", default=[], help="an argument, as above")
    options.add_argument("--expect", action="append", default=[], metavar="N=FILE.npy", help="what argument N must hold at the end")
    options.add_argument("--tolerance", type=float, default=0.0, help="relative error allowed in that")
    options.add_argument("--save", metavar="N=FILE.npy", action="append", default=[], help="write argument N at the end")
    options.add_argument("--seed", type=int, default=1, help="of random contents, and of the order of waves and lanes")
    options.add_argument("--orders", type=int, default=1, metavar="N", help="run in so many orders, and require the same results")
    options.add_argument("--trace", action="store_true", help="print every instruction")
    options.add_argument("--option", action="append", default=[], metavar="OPTION", help="for gpulower compile, such as --option=--fast")
    return options


def images(options: argparse.Namespace, folder: Path) -> dict[str, Path]:
    """The code objects to execute, by chip."""
    targets = options.target.split(",")
    if options.input.suffix in (".hsaco", ".co"):
        return dict.fromkeys(targets, options.input)
    from .run import file_name

    command = [str(options.gpulower), "compile", str(options.input), "--target", options.target, *options.option, "-o", f"{folder}/"]
    subprocess.run(command, check=True)
    found = {}
    for target in targets:
        made = [path for path in folder.iterdir() if path.name.endswith(file_name(target))]
        if len(made) != 1:
            raise ValueError(f"{options.input} made {len(made)} code objects for {target}; give a file with one gpu.module")
        found[target] = made[0]
    return found


def run(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    right = True
    try:
        with tempfile.TemporaryDirectory(prefix="gpulower-amd-") as folder:
            for target, path in images(options, Path(folder)).items():
                right &= _execute(options, target, path)
    except (Trap, ValueError, OSError, subprocess.CalledProcessError) as problem:
        print(f"{type(problem).__name__}: {problem}")
        return 1
    return 0 if right else 1


def _execute(options: argparse.Namespace, target: str, path: Path) -> bool:
    code = codeobject.read(path, target)
    kernels = list(code.kernels)
    name = options.kernel or (kernels[0] if len(kernels) == 1 else "")
    if name not in kernels:
        raise ValueError(f"--kernel has to name one of {', '.join(kernels)}")
    geometry = Geometry(options.grid, options.block, options.shared)
    given = parse_arguments(options.arg, np.random.default_rng(options.seed))
    first: dict[str, Array] = {}
    for order in range(options.orders):
        result = execute(code, name, geometry, given.buffers, given.values, seed=options.seed + order, trace=options.trace)
        first = first or result.outputs
        for key, array in result.outputs.items():
            if array.tobytes() != first[key].tobytes():
                print(f"{target}: {key} depends on the order of waves or lanes (order {order})")
                return False
    print(f"{name} on {code.target}: {result.instructions} instructions of waves")
    for key, array in first.items():
        print(f"{key}: {np.array2string(array, threshold=64)}")
    return _compare(options, first)


def _compare(options: argparse.Namespace, outputs: dict[str, Array]) -> bool:
    from .case import relative_error

    right = True
    for text in options.save:
        number, _, file = text.partition("=")
        np.save(file, outputs[f"argument {number}"])
    for text in options.expect:
        number, _, file = text.partition("=")
        error = relative_error(outputs[f"argument {number}"], np.load(file))
        print(f"argument {number}: relative error {error:.2e}, allowed {options.tolerance:.0e}")
        right &= error <= options.tolerance
    return right
