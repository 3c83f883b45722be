#!/usr/bin/env python3
"""Run the example kernels on an NVIDIA GPU and compare them with NumPy.

    examples.py run FOLDER [--only NAME ...] [--seed N] [--repeat N]

FOLDER holds one cubin per example, NAME.cubin, with the kernel NAME in it.
Every case gets fresh random inputs, sizes that are no multiple of any tile, and
outputs that start as NaN between guarded edges, so that neither an element which
the kernel forgets nor one too many can pass. The reference is computed in float64.

Needs numpy, cupy and a driver; nothing of gpulower. docs/lab/gpu-check.md says how
to read the table. The exit status is 0 when every kernel is right, 1 when one
is wrong or missing.
"""

import math
import zlib

import harness
from harness import memref

np = harness.need("numpy")
cp = None  # the references below are the AMD executor's, too: tests/amd/checks/examples.py


def ceil_div(a, b):
    return -(-a // b)


# --------------------------------------------------------------------------
# References, in float64.


def erf(x):
    # NumPy has no erf; math.erf is correct to the last bit or so.
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def reference_saxpy(a, x, y):
    return np.float64(a) * x.astype(np.float64) + y.astype(np.float64)


def reference_gelu(x):
    x = x.astype(np.float64)
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))


def reference_softmax(x):
    x = x.astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def reference_layer_norm(x, gamma, beta, eps):
    x = x.astype(np.float64)
    mean = x.mean(axis=1, keepdims=True)
    var = ((x - mean) ** 2).mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(var + np.float64(eps)) * gamma.astype(np.float64) + beta.astype(np.float64)


def reference_matmul(a, b):
    return a.astype(np.float64) @ b.astype(np.float64)


def reference_user_library(x):
    # examples/lib/scale_and_shift.ll
    return 3.0 * x.astype(np.float64) + 0.5


def reference_histogram(values):
    return np.bincount(values[(values >= 0) & (values < 256)], minlength=256).astype(np.int32)


# --------------------------------------------------------------------------
# Cases. One generator per kernel yields a `Case` for each size.


class Output:
    """A device array between two guards, so that a write past either end shows.

    Without `start` the array is filled with NaN before the checked launch; with
    it, for kernels that read what they write, with `start`.
    """

    GUARD = 64  # elements; keeps the array aligned to 256 bytes

    def __init__(self, shape, dtype, start=None):
        size = math.prod(shape)
        self.start = start
        self.buffer = cp.empty(size + 2 * self.GUARD, dtype)
        self.array = self.buffer[self.GUARD:self.GUARD + size].reshape(shape)

    def prepare(self):
        self.buffer.fill(float("nan") if self.buffer.dtype.kind == "f" else -1)
        if self.start is not None:
            self.array[...] = cp.asarray(self.start)

    def guards(self):
        """The bytes of both guards."""
        return self.buffer[:self.GUARD].get().tobytes() + self.buffer[-self.GUARD:].get().tobytes()


class Case:
    """One launch: what goes in, what should come out, how much work it is.

    `arguments` is a flat list of NumPy scalars, `tolerance` the largest relative
    error allowed (0: exact), `inputs` the device arrays to keep alive.
    """

    def __init__(self, size, grid, block, arguments, inputs, out, expected, tolerance,
                 bytes_moved=0, flops=0):
        self.size = size
        self.grid, self.block = grid, block
        self.arguments, self.inputs = arguments, inputs
        self.out, self.expected, self.tolerance = out, expected, tolerance
        self.bytes_moved, self.flops = bytes_moved, flops


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape, dtype=np.float32).astype(dtype)


def saxpy(rng):
    for n in (1, 255, 1_000_003, 64_000_001):
        a, x, y = np.float32(rng.standard_normal()), normal(rng, n), normal(rng, n)
        dx, out = cp.asarray(x), Output((n,), np.float32, start=y)
        yield Case(f"n={n}", (ceil_div(n, 256),), (256,), [a, *memref(dx), *memref(out.array)],
                   [dx], out, reference_saxpy(a, x, y), 1e-6, bytes_moved=12 * n)


