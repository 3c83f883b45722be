#!/usr/bin/env python3
"""Measure every operation of MLIR's math dialect on an NVIDIA GPU, in units in the last place.

    accuracy.py make FOLDER [--target CHIP]                       where gpulower and CUDA's libdevice are
    accuracy.py run FOLDER [--seed N] [--only OPERATION ...]      where the GPU is

`make` writes a kernel for each operation on f16, bf16, f32 and f64, or on i8 to i64, and compiles them to one
cubin for CHIP. It fails if MLIR has an operation that is unknown here. `run` launches
each of them on random numbers, random bit patterns and special values (on all values, for one argument of 16
bits), and compares with a reference of higher precision: float64 for f16, bf16 and f32; for f64 the 80 bits of
x86's long double, mpmath for erf and erfc, fractions for fma. It prints the largest error of each operation and
type, and ends with 1 if one is larger than its bound, a special value is wrong, or a byte beside the output changed.

The error counts from the exact result, so that 0.5 is the best that rounding can do. `run` needs numpy, cupy,
mpmath and a driver. GPULOWER names the program gpulower, CUDA_HOME the toolkit.
"""

import fractions
import math
import os
import re
import sys

import harness

try:
    import numpy as np
except ImportError:
    np = None  # `make` does without.

# Largest errors of f32 and of f64, in ULP from the correctly rounded result, as the appendix "Mathematical Functions" of NVIDIA's
# CUDA C Programming Guide (that of CUDA 11) states them for libdevice's functions. `None` is an operation whose result is exact, or rounded correctly.
UNARY = {
    "absf": None, "ceil": None, "floor": None, "round": None, "roundeven": None, "trunc": None, "sqrt": (0, 0),
    "acos": (3, 1), "acosh": (4, 2), "asin": (4, 2), "asinh": (3, 2), "atan": (2, 2), "atanh": (3, 2), "cbrt": (1, 1),
    "cos": (2, 1), "cosh": (2, 1), "erf": (2, 2), "erfc": (4, 4), "exp": (2, 1), "exp2": (2, 1), "expm1": (1, 1),
    "log": (1, 1), "log10": (2, 1), "log1p": (1, 1), "log2": (1, 1), "rsqrt": (2, 1), "sin": (2, 1), "sinh": (3, 1),
    "tan": (4, 2), "tanh": (2, 1),
}
BINARY = {"atan2": (3, 2), "copysign": None, "powf": (8, 2)}
TERNARY = {"fma": (0, 0)}
# gpulower's own integer power: up to the third, two roundings; beyond, one, and a second where the result is subnormal.
LARGEST_POWER = 40
OTHER = {"sincos": (2, 1), "fpowi": (1, 1), "clampf": None}
CLASSIFICATION = ["isfinite", "isinf", "isnan", "isnormal"]
INTEGER_UNARY = ["absi", "ctlz", "ctpop", "cttz"]
INTEGER_BINARY = ["ipowi"]
BOUNDS = UNARY | BINARY | TERNARY | OTHER | dict.fromkeys(CLASSIFICATION)

FLOATS = ["f16", "bf16", "f32", "f64"]
INTEGERS = ["i8", "i16", "i32", "i64"]
# Bits of the significand, smallest and largest exponent.
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127), "f32": (24, -126, 127), "f64": (53, -1022, 1023)}


# --------------------------------------------------------------------------
# The kernels.


