#!/usr/bin/env python3
"""Runs the GPU checks of the folder that this lies in, which `cargo xtask gpu make` made, on this machine's NVIDIA GPU.

    python3 main.py [PART ...]

A line for each part; what the parts print is in LOGS (the folder `logs` here, if that variable is not set). The exit status
is 0 when every part is right. Needs a driver, and Python with numpy, cupy and mpmath; the parts `run`, `session` and `differ`, which
compile, need a CUDA toolkit as well, `python` and `integrations` torch and Triton.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from harness import HERE, Checks, Word, unpacked

CHECKS = "gpulower-checks"
# Each part: what it is about, what checks it, and what it needs here.
PARTS = {
    "examples": ("the kernels of examples/, against NumPy", "examples.py", "examples"),
    "fatbins": ("the same from fat binaries", "examples.py", "fatbins"),
    "lowering": ("what gpulower lowers by itself", "lowering.py", "lowering"),
    "subgroups": ("shuffles, scans, the last block of a grid", "subgroups.py", "subgroups"),
    "math": ("every operation of the math dialect, in ULP", "accuracy.py", "math"),
    "small-numbers": ("expressions at random, all values of 16 bits", "small_numbers.py", "small-numbers"),
    "containers": ("which image of a fat binary the driver takes", "containers.py", "containers"),
    "link": ("device linking", "link.py", "link"),
    "runtime": ("loading and launching", CHECKS, "runtime"),
    "run": ("whole programs", "run.py", "run"),
    "session": ("sessions, and MLIR's operations for newer chips", CHECKS, f"{CHECKS}.xz"),
    "differ": ("kernels at random, against an interpretation", "differ.py", "differ"),
    "export": ("programs that clang and cc finished", "export.py", "export"),
    "openmp": ("clang's own regions beside exported kernels", "openmp.py", "openmp"),
    "python": ("the Python package with cupy, torch, cuda.core", "python.py", "python"),
    "integrations": ("Triton, numba-cuda-mlir, xDSL, the tensor crate", "integrations.py", "integrations"),
}

# Sessions are asked whether memory is in use that was not before: with an arena of malloc's for each of 16 threads, each of which
# keeps what it once needed, 10,000 kernels added 40 MiB, less with each thousand; with one they add 5.
ONE_ARENA = {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}


def run(part: str, log: Path) -> tuple[int, list[str]]:
    """The exit status, and the lines that were printed."""
    _, by, needs = PARTS[part]
    with log.open("w") as file:
        try:
            command: list[Word] = [sys.executable, HERE / by, "run", HERE / needs]
            if by == CHECKS:
                # The program takes the folder that it needs, where it needs more than itself.
                command = [unpacked(HERE / f"{CHECKS}.xz", HERE), part, *([HERE / needs] if needs == part else [])]
            environment = os.environ | (ONE_ARENA if part == "session" else {})
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, cwd=HERE, env=environment, start_new_session=True)
            status = ended(process)
        except OSError as error:
            status = 1
            print(error, file=file)
    return status, log.read_text(errors="replace").splitlines() or [""]


def ended(process: subprocess.Popen[bytes]) -> int:
    """The exit status; 124 after half an hour. Nothing that it started stays on the GPU when others are checked."""
    try:
        return process.wait(1800)
    except subprocess.TimeoutExpired:
        return 124
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def main(wanted: list[str]) -> int:
    if wanted == ["--list"]:
        for part, (what, by, _) in PARTS.items():
            print(f"{part:<14} {what:<48} {f'crates/{CHECKS}/src/{part}/' if by == CHECKS else f'scripts/gpu/{by}'}")
        return 0
    if unknown := [part for part in wanted if part not in PARTS]:
        sys.exit(f"there is no part {', '.join(unknown)}: `main.py --list` names them")
    logs = Path(os.environ.get("LOGS", HERE / "logs"))
    logs.mkdir(parents=True, exist_ok=True)
    parts = Checks("parts", 14)
    for part in wanted or PARTS:
        if not (HERE / PARTS[part][2]).exists():
            print(f"absent {part}: there is no {PARTS[part][2]} here; 'make' said why")
            continue
        log = logs / f"{part}.txt"
        status, lines = run(part, log)
        text = lines[-1] if status == 0 else "\n".join([f"exit status {status}; the end of {log}:", *lines[-12:]])
        parts.check(part, status == 0, text)
    return parts.status()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
