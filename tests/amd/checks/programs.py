"""C programs at random, by csmith: on the host, and compiled for a chip and executed by one lane. What they compute has to be the same.

`cargo xtask amd -- programs --count 20 --target gfx942,gfx1100 --options "" -O0`; csmith is Debian's. No part of the tests.

clang makes device IR of a program, at -O0 without `optnone`, and gpulower compiles that.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Buffer, Pointer, execute
from amdexec.traps import Trap

LLVM = Path(os.environ.get("GPULOWER_LLVM_BIN", "/usr/lib/llvm-22/bin"))
SIZES = (
    "--max-funcs", "4", "--max-block-depth", "3", "--max-block-size", "3", "--max-expr-complexity", "5", "--max-array-len-per-dim", "5"
)  # fmt: skip
INCLUDE = ("-I", "/usr/include/csmith")
SLOTS = 4096

# In the place of csmith's own: a sum over all variables, of which each step is kept.
HEADER = """
#include <stdint.h>
#include <float.h>
#include <limits.h>
#define STATIC static
#define UNDEFINED(value) (value)
#define LOG_INDEX
#define LOG_EXEC
#define FUNC_NAME(name) (safe_##name)
#define assert(condition)
#define fabs __builtin_fabs
#define fabsf __builtin_fabsf
#include <safe_math.h>
static uint64_t *steps, count, crc32_context;
static void transparent_crc(uint64_t value, const char *name, int print) {
  steps[0] = ++count;
  if (count < SLOTS) steps[count] = value;
}
static void transparent_crc_bytes(const void *at, int size, const char *name, int print) {
  for (int i = 0; i < size; i++) transparent_crc(((const uint8_t *)at)[i], name, print);
}
static void crc32_gentab(void) {}
static void platform_main_begin(void) {}
static void platform_main_end(uint64_t sum, int print) {}
int program(void);
#ifdef __AMDGCN__
__attribute__((amdgpu_kernel)) void kernel(uint64_t *to) { steps = to; program(); }
#else
#include <stdio.h>
int main(void) {
  static uint64_t all[SLOTS];
  steps = all;
  program();
  return fwrite(all, sizeof all, 1, stdout) != 1;
}
#endif
#define main program
#define printf(...) ((void)0)
"""


def made(folder: Path, seed: int) -> tuple[Path, np.ndarray] | str:
    """A program, and what it computes on the host; or why there is none."""
    source = folder / "program.c"
    # It leaves a file where it runs.
    csmith = ["csmith", "--seed", str(seed), "--no-argc", *SIZES]
    text = subprocess.run(csmith, cwd=folder, capture_output=True, text=True, check=True).stdout
    source.write_text(text)
    (folder / "csmith.h").write_text(f"#define SLOTS {SLOTS}\n{HEADER}")
    program = folder / "program"
    subprocess.run([LLVM / "clang", "-w", "-O1", "-fwrapv", "-I", folder, *INCLUDE, source, "-o", program], check=True)
    try:
        output = subprocess.run([program], capture_output=True, timeout=2, check=True).stdout
    except subprocess.TimeoutExpired:
        return "takes too long"
    return source, np.frombuffer(output, np.uint64)


def compiled(gpulower: Path, source: Path, target: str, options: list[str]) -> Path | str:
    """The code object; or why there is none."""
    device, image = source.with_suffix(".ll"), source.with_suffix(".hsaco")
    words = [str(LLVM / "clang"), "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", "-w", "-fwrapv", "-nogpulib"]
    words += ["-ffreestanding", "-nostdlibinc", "-I", str(source.parent), *INCLUDE, "-S", "-emit-llvm", str(source), "-o", str(device)]
    # What -O0 makes of it, but for `optnone`, with which nothing would be optimised.
    subprocess.run([*words, "-O1", "-Xclang", "-disable-llvm-passes"], check=True)
    command = [str(gpulower), "compile", str(device), "--no-cache", "--target", target, *options, "-o", str(image)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return image if done.returncode == 0 else done.stderr.strip()


def check(gpulower: Path, seed: int, targets: list[str], settings: list[str], fuel: int) -> list[tuple[str, str]]:
    """(chip and setting, what came of it)."""
    with tempfile.TemporaryDirectory(prefix="gpulower-csmith-") as name:
        program = made(Path(name), seed)
        if isinstance(program, str):
            return [("host", program)]
        source, expected = program
        found = []
        for target in targets:
            for setting in settings:
                image = compiled(gpulower, source, target, setting.split())
                found.append((f"{target} {setting}", image if isinstance(image, str) else executed(image, target, expected, fuel)))
        return found


def executed(image: Path, target: str, expected: np.ndarray, fuel: int) -> str:
    code = codeobject.read(image, target)
    memory = Buffer("steps", np.zeros(SLOTS, np.uint64), writable=True)
    try:
        result = execute(code, "kernel", Geometry((1, 1, 1), (1, 1, 1)), [memory], [Pointer("steps")], fuel=fuel)
    except Trap as trap:
        return "takes too long" if "more than" in str(trap) else f"stopped: {trap}"
    different = np.flatnonzero(result.outputs["steps"] != expected)
    if not len(different):
        return "same"
    at = int(different[0])
    return f"DIFFERENT: step {at} is {result.outputs['steps'][at]:#x}, on the host {expected[at]:#x}"


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(prog="cargo xtask amd -- programs", description=__doc__)
    options.add_argument("--gpulower", type=Path, required=True)
    options.add_argument("--target", type=lambda text: text.split(","), default=["gfx942", "gfx1100"])
    options.add_argument("--options", nargs="+", default=["", "-O0"], help="settings of gpulower compile, each in quotation marks")
    options.add_argument("--seed", type=int, default=1, help="of the first program")
    options.add_argument("--count", type=int, default=20)
    options.add_argument("--fuel", type=int, default=300_000, help="instructions after which an execution is given up")
    options.add_argument("--processes", type=int, default=2)
    chosen = options.parse_args(arguments)
    counts: dict[str, int] = {}
    with ProcessPoolExecutor(chosen.processes) as pool:
        seeds = range(chosen.seed, chosen.seed + chosen.count)
        futures = [pool.submit(check, chosen.gpulower, seed, chosen.target, chosen.options, chosen.fuel) for seed in seeds]
        for seed, future in zip(seeds, futures, strict=True):
            for where, verdict in future.result():
                kind = verdict if verdict in ("same", "takes too long") else "different or stopped"
                counts[kind] = counts.get(kind, 0) + 1
                if kind not in ("same", "takes too long"):
                    print(f"{seed} {where}: {verdict}", flush=True)
    print(", ".join(f"{number} {kind}" for kind, number in counts.items()))
    return 0 if counts.keys() <= {"same", "takes too long"} and "same" in counts else 1