def gelu(rng):
    # Not a single element: far below zero, 1 + erf keeps few digits in f32.
    for n, blocks in ((255, 1), (1_003, 2), (1_000_003, 1_024), (4_000_009, 2_048)):
        x = 3 * normal(rng, n)
        dx, out = cp.asarray(x), Output((n,), np.float32)
        yield Case(f"n={n}", (blocks,), (256,), [*memref(dx), *memref(out.array)],
                   [dx], out, reference_gelu(x), 1e-6, bytes_moved=8 * n)


def softmax(rng):
    for rows, cols in ((1, 1), (7, 31), (129, 1_001), (4_099, 4_097)):
        # Large values: without the subtraction of the maximum, exp overflows.
        x = 50 * normal(rng, rows, cols)
        dx, out = cp.asarray(x), Output((rows, cols), np.float32)
        yield Case(f"{rows}x{cols}", (rows,), (256,), [*memref(dx), *memref(out.array)],
                   [dx], out, reference_softmax(x), 5e-6, bytes_moved=8 * x.size)


def layer_norm(rng):
    eps = np.float32(1e-5)
    for rows, cols in ((1, 31), (7, 257), (129, 1_001), (4_099, 4_097)):
        # A mean far from zero: a one-pass variance would lose digits here.
        x = 5 + normal(rng, rows, cols)
        gamma, beta = normal(rng, cols), normal(rng, cols)
        dx, dg, db = cp.asarray(x), cp.asarray(gamma), cp.asarray(beta)
        out = Output((rows, cols), np.float32)
        yield Case(f"{rows}x{cols}", (rows,), (256,),
                   [*memref(dx), *memref(dg), *memref(db), eps, *memref(out.array)],
                   [dx, dg, db], out, reference_layer_norm(x, gamma, beta, eps), 5e-6,
                   bytes_moved=8 * x.size)


def transpose(rng):
    for rows, cols in ((1, 1), (33, 65), (1_023, 511), (8_191, 4_099)):
        x = normal(rng, rows, cols)
        dx, out = cp.asarray(x), Output((cols, rows), np.float32)
        yield Case(f"{rows}x{cols}", (ceil_div(cols, 32), ceil_div(rows, 32)), (32, 8),
                   [*memref(dx), *memref(out.array)], [dx], out, x.T, 0,
                   bytes_moved=8 * x.size)


def matmul(sizes, dtype, tile, block):
    """The matrix products differ in their sizes, element type, tile and block only."""

    def cases(rng):
        for m, k, n in sizes:
            a, b = normal(rng, m, k, dtype=dtype), normal(rng, k, n, dtype=dtype)
            da, db, out = cp.asarray(a), cp.asarray(b), Output((m, n), np.float32)
            # The reference takes the rounded inputs: only the sums differ, in f32.
            yield Case(f"{m}x{k}x{n}", (ceil_div(n, tile), ceil_div(m, tile)), block,
                       [*memref(da), *memref(db), *memref(out.array)],
                       [da, db], out, reference_matmul(a, b), 1e-5, flops=2 * m * k * n)

    return cases


ODD = ((1, 1, 1), (17, 33, 65), (129, 255, 127), (1_025, 1_023, 1_031))
ODD_BY_8 = ((1, 8, 8), (17, 40, 72), (129, 248, 120), (1_025, 1_032, 1_048))  # K, N: by 8


def histogram(rng):
    for n, blocks in ((1, 1), (1_003, 3), (16_000_003, 528)):
        # Some values lie outside 0 .. 255 and must not be counted.
        values = rng.integers(-20, 276, n, dtype=np.int32)
        # The kernel adds to the bins: start from something else than 0.
        start = rng.integers(0, 1_000, 256, dtype=np.int32)
        dv, out = cp.asarray(values), Output((256,), np.int32, start=start)
        yield Case(f"n={n}", (blocks,), (256,), [*memref(dv), *memref(out.array)],
                   [dv], out, reference_histogram(values) + start, 0, bytes_moved=4 * n)


def reduction(rng):
    for n, blocks in ((1, 1), (1_003, 2), (64_000_001, 528)):
        # Positive: the sum is not a small difference of large numbers.
        x = rng.random(n, dtype=np.float32)
        dx, out = cp.asarray(x), Output((1,), np.float32, start=np.float32(2))
        yield Case(f"n={n}", (blocks,), (256,), [*memref(dx), *memref(out.array)],
                   [dx], out, np.array([2.0 + x.sum(dtype=np.float64)]), 1e-5,
                   bytes_moved=4 * n)


