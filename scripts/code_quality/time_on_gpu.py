#!/usr/bin/env python3
"""Time the kernels of examples/, from several compilers, side by side on one NVIDIA GPU.

    time_on_gpu.py DIRECTORY [--only KERNEL ...] [--rounds N] [--against NAME] [--seed N]

DIRECTORY is what make.py wrote: variants.json and, for each variant, a folder of cubins. Each kernel of each variant is
checked first, against a reference in float64; a wrong result is a failure, and nothing is timed. Then all variants of a
case take turns, round by round, each with a CUDA graph of as many launches as take about a millisecond. Printed is the
median over the rounds for the variant that the others are compared with (--against), and for the others the median of
the ratios within a round, with the 10th and the 90th percentile.

Needs numpy, cupy and a driver. The exit status is 0 when every result is right.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys

import cupy as cp
import numpy as np
from cupyx.scipy.special import erf


class Case:
    """One launch. `arguments` holds scalars, arrays and plain sizes; `plain` picks what CUDA C++ takes."""

    def __init__(self, kernel, size, grid, block, memrefs, plain, out, expected, tolerance, start=None):
        self.kernel, self.size, self.grid, self.block = kernel, size, grid, block
        self.memrefs, self.plain = memrefs, plain
        self.out, self.expected, self.tolerance, self.start = out, expected, tolerance, start

    def arguments(self, variant):
        """The kernel's parameters in the order and the types that a variant wants them."""
        index = np.int32 if variant.get("index") == 32 else np.int64
        packed = []
        for argument in self.memrefs if variant["arguments"] == "memref" else self.plain:
            if isinstance(argument, int):
                packed.append(index(argument))
            elif not isinstance(argument, cp.ndarray):
                packed.append(argument)
            elif variant["arguments"] == "memref":
                # Allocated and aligned pointer, offset, sizes, strides.
                strides = [stride // argument.itemsize for stride in argument.strides]
                pointer = np.uint64(argument.data.ptr)
                numbers = (0, *argument.shape, *strides)
                packed += [pointer, pointer, *(index(number) for number in numbers)]
            else:
                packed.append(np.uint64(argument.data.ptr))
        return tuple(packed)

    def prepare(self):
        if self.start is None:
            self.out.fill(float("nan") if self.out.dtype.kind == "f" else -1)
        else:
            self.out[...] = self.start

    def error(self):
        """The relative error of what is in `out`; NaN when an element was forgotten."""
        expected = self.expected
        difference = cp.linalg.norm((self.out.astype(cp.float64) - expected).ravel())
        return float(difference / cp.maximum(cp.linalg.norm(expected.ravel()), 1e-300))


def ceil_div(a, b):
    return -(-a // b)


def normal(random, *shape, dtype=cp.float32):
    return random.standard_normal(shape, dtype=cp.float32).astype(dtype)


def saxpy(random):
    for n in (2**20, 2**26):
        a, x, start = np.float32(1.5), normal(random, n), normal(random, n)
        y = cp.empty_like(start)
        yield Case("saxpy", f"{n}", (ceil_div(n, 256),), (256,), [a, x, y], [a, x, y, n], y,
                   1.5 * x.astype(cp.float64) + start, 1e-6, start)


def gelu(random):
    for n, blocks in ((2**22, 2**14), (2**22, 1056), (2**26, 2**18), (2**26, 4224)):
        x = normal(random, n)
        y = cp.empty_like(x)
        wide = x.astype(cp.float64)
        yield Case("gelu", f"{n}, {blocks} blocks", (blocks,), (256,), [x, y], [x, y, n], y,
                   0.5 * wide * (1.0 + erf(wide / math.sqrt(2.0))), 1e-6)


ROWS = ((16384, 1024), (4096, 8192), (32768, 2000), (2048, 50257))


def softmax(random):
    for rows, cols in ROWS:
        x = normal(random, rows, cols)
        y = cp.empty_like(x)
        e = cp.exp(x.astype(cp.float64) - x.max(axis=1, keepdims=True))
        e /= e.sum(axis=1, keepdims=True)
        yield Case("softmax", f"{rows}x{cols}", (rows,), (256,), [x, y], [x, y, cols], y, e, 1e-6)


def layer_norm(random):
    for rows, cols in ROWS:
        x, gamma, beta = normal(random, rows, cols), normal(random, cols), normal(random, cols)
        y, eps = cp.empty_like(x), np.float32(1e-5)
        wide = x.astype(cp.float64)
        wide -= wide.mean(axis=1, keepdims=True)
        wide /= cp.sqrt((wide * wide).mean(axis=1, keepdims=True) + float(eps))
        wide *= gamma
        wide += beta
        yield Case("layer_norm", f"{rows}x{cols}", (rows,), (256,), [x, gamma, beta, eps, y],
                   [x, gamma, beta, eps, y, cols], y, wide, 1e-5)


def transpose(random):
    for rows, cols in ((2048, 2048), (8192, 8192), (8191, 4099)):
        x = normal(random, rows, cols)
        out = cp.empty((cols, rows), cp.float32)
        yield Case("transpose", f"{rows}x{cols}", (ceil_div(cols, 32), ceil_div(rows, 32)), (32, 8), [x, out],
                   [x, out, rows, cols], out, x.T.astype(cp.float64), 0.0)


def matmul(kernel, random, sizes, tile, block, dtype, tolerance):
    for m, n, k in sizes:
        a, b = normal(random, m, k, dtype=dtype), normal(random, k, n, dtype=dtype)
        c = cp.empty((m, n), cp.float32)
        yield Case(kernel, f"{m}x{n}x{k}", (ceil_div(n, tile), ceil_div(m, tile)), block, [a, b, c],
                   [a, b, c, m, n, k], c, a.astype(cp.float64) @ b.astype(cp.float64), tolerance)


def matmul_tiled(random):
    sizes = ((1024, 1024, 1024), (2048, 2048, 2048), (1025, 1023, 1031))
    return matmul("matmul_tiled", random, sizes, 16, (16, 16), cp.float32, 1e-5)


def matmul_subgroup_mma(random):
    sizes = ((1024, 1024, 1024), (2048, 2048, 2048), (1025, 1023, 1031))
    return matmul("matmul_subgroup_mma", random, sizes, 32, (128,), cp.float16, 1e-5)


def reduction(random):
    for n, blocks in ((2**22, 1056), (2**26, 1056), (2**26, 4224)):
        x = random.random(n, dtype=cp.float32)
        out = cp.zeros(1, cp.float32)
        yield Case("reduction", f"{n}, {blocks} blocks", (blocks,), (256,), [x, out], [x, out, n], out,
                   x.sum(dtype=cp.float64).reshape(1), 1e-5, 0.0)


def histogram(random):
    for n, blocks in ((2**22, 1056), (2**26, 1056), (2**26, 4224)):
        values = random.integers(-20, 300, n).astype(cp.int32)
        bins = cp.zeros(256, cp.int32)
        counted = values[(values >= 0) & (values < 256)]
        yield Case("histogram", f"{n}, {blocks} blocks", (blocks,), (256,), [values, bins], [values, bins, n], bins,
                   cp.bincount(counted, minlength=256).astype(cp.float64), 0.0, 0)


KERNELS = (saxpy, gelu, softmax, layer_norm, transpose, matmul_tiled, matmul_subgroup_mma, reduction, histogram)


def load(directory, variants, kernel):
    """The kernel of each variant that has it."""
    functions = {}
    for name in variants:
        for file in (directory / name / f"{kernel}.cubin", directory / name / "kernels.cubin"):
            if file.exists():
                functions[name] = cp.RawModule(path=str(file)).get_function(kernel)
                break
    return functions


def graph_of(case, function, arguments, launches):
    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for _ in range(launches):
            function(case.grid, case.block, arguments)
        return stream.end_capture()


def elapsed(graph, stream):
    """Milliseconds that one launch of a graph takes."""
    start, end = cp.cuda.Event(), cp.cuda.Event()
    start.record(stream)
    graph.launch(stream)
    end.record(stream)
    end.synchronize()
    return cp.cuda.get_elapsed_time(start, end)


def measure(case, functions, arguments, rounds):
    """Microseconds of each round, by variant."""
    cp.cuda.Device().synchronize()
    stream = cp.cuda.Stream(non_blocking=True)
    names = list(functions)
    first = graph_of(case, functions[names[0]], arguments[names[0]], 1)
    elapsed(first, stream)
    once = min(elapsed(first, stream) for _ in range(3))
    launches = max(1, min(200, round(1.0 / max(once, 1e-4))))
    graphs = {name: graph_of(case, functions[name], arguments[name], launches) for name in names}
    for name in names:
        for _ in range(3):
            elapsed(graphs[name], stream)
    times = {name: [] for name in names}
    for turn in range(rounds):
        shift = turn % len(names)
        for name in names[shift:] + names[:shift]:
            times[name].append(elapsed(graphs[name], stream) * 1e3 / launches)
    return times


def percentile(values, part):
    return float(np.percentile(values, part))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--against", default="nvcc")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    variants = json.loads((options.directory / "variants.json").read_text())
    unknown = set(options.only) - {kernel.__name__ for kernel in KERNELS}
    if unknown or options.against not in variants:
        sys.exit(f"no such kernel or variant: {', '.join(sorted(unknown)) or options.against}")
    others = [name for name in variants if name != options.against]
    device = cp.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"device {device}, driver API {cp.cuda.runtime.driverGetVersion()}, {options.rounds} rounds; "
          f"ratios to {options.against}: below 1 is faster")
    print(f"{'kernel':20}{'size':24}{options.against + ' us':>10}  " + "".join(f"{name:>22}" for name in others))

    wrong = 0
    ratios = {name: {} for name in others}
    for kernel in KERNELS:
        if options.only and kernel.__name__ not in options.only:
            continue
        functions = load(options.directory, variants, kernel.__name__)
        if options.against not in functions or len(functions) == 1:
            sys.exit(f"{kernel.__name__}: cubins are missing in {options.directory}")
        for case in kernel(cp.random.default_rng(options.seed)):
            arguments = {name: case.arguments(variants[name]) for name in functions}
            for name, function in functions.items():
                case.prepare()
                function(case.grid, case.block, arguments[name])
                cp.cuda.Device().synchronize()
                error = case.error()
                if not error <= case.tolerance:
                    print(f"{case.kernel:20}{case.size:24}WRONG: {name}: relative error {error:.2e}")
                    wrong += 1
            if wrong:
                continue
            times = measure(case, functions, arguments, options.rounds)
            base = times[options.against]
            line = f"{case.kernel:20}{case.size:24}{statistics.median(base):10.1f}  "
            for name in others:
                if name not in times:
                    line += f"{'-':>22}"
                    continue
                each = [mine / theirs for mine, theirs in zip(times[name], base)]
                ratios[name].setdefault(case.kernel, []).append(statistics.median(each))
                line += f"{statistics.median(each):8.3f} ({percentile(each, 10):.3f}-{percentile(each, 90):.3f})"
            print(line, flush=True)
    if wrong:
        print(f"{wrong} results are wrong")
        return 1
    for name in others:
        means = {kernel: statistics.geometric_mean(values) for kernel, values in ratios[name].items()}
        if means:
            print(f"{name}: geometric mean {statistics.geometric_mean(means.values()):.3f}; "
                  + ", ".join(f"{kernel} {mean:.3f}" for kernel, mean in means.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
