#!/usr/bin/env python3
"""Compilers that others wrote, with gpulower under them, on a machine with an NVIDIA GPU: results, and times beside their own.

    integrations.py make FOLDER --wheel WHEEL    after `cargo xtask test integrations`
    integrations.py run FOLDER                   where the GPU is: python3 with numpy, cupy, torch, triton

FOLDER and ../site.tar.xz, the stripped package, are carried over: Triton's kernels, numba-cuda-mlir's MLIR, xDSL, and the tensor
compiler, whose program GPULOWER_TENSOR names. Any of these folders may be left out. Nothing is downloaded there. numba-cuda-mlir is
compared with itself where it is installed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import harness

PACKAGES = ["triton", "numba", "xdsl"]
# What xDSL is and needs.
MODULES = ["xdsl", "immutabledict", "ordered_set", "typing_extensions.py"]


def make(chosen: argparse.Namespace) -> None:
    environment = harness.ROOT / ".toolkit/integrations"
    for package in PACKAGES:
        shutil.rmtree(chosen.folder / package, ignore_errors=True)
        without = shutil.ignore_patterns("__pycache__", "test_*", "*.md")
        shutil.copytree(harness.ROOT / "integrations" / package, chosen.folder / package, ignore=without)
    variables = {"CUDA_HOME": str(harness.CUDA), "LD_LIBRARY_PATH": str(harness.CUDA / "lib"), "PYTHONDONTWRITEBYTECODE": "1"}
    numba = chosen.folder / "numba"
    harness.made([environment / "bin/python", numba / "on_gpu.py", "make", numba], env=os.environ | variables)
    (packages,) = environment.glob("lib/python3*/site-packages")
    harness.pack_site(chosen)
    modules = chosen.folder / "modules"
    shutil.rmtree(modules, ignore_errors=True)
    modules.mkdir()
    harness.made(["cp", "-r", *(packages / name for name in MODULES), modules])
    for cache in list(modules.rglob("__pycache__")):
        shutil.rmtree(cache)
    if program := os.environ.get("GPULOWER_TENSOR"):
        tensor = chosen.folder / "tensor"
        tensor.mkdir(exist_ok=True)
        shutil.copy(harness.ROOT / "integrations/tensor/on_gpu.py", tensor)
        harness.pack(Path(program), tensor / "gpulower-tensor")


def run(chosen: argparse.Namespace) -> int:
    harness.gpu()
    checks = harness.Checks("integrations", 14)
    with tempfile.TemporaryDirectory() as work:
        environment = harness.unpacked_site(chosen.folder, work)
        tensor = Path(work) / "gpulower-tensor"
        if (chosen.folder / "tensor").is_dir():
            harness.unpacked(chosen.folder / f"tensor/{tensor.name}.xz", tensor.parent)
        commands: dict[str, list[harness.Word]] = {
            "triton": [chosen.folder / "triton/on_gpu.py"],
            "numba": [chosen.folder / "numba/on_gpu.py", "run", chosen.folder / "numba"],
            "xdsl": ["-c", "import saxpy; saxpy.run()"],
            "tensor": [chosen.folder / "tensor/on_gpu.py", tensor],
        }
        for name, command in commands.items():
            if not (chosen.folder / name).is_dir():
                print(f"absent {name}")
                continue
            print(f"== {name}", flush=True)
            paths = f"{chosen.folder / name}:{environment['PYTHONPATH']}:{chosen.folder / 'modules'}"
            status = subprocess.run([sys.executable, *command], env=environment | {"PYTHONPATH": paths}).returncode
            checks.check(name, status == 0, f"exit status {status}" if status else "")
    return checks.status()


harness.command_line(__doc__, run, make, takes_wheel=True)