def kernel(operation, kind):
    """An operation as MLIR: its inputs, then its outputs, are memrefs of one element per thread."""
    operands, results = [kind], [kind]
    text = f"%r0 = math.{operation} %v0 : {kind}"
    if operation in BINARY or operation in INTEGER_BINARY:
        operands, text = [kind] * 2, f"%r0 = math.{operation} %v0, %v1 : {kind}"
    elif operation in TERNARY:
        operands, text = [kind] * 3, f"%r0 = math.{operation} %v0, %v1, %v2 : {kind}"
    elif operation == "clampf":
        operands, text = [kind] * 3, f"%r0 = math.clampf %v0 to [%v1, %v2] : {kind}"
    elif operation == "fpowi":
        operands, text = [kind, "i32"], f"%r0 = math.fpowi %v0, %v1 : {kind}, i32"
    elif operation == "sincos":
        results, text = [kind] * 2, f"%r0, %r1 = math.sincos %v0 : {kind}"
    elif operation in CLASSIFICATION:
        results, text = ["i8"], f"%t = math.{operation} %v0 : {kind}\n      %r0 = arith.extui %t : i1 to i8"
    inputs = "".join(f", %in{i}: memref<?x{t}>" for i, t in enumerate(operands))
    outputs = ", ".join(f"%out{i}: memref<?x{t}>" for i, t in enumerate(results))
    loads = "\n      ".join(f"%v{i} = memref.load %in{i}[%i] : memref<?x{t}>" for i, t in enumerate(operands))
    stores = "\n      ".join(f"memref.store %r{i}, %out{i}[%i] : memref<?x{t}>" for i, t in enumerate(results))
    return f"""  gpu.func @{operation}_{kind}({outputs}{inputs}) kernel {{
    %c0 = arith.constant 0 : index
    %n = memref.dim %out0, %c0 : memref<?x{results[0]}>
    %i = gpu.global_id x
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {{
      {loads}
      {text}
      {stores}
    }}
    gpu.return
  }}
"""


def check_complete():
    """Fails if MLIR's list of operations is not the one above."""
    path = harness.LLVM.parent / "include/mlir/Dialect/Math/IR/MathOps.td"
    if not path.is_file():
        sys.exit(f"no {path}, which lists MLIR's operations: run `cargo xtask setup`, or set GPULOWER_LLVM_BIN")
    known = set(BOUNDS) | set(INTEGER_UNARY) | set(INTEGER_BINARY)
    listed = set(re.findall(r'^def Math_\w+ *: *\w+<"(\w+)"', path.read_text(), re.MULTILINE))
    if listed != known:
        sys.exit(f"{path} and this script differ in {sorted(listed ^ known)}")


def make(chosen):
    check_complete()
    kernels = [kernel(operation, kind) for kind in FLOATS for operation in BOUNDS]
    kernels += [kernel(operation, kind) for kind in INTEGERS for operation in INTEGER_UNARY + INTEGER_BINARY]
    source = chosen.folder / "math.mlir"
    source.write_text("gpu.module @math {\n" + "".join(kernels) + "}\n")
    options = ["--target", chosen.target, "--emit", "cubin", "-o", chosen.folder / "math.cubin"]
    harness.made([harness.GPULOWER, "compile", source, *options], env={"CUDA_HOME": str(harness.CUDA)} | os.environ)


# --------------------------------------------------------------------------
# Numbers of each type, kept as their bits.


