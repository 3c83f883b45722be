#!/usr/bin/env python3
"""Programs of examples/app.mlir (two kernels) and of the kernels saxpy and softmax, exported by gpulower and finished by clang 16, 19
and 22 and by cc, each from the forms of an export, on a machine with an NVIDIA GPU.

    export.py make FOLDER [--target CHIP]     CUDA_HOME is the toolkit that finishes them
    export.py run FOLDER
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from pathlib import Path

import harness

UNITS = ("app", "saxpy", "softmax")
FORMS = [(f"clang-{clang}", form) for clang in (16, 19, 22) for form in ("obj", "ll", "bc")] + [("self", "obj")]


def release() -> str:
    """The one of CUDA."""
    (found,) = re.findall(r"release ([0-9.]+),", harness.made([harness.CUDA / "bin/ptxas", "--version"]))
    return str(found)


def make(chosen: argparse.Namespace) -> None:
    here, cuda = harness.HERE / "export", release()
    sources = {unit: (harness.ROOT / f"examples/{unit}.mlir").read_text() for unit in UNITS}
    for unit in ("saxpy", "softmax"):
        host = (here / f"{unit}_host.mlir").read_text()
        sources[unit] = f"module attributes {{gpu.container_module}} {{\n{sources[unit]}{host}}}\n"
    with tempfile.TemporaryDirectory() as work:
        keep = {"cwd": work, "env": {**os.environ, "CUDA_HOME": str(harness.CUDA), "CUDA_ROOT": str(harness.CUDA)}}
        for unit, text in sources.items():
            Path(work, f"{unit}.mlir").write_text(text)
        harness.made([os.environ.get("CC", "cc"), "-O1", "-c", here / "main.c", "-o", "main.o"], **keep)
        for finished, form in FORMS:
            options = ["--emit", "self"] if finished == "self" else ["--emit", form, "--finish-with", f"{finished},cuda-{cuda}"]
            commands = {}
            for unit in UNITS:
                export = [harness.GPULOWER, "export", f"{unit}.mlir", "--target", chosen.target, *options, "-o", f"{unit}.{form}"]
                commands[unit] = harness.made(export, **keep).rstrip("\n")
            name, path = f"{finished}-{form}", "-Wl,-rpath,/usr/local/cuda/lib64"
            # The commands make one program of each file; saxpy and softmax become one together, with the functions of main.c.
            harness.shell(f"{commands['app']} {path} -o {chosen.folder}/app-{name}", **keep)
            more = "-x none softmax.obj" if form == "obj" else f"-x ir softmax.{form} -x none"
            harness.shell(f"{commands['saxpy']} main.o {more} -lm {path} -o {chosen.folder}/math-{name}", **keep)


def run(chosen: argparse.Namespace) -> int:
    checks = harness.Checks("programs", 18)
    for program in sorted(chosen.folder.iterdir()):
        program.chmod(0o755)
        checks.expect(program.name, [program], timeout=60)
    return checks.status()


if __name__ == "__main__":
    harness.command_line(__doc__, run, make)
