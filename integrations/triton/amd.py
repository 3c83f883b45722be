"""Triton's kernels for AMD chips, finished by gpulower, executed by the interpreter of `tests/amd` against numpy.

    TRITON_CODEGEN=gpulower python amd.py [gfx942,gfx1100 [KERNEL...]]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Argument, Buffer, Pointer, execute
from amdexec.traps import Trap
from common import compiled
from launches import Launch, difference, launches

NUMBERS = {"i32": np.int32, "i64": np.int64, "fp32": np.float32}


def run(launch: Launch, target: str, folder: Path) -> dict[str, Any]:
    """What the outputs are after a launch."""
    kernel = compiled(launch.case, target)
    path = folder / "kernel.hsaco"
    path.write_bytes(kernel.asm["hsaco"])
    outputs = set(launch.outputs) | set(launch.expected) | ({"lock"} & set(launch.values))
    buffers, arguments = [], []
    for name, kind in launch.case.arguments.items():
        if isinstance(kind, int):
            continue
        value = launch.values[name]
        if kind.startswith("*"):
            buffers.append(Buffer(name, value, writable=name in outputs))
            arguments.append(Pointer(name))
        else:
            arguments.append(NUMBERS[kind](value).tobytes())
    # Triton's two pointers to memory of its own, which these kernels do not need.
    hidden: list[Argument] = [bytes(8), bytes(8)]
    wave = 64 if target.startswith("gfx9") else 32
    geometry = Geometry(launch.grid, (launch.case.warps * wave, 1, 1), kernel.metadata.shared)
    code = codeobject.read(path, target)
    result = execute(code, kernel.metadata.name, geometry, buffers, arguments + hidden, fuel=100_000_000)
    return {**result.outputs, "instructions": result.instructions}


def check(launch: Launch, outputs: dict[str, Any]) -> str:
    """What is wrong, if anything is."""
    for name, expected in launch.expected.items():
        off = difference(outputs[name], expected)
        if not off <= launch.tolerance:
            return f"{name} is {off:.2g} off, and {launch.tolerance:.2g} is allowed"
    if launch.case.name == "dropout":
        out, x = outputs["out"], launch.values["x"]
        kept = out != 0
        if not (np.array_equal(out[kept], (x * 2)[kept]) and 0.3 < kept.mean() < 0.7):
            return "what is kept is not x / (1 - p), or not about half"
    if launch.case.name == "normal_numbers" and not (abs(outputs["out"].mean()) < 0.4 and 0.7 < outputs["out"].std() < 1.3):
        return "the numbers are not of a standard normal distribution"
    return ""


def main(targets: list[str], names: list[str]) -> int:
    """Prints a line for each kernel, and gives how many are wrong."""
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for target in targets:
            for launch in launches(True, tuple(names)):
                try:
                    outputs = run(launch, target, Path(folder))
                    problem = check(launch, outputs)
                except Trap as trap:
                    outputs, problem = {}, f"stopped: {trap}"
                wrong += bool(problem)
                print(f"{target:<8} {launch.case.name:<20} {problem or 'right'}, {outputs.get('instructions', 0)} instructions", flush=True)
    return wrong


if __name__ == "__main__":
    arguments = sys.argv[1:] or ["gfx942,gfx1100"]
    sys.exit(min(main(arguments[0].split(","), arguments[1:]), 1))
