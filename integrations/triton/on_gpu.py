"""Triton's kernels on an NVIDIA GPU: finished by Triton, and by gpulower in its place, with the results and both times.

    python on_gpu.py [KERNEL...]

needs torch, triton 3.6 or later and gpulower. Each kernel is compiled with empty caches, checked against numpy at a small size,
compared bit by bit at a large one, and timed in turn. Compilations are timed in processes of their own, those of one after those of
the other: what gpulower sets in a process (`gpulower.keep_freed_memory`) would be Triton's gain, too.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import torch
import triton
from common import finished_by
from launches import ON_GPU, Launch, difference, launches
from triton import knobs

DTYPES = {
    "*fp8e4nv": torch.float8_e4m3fn, "*fp16": torch.float16, "*bf16": torch.bfloat16, "*fp32": torch.float32,
    "*fp64": torch.float64, "*i8": torch.int8, "*i32": torch.int32, "*i64": torch.int64,
}  # fmt: skip


#: How many processes of each of the two compile a kernel: the median counts.
PROCESSES = 3

#: The argument for such a process.
COMPILE = "--compile"


class Side:
    """One kernel, compiled by one of the two."""

    def __init__(self, launch: Launch, who: str, folder: str) -> None:
        """Compiles it, and notes how long that took."""
        self.launch = launch
        self.who = who
        self.function = triton.jit(launch.case.function.fn)
        self.arguments = [self._argument(name, kind) for name, kind in launch.case.arguments.items()]
        self.options = {"num_warps": launch.case.warps, "num_stages": launch.case.stages}
        times: list[Any] = []
        knobs.compilation.listener = lambda **found: times.append(found["times"])
        with finished_by(who, folder):
            begin = time.perf_counter()
            self.kernel = self.function.warmup(*self.arguments, grid=launch.grid, **self.options)
            self.whole = time.perf_counter() - begin
            self.run()
            torch.cuda.synchronize()
        knobs.compilation.listener = None
        self.last = sum(duration for stage, duration in times[0].lowering_stages if stage in ("llir", "ptx", "cubin")) / 1e6

    def _argument(self, name: str, kind: Any) -> Any:
        if isinstance(kind, int):
            return kind
        value = self.launch.values[name]
        return torch.from_numpy(value).cuda().to(DTYPES[kind]) if kind.startswith("*") else value

    def run(self) -> None:
        """Launches it."""
        self.function[self.launch.grid](*self.arguments, **self.options)

    def outputs(self) -> dict[str, torch.Tensor]:
        """What it wrote."""
        names = list(self.launch.case.arguments)
        return {name: self.arguments[names.index(name)] for name in self.launch.outputs or self.launch.expected}


def wrong(side: Side) -> str:
    """What is not as numpy says."""
    for name, expected in side.launch.expected.items():
        off = difference(side.outputs()[name].double().cpu().numpy(), expected)
        tolerance = max(side.launch.tolerance, 0.06 if "fp8" in side.launch.case.name else 0)
        # Triton multiplies f32 in the tf32 format.
        tolerance = max(tolerance, 2e-3 if side.launch.case.name == "matmul_fp32" else 0)
        if not off <= tolerance:
            return f"{side.who}: {name} {off:.1g} off"
    return ""


def compile_times(who: str, names: tuple[str, ...], folder: str) -> None:
    """Prints how long one of the two takes for each kernel, and for what comes after TTGIR, as JSON. The first is compiled twice."""
    large = launches(False, names, ON_GPU)
    found: dict[str, tuple[float, float]] = {}
    for launch in [*large[:1], *large]:
        # Whoever checks the kernel says what is wrong.
        with contextlib.suppress(Exception):
            side = Side(launch, who, folder)
            found[launch.case.name] = side.whole, side.last
    print(json.dumps(found))


def times_in_processes(names: tuple[str, ...]) -> dict[str, dict[str, tuple[float, float]]]:
    """For each of the two the medians of each kernel, whole and from TTGIR."""
    found: dict[str, list[dict[str, tuple[float, float]]]] = {"triton": [], "gpulower": []}
    for _ in range(PROCESSES):
        for who, times in found.items():
            ran = subprocess.run([sys.executable, __file__, COMPILE, who, *names], check=True, stdout=subprocess.PIPE, text=True)
            times.append(json.loads(ran.stdout.splitlines()[-1]))

    def medians(times: list[dict[str, tuple[float, float]]], name: str) -> tuple[float, float]:
        whole, last = zip(*(one[name] for one in times), strict=True)
        return statistics.median(whole), statistics.median(last)

    everywhere = [name for name in found["triton"][0] if all(name in one for times in found.values() for one in times)]
    return {who: {name: medians(times, name) for name in everywhere} for who, times in found.items()}


def compare(
    small: Launch, large: Launch, times: dict[str, dict[str, tuple[float, float]]], folder: str
) -> tuple[bool, float, float, str]:
    """Whether all is right, the two ratios, and a line."""
    problems = [problem for who in ("triton", "gpulower") if (problem := wrong(Side(small, who, folder)))]
    own, ours = Side(large, "triton", folder), Side(large, "gpulower", folder)
    (own_whole, own_last), (our_whole, our_last) = (times[side.who][large.case.name] for side in (own, ours))
    pairs = [(one, ours.outputs()[name]) for name, one in own.outputs().items()]
    same = all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in pairs)
    if not same and large.case.name not in ("layer_norm_backward",):
        off = max(difference(a.double().cpu().numpy(), b.double().cpu().numpy()) for a, b in pairs)
        if not off <= max(small.tolerance, 1e-5):
            problems.append(f"{off:.1g} from Triton's own")
    runs: dict[str, list[float]] = {"triton": [], "gpulower": []}
    for _ in range(5):
        for side in (own, ours):
            runs[side.who].append(triton.testing.do_bench(side.run, warmup=10, rep=40, return_mode="median"))
    run = statistics.median(ours_ / own_ for own_, ours_ in zip(runs["triton"], runs["gpulower"], strict=True))
    compile_ratio = our_whole / own_whole
    line = (
        f"{large.case.name:<20} {'right' if not problems else 'WRONG: ' + '; '.join(problems):<7} {'same bits' if same else 'other bits':<10} "
        f"run {statistics.median(runs['triton']) * 1e3:9.1f} us x {run:5.3f}   compile {own_whole:6.3f} s x {compile_ratio:5.2f}   "
        f"from TTGIR {own_last:6.3f} s x {our_last / own_last:5.2f}   registers {own.kernel.n_regs} {ours.kernel.n_regs} "
        f"spills {own.kernel.n_spills} {ours.kernel.n_spills}"
    )
    return not problems, run, compile_ratio, line


def main(names: list[str]) -> int:
    """Prints a line for each kernel and the means."""
    triton.set_allocator(lambda size, *_: torch.empty(size, dtype=torch.int8, device="cuda"))
    os.environ["GPULOWER_CACHE"] = "off"
    folder = tempfile.mkdtemp()
    if names[:1] == [COMPILE]:
        compile_times(names[1], tuple(names[2:]), folder)
        shutil.rmtree(folder, ignore_errors=True)
        return 0
    print(f"triton {triton.__version__}, torch {torch.__version__}, {torch.cuda.get_device_name()}")
    if not hasattr(knobs.runtime, "add_stages_inspection_hook"):
        print("this release of Triton has no hook for stages: 3.6 or later is needed")
        return 1
    times = times_in_processes(tuple(names))
    failed, ratios, compiles = 0, [], []
    for small, large in zip(launches(True, tuple(names), ON_GPU), launches(False, tuple(names), ON_GPU), strict=True):
        try:
            right, run, compile_ratio, line = compare(small, large, times, folder)
        except Exception as error:
            right, line = False, f"{large.case.name:<20} FAILED: {type(error).__name__}: {str(error)[:300]}"
        else:
            ratios.append(run)
            compiles.append(compile_ratio)
        failed += not right
        print(line, flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    if ratios:
        mean = [math.exp(statistics.fmean(map(math.log, values))) for values in (ratios, compiles)]
        print(f"run x {mean[0]:.3f} in the geometric mean, {max(ratios):.3f} at worst; compile x {mean[1]:.2f}; {failed} wrong")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
