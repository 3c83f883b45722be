#!/usr/bin/env python3
"""Checks `gpulower run` on an NVIDIA GPU.

    run.py make FOLDER [--target CHIP]    where gpulower and mlir-opt are
    run.py run FOLDER                     where the GPU is

`make` fills FOLDER with the program gpulower, stripped and compressed, with the programs of scripts/gpu/run/, and with two of them as
MLIR's own pipeline lowers them for CHIP. `run` needs libstdc++, libz, libzstd and the driver; and ptxas, or the driver compiles PTX.
GPULOWER names the program gpulower, GPULOWER_LLVM_BIN the folder of mlir-opt.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
from pathlib import Path
from typing import Any

import harness


def make(chosen: argparse.Namespace) -> None:
    folder, chip, programs = chosen.folder, chosen.target, harness.HERE / "run"
    (folder / "chip").write_text(chip)
    for source in [harness.ROOT / "examples/app.mlir", *programs.glob("*.mlir")]:
        shutil.copy(source, folder)
    # A number that is not 0; the program fills its matrices from it.
    text = (harness.ROOT / "crates/gpulower-checks/src/session/tma_wgmma.mlir").read_text()
    (folder / "tma_wgmma.mlir").write_text(text.replace("constant SEED", f"constant {random.randint(1, 32768)}"))

    def lower(text: str, *passes: str) -> str:
        return harness.made([harness.LLVM / "mlir-opt", *passes], input=text)

    pipeline = f"--gpu-lower-to-nvvm-pipeline=cubin-chip={chip} cubin-features=+ptx80 cubin-format=isa"
    lowered = lower((programs / "registered.mlir").read_text(), pipeline)
    (folder / "lowered_by_mlir.mlir").write_text(lowered)
    # MLIR 22 does not lower launches that have tokens already.
    tasks = lower((programs / "tasks.mlir").read_text().split("\nfunc.func @tokens")[0], "-gpu-kernel-outlining")
    kernels = f"gpu.module(strip-debuginfo,convert-gpu-to-nvvm),nvvm-attach-target{{chip={chip} features=+ptx80}}"
    tasks = lower(tasks, f"--pass-pipeline=builtin.module({kernels})")
    host = "gpu-async-region convert-scf-to-cf gpu-to-llvm gpu-module-to-binary=format=isa async-to-async-runtime \
        async-runtime-ref-counting convert-async-to-llvm convert-func-to-llvm convert-arith-to-llvm convert-cf-to-llvm \
        reconcile-unrealized-casts"
    (folder / "tasks_lowered_by_mlir.mlir").write_text(lower(tasks, *(f"-{name}" for name in host.split())))
    harness.made(["cc", "-shared", "-fPIC", "-O1", "-o", folder / "prints.so", programs / "prints.c"])
    harness.pack(harness.GPULOWER, folder / "gpulower")


def run(chosen: argparse.Namespace) -> int:
    folder, chip, checks = chosen.folder, (chosen.folder / "chip").read_text(), harness.Checks()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        gpulower = harness.unpacked(folder / "gpulower.xz", work)

        def expect(what: str, program: str, *options: harness.Word, **wanted: Any) -> None:
            checks.expect(what, [gpulower, "run", folder / f"{program}.mlir", *options], **wanted)

        def refused(what: str, text: str, program: str, *options: harness.Word) -> None:
            expect(what, program, *options, status=1, text=text)

        for program in ("app", "memory", "registered", "clusters", "tensor_map", "tasks"):
            expect(f"{program} for the device", program)
            expect(f"{program} for {chip}", program, "--target", chip)
        # What sm_90 does not have: the device's own target is sm_90a. The programs count the elements that are wrong.
        if chip == "sm_90":
            for program in ("aligned_tma", "aligned_gemm", "aligned_gemm_dynamic"):
                expect(f"{program} for the device", program, "--shared-libs", folder / "prints.so", text="wrong elements of")
            expect("TMA and wgmma for the device", "tma_wgmma", printed="0")
            refused("TMA and wgmma for sm_90", "not supported on sm_90", "tma_wgmma", "--target", chip)
        # A toolkit without anything in it.
        (work / "empty").mkdir()
        expect(f"{chip} with PTX alone", "app", "--target", chip, "--cuda", work / "empty")
        expect("lowered by MLIR", "lowered_by_mlir")
        expect("tasks that hand tokens on", "tasks", "--entry", "tokens")
        refused("a task that fails", "mgpuMemAlloc: ", "tasks", "--entry", "stops")
        expect("tasks lowered by MLIR", "tasks_lowered_by_mlir")
        refused("a kernel for another chip", "sm_100a", "app", "--target", "sm_100a")
        refused("a fault in a kernel", "gpu.launch_func: ", "fault")
        refused("a box that is too large", "mgpuTensorMapEncodeTiledMemref: ", "tensor_map", "--entry", "badly")
        large = "gpu.launch_func: kernel nothing: a block of 4096 x 1 x 1 threads"
        refused("too many threads", large, "too_many_threads")
        refused("too much memory", "mgpuMemAlloc: ", "too_much_memory")
        refused("no such device", "there is no device 99", "no_such_device")
        refused("no such device from the command line", "there is no device 99", "app", "--device", "99")
    return checks.status()


harness.command_line(__doc__, run, make)
