#!/usr/bin/env python3
"""What a compilation costs by the kernel, as ratios within one run: the figures of docs/performance.md.

    scripts/measure_grain.py --gpulower PATH --cuda DIR [--before PATH] [--mlir-opt PATH] [--threads N]
                             [--kernels 1000] [--rounds 3] [--target sm_90] [--ptx-compiler ptxas] [--json FILE]

Needs Python 3.8, a gpulower program, and a CUDA toolkit (ptxas or nvPTXCompiler, and libdevice); no cargo. `--before` is another
gpulower, for the module of one kernel; without `--mlir-opt` its row is left out. Every cache is a new, empty directory, or off
(--no-cache), and the row says so. The two sides of a row take turns. Run it on an idle machine.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import re
import shutil
import statistics
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SPEC = importlib.util.spec_from_file_location("compare", HERE / "compare/compare.py")
COMPARE = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(COMPARE)

# (what, most or least that it may be)
GOALS = {
    "upstream": ("at most", 0.9),
    "scaling": ("at least", 12.0),
    "changed": ("at most", 3.0),
    "copies": ("at most", 1.0),
    "one": ("at most", 1.0),
    "memory": ("at most", 1.1),
}


def kernels_of(module):
    """The functions of a module of COMPARE.many_kernels."""
    return re.findall(r"  gpu\.func @.*?\n  }\n", module, re.S)


def module_of(functions):
    return "gpu.module @many {\n" + "\n".join(functions) + "}\n"


def renamed(function, suffix):
    name = re.search(r"@(\w+)\(", function).group(1)
    return function.replace(f"@{name}(", f"@{name}_{suffix}(")


class Measure:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.rows = []

    def write(self, name, text):
        path = self.work / name
        path.write_text(text)
        return path

    def gpulower(self, source, *words, program=None, threads=None, cache=None):
        """One run of the program; `cache` is a directory, None for none."""
        out = self.work / "out.cubin"
        out.unlink(missing_ok=True)
        command = [program or self.options.gpulower, "compile", source, "--target", self.options.target, "--emit", "cubin"]
        command += ["--cache-dir", cache] if cache else ["--no-cache"]
        command += ["-o", out, "-j", str(threads or self.options.threads), *words]
        if self.options.ptx_compiler:
            command += ["--ptx-compiler", self.options.ptx_compiler]
        run = COMPARE.run(command, {"CUDA_HOME": str(self.options.cuda)})
        run.bytes = out.read_bytes()
        return run

    def empty(self):
        return pathlib.Path(tempfile.mkdtemp(prefix="cache-", dir=self.work))

    def turns(self, *sides):
        """Each side once in a round, in turn; the runs of each."""
        runs = [[] for _ in sides]
        for index in range(self.options.rounds):
            order = list(range(len(sides)))
            for side in order[index % len(order):] + order[:index % len(order)]:
                runs[side].append(sides[side]())
        return runs

    def row(self, key, what, ours, other, value=lambda run: run.seconds, inverse=False):
        """The medians of both sides, their ratio, and the ratios of each round."""
        mine, theirs = ([value(run) for run in side] for side in (ours, other))
        pairs = [b / a if inverse else a / b for a, b in zip(mine, theirs)]
        ratio = statistics.median(pairs)
        how, goal = GOALS[key]
        met = ratio >= goal if how == "at least" else ratio <= goal
        self.rows.append({
            "what": what, "ratio": ratio, "low": min(pairs), "high": max(pairs), "goal": f"{how} {goal:g}", "met": met,
            "ours": statistics.median(mine), "other": statistics.median(theirs),
            "ours_cpu": statistics.median(run.cpu for run in ours), "other_cpu": statistics.median(run.cpu for run in other),
        })
        row = self.rows[-1]
        print(f"{what}: {ratio:.2f} ({min(pairs):.2f} to {max(pairs):.2f}), wanted {how} {goal:g}: {'met' if met else 'NOT MET'}"
              f"; {row['ours']:.3f} for {row['other']:.3f}; CPU {row['ours_cpu']:.2f} s for {row['other_cpu']:.2f} s", flush=True)

    def large(self):
        count, most = self.options.kernels, self.options.threads
        source = self.write("many.mlir", COMPARE.many_kernels(count))
        sides = [lambda: self.gpulower(source, threads=1), lambda: self.gpulower(source, threads=most)]
        if self.options.mlir_opt:
            sides.append(lambda: self.mlir_opt(source))
        one, several, *upstream = self.turns(*sides)
        if len({run.bytes for run in one + several}) != 1:
            sys.exit("the bytes depend on the number of threads")
        if upstream:
            self.row("upstream", f"{count} kernels to a cubin, no cache: gpulower -j1 to mlir-opt", one, upstream[0])
        self.row("scaling", f"the same, no cache: -j1 to -j{most}", several, one, inverse=True)
        self.row("memory", f"the same: memory of -j{most} to -j1, MiB", several, one, value=lambda run: run.memory)

    def mlir_opt(self, source):
        features = f"cubin-chip={self.options.target} cubin-features=+ptx80 cubin-format=bin opt-level=3"
        command = [self.options.mlir_opt, source, f"--gpu-lower-to-nvvm-pipeline={features}", "-o", self.work / "mlir-opt.mlir"]
        path = f"{self.options.cuda}/bin:{os.environ['PATH']}"
        return COMPARE.run(command, {"CUDA_ROOT": str(self.options.cuda), "PATH": path})

    def changed(self):
        count = self.options.kernels
        functions = kernels_of(COMPARE.many_kernels(count))
        before = self.write("before.mlir", module_of(functions))
        middle = count // 2
        functions[middle] = re.sub(r"arith\.constant \d+\.0 : f32", "arith.constant 12345.0 : f32", functions[middle], count=1)
        after, alone = self.write("after.mlir", module_of(functions)), self.write("alone.mlir", module_of([functions[middle]]))

        def one_changed():
            cache = self.empty()
            self.gpulower(before, cache=cache)
            run = self.gpulower(after, cache=cache)
            shutil.rmtree(cache)
            return run

        changed, single = self.turns(one_changed, lambda: self.gpulower(alone))
        if changed[0].bytes != self.gpulower(after).bytes:
            sys.exit("the bytes depend on the cache")
        self.row("changed", f"one of {count} kernels changed, the others in the cache on disk: to that kernel alone, no cache",
                 changed, single)

    def copies(self):
        count = self.options.kernels
        different = kernels_of(COMPARE.many_kernels(count // 10))
        all_of_them = [renamed(function, copy) for copy in range(10) for function in different]
        copies = self.write("copies.mlir", module_of(all_of_them))
        few = self.write("few.mlir", COMPARE.many_kernels(count * 11 // 100))
        for cached in (True, False):
            cache = self.empty if cached else lambda: None
            ours, other = self.turns(lambda cache=cache: self.gpulower(copies, cache=cache()), lambda cache=cache: self.gpulower(few, cache=cache()))
            state = "empty cache" if cached else "no cache"
            self.row("copies", f"{count} kernels, {count - count // 10} of them copies, {state}: to {count * 11 // 100} kernels",
                     ours, other)

    def one(self):
        if not self.options.before:
            return
        source = self.write("one.mlir", COMPARE.many_kernels(1))
        rounds, self.options.rounds = self.options.rounds, max(15, self.options.rounds)
        ours, before = self.turns(lambda: self.gpulower(source), lambda: self.gpulower(source, program=self.options.before))
        self.options.rounds = rounds
        self.row("one", "a module of one kernel, no cache: to the program before", ours, before)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpulower", type=pathlib.Path, required=True)
    parser.add_argument("--cuda", type=pathlib.Path, required=True)
    parser.add_argument("--before", type=pathlib.Path)
    parser.add_argument("--mlir-opt", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--kernels", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--ptx-compiler")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", choices=("large", "changed", "copies", "one"))
    options = parser.parse_args()
    options.gpulower, options.cuda = options.gpulower.absolute(), options.cuda.absolute()
    print(f"{options.threads} threads; load {os.getloadavg()[0]:.1f}; {time.strftime('%Y-%m-%d')}", flush=True)
    with tempfile.TemporaryDirectory(prefix="grain-") as work:
        measure = Measure(options, pathlib.Path(work))
        # What is made once for each toolkit is made now.
        measure.gpulower(measure.write("warm.mlir", COMPARE.many_kernels(2)))
        for part in options.only or ("one", "copies", "changed", "large"):
            getattr(measure, part)()
        if options.json:
            options.json.write_text(json.dumps(measure.rows, indent=1))


if __name__ == "__main__":
    main()