class Format:
    """A floating-point type: its bits as NumPy holds them, and its values in a wider type that holds each exactly."""

    def __init__(self, kind):
        self.kind = kind
        self.precision, self.least, self.most = FORMATS[kind]
        self.bits = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}[kind]
        self.wide = np.longdouble if kind == "f64" else np.float64

    def values(self, bits):
        with np.errstate(invalid="ignore"):
            if self.kind == "bf16":
                return (bits.astype(np.uint32) << 16).view(np.float32).astype(self.wide)
            return bits.view({"f16": np.float16, "f32": np.float32, "f64": np.float64}[self.kind]).astype(self.wide)

    def encode(self, values):
        """The bits of values, rounded somehow: these are inputs."""
        with np.errstate(all="ignore"):
            if self.kind == "bf16":
                return (np.asarray(values).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            kind = {"f16": np.float16, "f32": np.float32, "f64": np.float64}[self.kind]
            return np.asarray(values).astype(kind).view(self.bits)

    def all(self):
        return np.arange(65536, dtype=np.uint32).astype(np.uint16)

    def special(self):
        """Zeros, infinities, NaN, the ends of the normal and of the subnormal numbers, and what functions turn at."""
        fraction = self.precision - 1
        one = (1 - self.least) << fraction
        infinity = (self.most - self.least + 2) << fraction
        patterns = [0, 1, 2, (1 << fraction) - 1, 1 << fraction, (1 << fraction) + 1, one - 1, one, one + 1]
        patterns += [infinity - 1, infinity, infinity + (1 << (fraction - 1))]
        # Around 0.5, 1.5, 2, 2.5, 3, 10, the largest number that has a fraction, and the first that has none.
        near = self.encode(np.array([0.5, 1.5, 2, 2.5, 3, 10, 2.0**self.precision, 2.0 ** (self.precision - 1),
                                     np.pi / 4, np.pi / 2, np.pi, 2 * np.pi, 100.5, 709.7, 88.7, 745.1, 104.0, 1e5]))
        patterns += [int(bits) + offset for bits in near for offset in (-1, 0, 1)]
        positive = np.array(patterns, dtype=np.uint64)
        sign = np.uint64(1 << (8 * np.dtype(self.bits).itemsize - 1))
        return np.concatenate([positive, positive | sign]).astype(self.bits)

    def random_bits(self, rng, count):
        return rng.integers(0, 1 << (8 * np.dtype(self.bits).itemsize), count, dtype=self.bits)

    def random_values(self, rng, count):
        """Values that functions are used on: of all sizes up to 16, of those up to 1000, and close to 1 and -1."""
        parts = [rng.uniform(-16, 16, count), rng.standard_normal(count) * 2.0 ** rng.integers(-20, 11, count),
                 rng.choice([-1.0, 1.0], count) * (1 + rng.standard_normal(count) * 2.0 ** rng.integers(-30, 0, count))]
        return self.encode(np.choose(rng.integers(0, 3, count), parts))

    def ulps(self, found, exact):
        """The distance of results from exact ones, in units in the last place of the exact ones. What cannot be measured in
        them (NaN where there is a number, a wrong sign of zero) is infinitely wrong."""
        with np.errstate(all="ignore"):
            _, exponent = np.frexp(np.abs(exact))
            exponent = np.clip(exponent - 1, self.least, self.most)
            unit = np.ldexp(self.wide(1), exponent - (self.precision - 1))
            # Infinity stands where the next number would be, were there one.
            end = np.ldexp(self.wide(1), self.most + 1)
            error = np.abs(np.clip(found, -end, end) - np.clip(exact, -end, end)) / unit
        wrong = np.isnan(found) != np.isnan(exact)
        wrong |= (exact == 0) & (found == 0) & (np.signbit(found) != np.signbit(exact))
        error[np.isnan(found) & np.isnan(exact)] = 0
        error[wrong] = np.inf
        return error.astype(np.float64)


def bound(operation, kind):
    """The largest error that passes."""
    stated = BOUNDS[operation]
    if stated is None:
        return 0.0
    # A result next to the correctly rounded one is up to 1.5 from the exact one; the references have errors of their own.
    if kind == "f64":
        return stated[1] + 0.505
    if kind == "f32":
        return stated[0] + 0.50001
    if operation == "fma":
        # An instruction of its own, rounded once; the reference, in float64, may be rounded.
        return 0.50001
    # Computed in f32, and rounded once more.
    return 0.5 + (stated[0] + 0.5) * 2.0 ** (FORMATS[kind][0] - FORMATS["f32"][0])


# --------------------------------------------------------------------------
# References, on the wide type.


def by_mpmath(name):
    mpmath = harness.need("mpmath")
    mpmath.mp.prec = 120
    function = getattr(mpmath, name)

    def one(value):
        if np.isnan(value):
            return np.longdouble(np.nan)
        # mpmath fails for numbers that are too large, and the result is the same from much smaller ones on.
        result = function(mpmath.mpf(float(np.clip(value, -1e6, 1e6))))
        high = float(result)
        # -0 is no number of mpmath's.
        if result == 0:
            return np.longdouble(np.copysign(0.0, value) if value == 0 else 0.0)
        return np.longdouble(high) if np.isinf(high) else np.longdouble(high) + np.longdouble(float(result - mpmath.mpf(high)))

    return lambda values: np.array([one(value) for value in values], dtype=np.longdouble)


def by_math(name):
    return lambda values: np.vectorize(getattr(math, name), otypes=[np.float64])(values)


def round_away(x):
    whole = np.trunc(x)
    return np.copysign(whole + np.copysign(np.where(np.abs(x - whole) >= 0.5, 1, 0), x), x)


def fma_f64(a, b, c):
    """Rounded correctly, from fractions."""
    with np.errstate(all="ignore"):
        result = (a * b + c).astype(np.longdouble)

    def exact(x, y, z):
        total = fractions.Fraction(x) * fractions.Fraction(y) + fractions.Fraction(z)
        try:
            return float(total)
        except OverflowError:
            return np.inf if total > 0 else -np.inf

    # Where the sum is zero, or a number is not finite, the sign and the special values of the formula hold.
    for index in np.flatnonzero(np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (result != 0)):
        result[index] = exact(float(a[index]), float(b[index]), float(c[index]))
    return result


def references(kind):
    """The functions, each from wide arrays to a list of wide arrays."""
    single = {
        "absf": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
        "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2,
        "expm1": np.expm1, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
        "round": round_away, "roundeven": np.rint, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh,
        "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
        "atan2": np.arctan2, "copysign": np.copysign, "powf": np.power, "fma": lambda a, b, c: a * b + c,
        "fpowi": lambda x, n: np.power(x, n.astype(x.dtype)),
        "clampf": lambda x, low, high: np.where(np.isnan(x), x, np.maximum(np.minimum(x, high), low)),
    }
    for name in ("erf", "erfc"):
        single[name] = by_mpmath(name) if kind == "f64" else by_math(name)
    if kind == "f64":
        single["fma"] = fma_f64
    table = {name: (lambda *values, function=function: [function(*values)]) for name, function in single.items()}
    table["sincos"] = lambda x: [np.sin(x), np.cos(x)]
    return table


def classify(operation, form, bits):
    fraction = form.precision - 1
    exponent = (bits.astype(np.uint64) >> np.uint64(fraction)) & np.uint64(form.most - form.least + 2)
    infinite = exponent == form.most - form.least + 2
    fraction_bits = bits.astype(np.uint64) & np.uint64((1 << fraction) - 1)
    return {
        "isfinite": ~infinite, "isinf": infinite & (fraction_bits == 0), "isnan": infinite & (fraction_bits != 0),
        "isnormal": ~infinite & (exponent != 0),
    }[operation].astype(np.uint8)


# --------------------------------------------------------------------------
# Inputs.

SIZE = 1_000_003
# The references in Python are slow.
SMALL = 20_011


def inputs(operation, form, rng):
    """Arrays of bits, of an odd size."""
    count = SMALL if form.kind == "f64" and operation in ("erf", "erfc", "fma") else SIZE
    narrow = np.dtype(form.bits).itemsize == 2

    def mixed(number):
        half = number // 2
        return np.concatenate([form.random_values(rng, half), form.random_bits(rng, number - half)])

    special = form.special()
    if operation in UNARY or operation in CLASSIFICATION or operation == "sincos":
        first = form.all() if narrow else np.concatenate([special, mixed(count - len(special))])
        return [np.append(first, first[:1]) if len(first) % 2 == 0 else first]
    if operation == "fpowi":
        exponents = np.concatenate([np.arange(-LARGEST_POWER, LARGEST_POWER + 1), [-(2**31), 2**31 - 1]])
        # Of larger powers, those of numbers so close to 1 that the result is usually a finite one.
        near = form.encode(1 + rng.standard_normal(count) * 2.0 ** rng.integers(-form.precision, 0, count))
        with np.errstate(all="ignore"):
            most = form.most / np.abs(np.log2(np.abs(form.values(near)).astype(np.float64)))
        large = np.clip(np.nan_to_num(most, posinf=2**31 - 1), 0, 2**31 - 1) * rng.uniform(-1, 1, count)
        first = np.concatenate([np.repeat(special, len(exponents)), mixed(count), near])
        powers = np.concatenate([np.tile(exponents, len(special)), rng.integers(-LARGEST_POWER, LARGEST_POWER + 1, count),
                                 large.astype(np.int64)])
        return [first, powers.astype(np.int32)]
    if operation == "powf":
        # Powers that are neither infinite nor zero: the exponent is chosen for the base.
        base = np.abs(form.values(form.random_values(rng, count))) + form.wide(2.0**-20)
        with np.errstate(all="ignore"):
            power = rng.uniform(form.least, form.most, count) / np.log2(base)
        pairs = [form.encode(base), form.encode(power.astype(np.float64))]
    elif operation == "clampf":
        ends = np.sort(np.stack([form.values(form.random_values(rng, count)) for _ in range(2)]), axis=0)
        return [np.resize(np.concatenate([special, mixed(count - len(special))]), count), *(form.encode(end) for end in ends)]
    elif operation == "fma":
        factors = [form.random_values(rng, count) for _ in range(2)]
        product = -form.values(factors[0]) * form.values(factors[1])
        # Half of the sums cancel all but the last bits.
        addend = np.where(rng.integers(0, 2, count) == 0, form.encode(product.astype(np.float64)), form.random_values(rng, count))
        few = special[:: max(1, len(special) // 24)]
        cross = np.meshgrid(few, few, few)
        return [np.concatenate([a, b.ravel()]) for a, b in zip([*factors, addend], cross)]
    else:
        pairs = [mixed(count), rng.permutation(mixed(count))]
    cross = np.meshgrid(special, special)
    return [np.concatenate([a, b.ravel()]) for a, b in zip(pairs, cross)]


def integer_inputs(operation, kind, rng):
    bits = int(kind[1:])
    whole = np.dtype(f"int{bits}")
    ends = np.array([0, 1, -1, 2, -2, 3, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), 10, -10], dtype=whole)
    sizes = rng.integers(0, bits, SIZE).astype(whole)
    first = rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), SIZE, dtype=whole) >> sizes
    if operation in INTEGER_UNARY:
        return [np.concatenate([ends, first])]
    exponents = rng.integers(-5, 40, SMALL).astype(whole)
    cross = np.meshgrid(ends, ends)
    return [np.concatenate([cross[0].ravel(), first[:SMALL]]), np.concatenate([cross[1].ravel(), exponents])]


