#!/usr/bin/env python3
"""Compares kernels at random with an interpretation of them, on an NVIDIA GPU (`gpulower-checks differ gpu`, docs/lab/differential.md).

    differ.py make FOLDER                             where CUDA's libdevice is; ../gpulower-checks.xz is made by `cargo xtask gpu make`
    differ.py run FOLDER [-- --seed S --count N ...]  where the GPU is: the options of `differ gpu`

`run` needs libstdc++, libz, libffi, the driver and a ptxas, which is looked for in CUDA_HOME, in PATH and in /usr/local/cuda. The exit
status is 0 when nothing differs.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import harness

LIBDEVICE = Path("nvvm/libdevice/libdevice.10.bc")


def make(chosen: argparse.Namespace) -> None:
    shutil.copy(harness.CUDA / LIBDEVICE, chosen.folder)


def run(chosen: argparse.Namespace) -> int:
    places = [os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/bin", os.environ.get("PATH", ""), "/usr/local/cuda/bin"]
    ptxas = shutil.which("ptxas", path=os.pathsep.join(places))
    if not ptxas:
        sys.exit("there is no ptxas in CUDA_HOME, PATH or /usr/local/cuda")
    with tempfile.TemporaryDirectory() as name:
        # A toolkit of the ptxas that is here and the libdevice that came along.
        work = Path(name)
        program = harness.unpacked(chosen.folder.parent / "gpulower-checks.xz", work)
        for folder in ("bin", LIBDEVICE.parent):
            (work / "cuda" / folder).mkdir(parents=True)
        (work / "cuda/bin/ptxas").symlink_to(ptxas)
        shutil.copy(chosen.folder / LIBDEVICE.name, work / "cuda" / LIBDEVICE)
        # Sixteen threads that allocate have a memory of their own each otherwise, and do not give it back.
        environment = {**os.environ, "CUDA_HOME": f"{work}/cuda", "MALLOC_ARENA_MAX": "16"}
        print(*chosen.options, flush=True)
        return subprocess.run([program, "differ", "gpu", *chosen.options], env=environment).returncode


def options(parser: argparse.ArgumentParser) -> None:
    fresh = ["--seed", str(random.getrandbits(32)), "--count", "2000", "--seconds", "60"]
    parser.add_argument("options", nargs="*", default=fresh)


harness.command_line(__doc__, run, make, options)
