#!/usr/bin/env python3
"""The Python package on a machine with an NVIDIA GPU: launches with cupy, torch and cuda.core, each result compared.

    python.py make FOLDER --wheel WHEEL      where CUDA's tools are
    python.py run FOLDER                     where the GPU is: python3 with numpy, cupy and torch

FOLDER and ../site.tar.xz, the stripped package, are carried over: the test, and the kernels that it launches, compiled.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile

import harness


def make(chosen: argparse.Namespace) -> None:
    test = shutil.copy(harness.ROOT / "crates/gpulower-python/tests/test_gpu.py", chosen.folder)
    harness.pack_site(chosen)
    with tempfile.TemporaryDirectory() as work:
        environment = harness.unpacked_site(chosen.folder, work) | {"CUDA_HOME": str(harness.CUDA)}
        harness.made([sys.executable, test, "make", chosen.folder / "kernels.pickle"], env=environment)


def run(chosen: argparse.Namespace) -> int:
    harness.gpu()
    with tempfile.TemporaryDirectory() as work:
        test = [sys.executable, chosen.folder / "test_gpu.py", "run", chosen.folder / "kernels.pickle"]
        return subprocess.run(test, env=harness.unpacked_site(chosen.folder, work)).returncode


harness.command_line(__doc__, run, make, takes_wheel=True)