def integer_reference(operation, kind, values):
    bits = int(kind[1:])
    mask = (1 << bits) - 1

    def power(base, exponent):
        if exponent >= 0:
            return pow(base, exponent, 1 << bits)
        return {1: 1, -1: (-1) ** (exponent % 2)}.get(base, 0)

    function = {
        "absi": abs, "ctlz": lambda x: bits - (x & mask).bit_length(), "ctpop": lambda x: (x & mask).bit_count(),
        "cttz": lambda x: ((x & -x) & mask).bit_length() - 1 if x else bits, "ipowi": power,
    }[operation]
    results = [function(*arguments) & mask for arguments in zip(*(array.tolist() for array in values))]
    return np.array(results, dtype=np.uint64).astype(f"uint{bits}")


# --------------------------------------------------------------------------
# On the GPU.


class Guarded:
    """Device memory for results: every byte is poison before the launch, and there is more of it on both sides."""

    POISON, GUARD = 0xCD, 256

    def __init__(self, count, dtype):
        self.bytes = count * np.dtype(dtype).itemsize
        self.dtype = dtype
        cp = harness.need("cupy")
        self.buffer = cp.full(self.bytes + 2 * self.GUARD, self.POISON, dtype=cp.uint8)
        self.array = self.buffer[self.GUARD : self.GUARD + self.bytes].view(dtype)

    def is_whole(self):
        edges = [self.buffer[: self.GUARD], self.buffer[self.GUARD + self.bytes :]]
        return all(bool((edge == self.POISON).all()) for edge in edges)


