#!/usr/bin/env python3
"""Programs that clang 22's libomptarget runs on an NVIDIA GPU: clang's own `#pragma omp target` regions without a device runtime
(`ompx_bare`) beside a kernel of gpulower on the same device pointers, and examples/app.mlir.

    openmp.py make FOLDER [--target CHIP]
    openmp.py run FOLDER                      on the GPU, and nothing of them on the host

CUDA_HOME: a toolkit with nvlink, of CUDA 12 for chips before sm_100. OPENMP: a folder with links libomptarget.so and libomp.so, and
what they need.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import harness
from export import release


def make(chosen: argparse.Namespace) -> None:
    folder, cuda = chosen.folder, harness.CUDA
    tests = harness.ROOT / "crates/gpulower-cli/tests/cli"
    (folder / "lib").mkdir(exist_ok=True)
    if not (libraries := list(Path(os.environ.get("OPENMP", "")).glob("lib*.so*"))):
        sys.exit("OPENMP names no folder with libomptarget.so and libomp.so")
    harness.made(["cp", "-d", *libraries, folder / "lib"])
    path = f"{cuda}/bin:{os.environ['PATH']}"
    keep = {"cwd": folder, "env": {**os.environ, "CUDA_HOME": str(cuda), "CUDA_ROOT": str(cuda), "PATH": path}}

    def export(source: Path, output: str) -> str:
        options = ["--kind", "openmp", "--target", chosen.target, "--finish-with", f"clang-22,cuda-{release()}"]
        return harness.made([harness.GPULOWER, "export", source, *options, "-o", output], **keep).splitlines()[-1]

    link = "-lomptarget -Llib"
    export(tests / "openmp_regions.mlir", "ours.o")
    clang = f"clang-22 -O1 -fopenmp --offload-arch={chosen.target} --cuda-path={cuda} -DCOUNT=1000003 -nogpulib"
    harness.shell(f"{clang} -DBARE -c {tests}/openmp_regions.c -o regions.o", **keep)
    harness.shell(f"{clang} regions.o ours.o {link} -o regions-bare", **keep)
    harness.shell(f"{export(harness.ROOT / 'examples/app.mlir', 'app.o')} {link}", **keep)
    for left in folder.glob("*.o"):
        left.unlink()


def run(chosen: argparse.Namespace) -> int:
    checks, libraries = harness.Checks("programs", 18), chosen.folder / "lib"
    # libomptarget opens libcuda.so, and containers may have libcuda.so.1 alone.
    path = os.pathsep.join([os.environ.get("PATH", ""), "/sbin", "/usr/sbin"])
    known = subprocess.run([shutil.which("ldconfig", path=path) or "true", "-p"], capture_output=True, text=True).stdout
    if found := re.search(r"libcuda\.so\.1 .*=> (.*)", known):
        (libraries / "libcuda.so").unlink(missing_ok=True)
        (libraries / "libcuda.so").symlink_to(found[1])
    variables = {"LD_LIBRARY_PATH": str(libraries), "OMP_TARGET_OFFLOAD": "MANDATORY", "LIBOMPTARGET_INFO": "16"}
    for name in ("regions-bare", "app"):
        program = chosen.folder / name
        program.chmod(0o755)
        checks.expect(name, [program], env=os.environ | variables, timeout=60)
    return checks.status()


harness.command_line(__doc__, run, make)