def user_library(rng):
    for n in (1, 255, 1_000_003):
        x = normal(rng, n)
        dx, out = cp.asarray(x), Output((n,), np.float32)
        yield Case(f"n={n}", (ceil_div(n, 256),), (256,), [*memref(dx), *memref(out.array)],
                   [dx], out, reference_user_library(x), 1e-6, bytes_moved=8 * n)


CASES = {
    "saxpy": saxpy,
    "gelu": gelu,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "transpose": transpose,
    "matmul_tiled": matmul(ODD, np.float32, 16, (16, 16)),
    "matmul_subgroup_mma": matmul(ODD, np.float16, 32, (128,)),
    "matmul_nvgpu": matmul(ODD_BY_8, np.float16, 32, (128,)),
    "histogram": histogram,
    "reduction": reduction,
    "user_library": user_library,
}


# --------------------------------------------------------------------------
# Measuring and comparing.


def errors(actual, expected):
    """(‖actual − expected‖ / ‖expected‖, the largest |actual − expected|), NaN if any is."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    difference = actual - expected
    norm = np.linalg.norm(expected)
    relative = np.linalg.norm(difference) / norm if norm else np.linalg.norm(difference)
    return relative, np.abs(difference).max()


def is_right(relative, tolerance):
    # NaN compares false with everything, so a poisoned element fails here.
    return bool(relative <= tolerance)


def launch(kernel, case):
    kernel(case.grid, case.block, tuple(case.arguments))


def median_time(kernel, case, repeat):
    """The median time of one launch in microseconds, after three to warm up."""
    for _ in range(3):
        launch(kernel, case)
    times = []
    for _ in range(repeat):
        start, stop = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        launch(kernel, case)
        stop.record()
        stop.synchronize()
        times.append(1000 * cp.cuda.get_elapsed_time(start, stop))
    return float(np.median(times))


def check(checks, name, path, seed, repeat):
    """Run all cases of one kernel, and print a line for each."""
    kernel = cp.RawModule(path=str(path)).get_function(name)
    # Each kernel draws from its own stream: --only changes nobody's inputs.
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    for case in CASES[name](rng):
        case.out.prepare()
        guards = case.out.guards()
        launch(kernel, case)
        cp.cuda.Device().synchronize()
        relative, largest = errors(case.out.array.get(), case.expected)
        if case.out.guards() != guards:
            verdict = "wrote outside"
        elif not is_right(relative, case.tolerance):
            verdict = "wrong"
        else:
            verdict = ""
        time = median_time(kernel, case, repeat)
        if case.flops:
            rate = f"{case.flops / time / 1e3:9.1f} GFLOP/s"
        else:
            rate = f"{case.bytes_moved / time / 1e3:9.1f} GB/s"
        measured = f"{relative:10.2e} {largest:10.2e} {time:10.1f} {rate:18} {verdict}"
        checks.check(f"{name:20} {case.size}", not verdict, measured)


def run(chosen):
    global cp
    cp = harness.gpu()
    print(f"seed {chosen.seed}")
    checks = harness.Checks(width=37)
    print(f"{'':6} {'kernel':20} {'size':16} {'rel. error':>10} {'max error':>10} {'time [us]':>10} rate")
    for name in chosen.only:
        path = chosen.folder / f"{name}.cubin"
        if not path.is_file():
            checks.check(name, False, f"missing: {path}")
            continue
        try:
            check(checks, name, path, chosen.seed, chosen.repeat)
        except (cp.cuda.driver.CUDADriverError, cp.cuda.runtime.CUDARuntimeError) as error:
            # After a failed launch the context is often beyond use: stop here.
            checks.check(name, False, str(error))
            break
    return checks.status()


def options(parser):
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="NAME")
    parser.add_argument("--seed", type=int, default=np.random.SeedSequence().entropy % 2**32, help="repeat the inputs of an earlier run")
    parser.add_argument("--repeat", type=int, default=20, help="timed launches per case")


if __name__ == "__main__":
    harness.command_line(__doc__, run, options=options)