def launch(module, name, arrays, kinds):
    """The results of a kernel; a message if it wrote beside them."""
    size = arrays[0].size
    cp = harness.need("cupy")
    sources = [cp.asarray(array) for array in arrays]
    outputs = [Guarded(size, kind) for kind in kinds]
    harness.launch(module.get_function(name), (-(-size // 256),), (256,), *(output.array for output in outputs), *sources)
    if not all(output.is_whole() for output in outputs):
        sys.exit(f"{name} wrote beside its output")
    return [cp.asnumpy(output.array) for output in outputs]


def measure(module, operation, form, table, rng):
    """The largest error, and where it is."""
    arrays = inputs(operation, form, rng)
    name = f"{operation}_{form.kind}"
    if operation in CLASSIFICATION:
        (found,) = launch(module, name, arrays, [np.uint8])
        error = np.where(found == classify(operation, form, arrays[0]), 0.0, np.inf)
        results, exact = [found], [classify(operation, form, arrays[0])]
        errors = [error]
    else:
        results = launch(module, name, arrays, [form.bits] * (2 if operation == "sincos" else 1))
        results = [form.values(result) for result in results]
        values = [array if array.dtype == np.int32 else form.values(array) for array in arrays]
        with np.errstate(all="ignore"):
            exact = table[operation](*values)
        errors = [form.ulps(result, reference) for result, reference in zip(results, exact)]
    which = int(np.argmax([error.max() for error in errors]))
    index = int(np.argmax(errors[which]))
    shown = [array[index] if array.dtype == np.int32 else form.values(array[index : index + 1])[0] for array in arrays]
    where = f"{', '.join(map(str, shown))}: {results[which][index]} instead of {exact[which][index]}"
    return float(errors[which][index]), where, arrays[0].size


def run_floats(checks, module, rng, only):
    print("largest error in ULP (bound)")
    print(f"{'':6} {'operation':12}" + "".join(f"{kind:>22}" for kind in FLOATS))
    count = 0
    tables = {kind: references(kind) for kind in FLOATS}
    for operation in BOUNDS:
        if only and operation not in only:
            continue
        cells, wrong = [], []
        for kind in FLOATS:
            error, where, size = measure(module, operation, Format(kind), tables[kind], rng)
            limit = bound(operation, kind)
            count += size
            cells.append(f"{error:.5f} ({limit:.5g})")
            if not error <= limit:
                wrong.append(f"{operation} {kind}: {error} ULP, the bound is {limit}: {where}")
        checks.check(operation, not wrong, "\n".join(["".join(f"{cell:>22}" for cell in cells), *wrong]))
    return count


def run_integers(checks, module, rng, only):
    count = 0
    print(f"\n{'':6} {'operation':12}" + "".join(f"{kind:>10}" for kind in INTEGERS))
    for operation in INTEGER_UNARY + INTEGER_BINARY:
        if only and operation not in only:
            continue
        cells, wrong = [], []
        for kind in INTEGERS:
            values = integer_inputs(operation, kind, rng)
            (found,) = launch(module, f"{operation}_{kind}", values, [f"uint{kind[1:]}"])
            exact = integer_reference(operation, kind, values)
            count += found.size
            bad = np.flatnonzero(found != exact)
            cells.append("exact" if not bad.size else f"{bad.size} wrong")
            if bad.size:
                at = bad[0]
                given = ", ".join(str(array[at]) for array in values)
                wrong.append(f"{operation} {kind}: {given}: {found[at]} instead of {exact[at]}")
        checks.check(operation, not wrong, "\n".join(["".join(f"{cell:>10}" for cell in cells), *wrong]))
    return count


def run(chosen):
    seed, only = chosen.seed, chosen.only
    if np.finfo(np.longdouble).nmant < 63:
        sys.exit("the references for f64 need x86's long double, and this machine's is no wider than f64")
    unknown = set(only) - set(BOUNDS) - set(INTEGER_UNARY) - set(INTEGER_BINARY)
    if unknown:
        sys.exit(f"there is no operation {', '.join(sorted(unknown))}")
    module = harness.gpu().RawModule(path=str(chosen.folder / "math.cubin"))
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    checks = harness.Checks("operations", 12)
    print(f"{run_floats(checks, module, rng, only) + run_integers(checks, module, rng, only)} results")
    return checks.status()


def options(parser):
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--only", nargs="+", default=[])


if __name__ == "__main__":
    harness.command_line(__doc__, run, make, options)
