#!/usr/bin/env python3
"""Random expressions of integers of 8 to 64 bits, or of small floats, for every value of 16 bits, on an NVIDIA GPU.

    small_numbers.py make FOLDER [--target sm_90] [--seed 1] [--count 6400] [--threads N]    # so many of integers, and of floats
    small_numbers.py run FOLDER                                 # where the GPU is: numpy and cupy
    small_numbers.py host [--floats] [--seed 1] ...             # the LLVM IR, on this machine's processor
    small_numbers.py print [--floats] [--seed 1]                # the first module

Each expression is a few operations of LLVM IR on two numbers of 16 bits: every value of one, and one other for each. LLVM's
and ptxas' folds of small numbers are what it is about: what the sign of a part of a register is, where it wraps, what a comparison
with NaN is, and how two halves of a register are computed with. The machine code is compared with the arithmetic of numpy
and ml_dtypes. `make` needs these, and a CUDA toolkit for gpulower, which GPULOWER names. What differs is printed as LLVM IR.
A folder has sums of the expected results alone: what memory held, where it differs, is written beside the machine code.
"""

import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import harness

np = harness.need("numpy")
try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None  # `run` does without.

X = np.arange(65536, dtype=np.int64)
Y = (X * 40503 + 12345) & 0xFFFF
IN_MODULE = 64

BINARY = ["add", "sub", "mul", "and", "or", "xor", "smin", "smax", "umin", "umax", "uadd.sat", "usub.sat", "sadd.sat", "ssub.sat"]
BY_CONSTANT = ["shl", "lshr", "ashr", "sdiv", "udiv", "srem", "urem", "fshl", "fshr"]
UNARY = ["neg", "not", "abs", "ctpop", "ctlz", "bswap", "bitreverse"]
COMPARISONS = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


# What numpy's int64 computes of 64 bits.
OF_64 = ["add", "sub", "mul", "and", "or", "xor", "smin", "smax", "shl", "ashr", "neg", "not", "abs", "eq", "ne", "slt", "sge"]


def signed(value, bits):
    """What the low bits say as a number with a sign."""
    if bits == 64:
        return value
    value = value & ((1 << bits) - 1)
    return np.where(value >> (bits - 1) != 0, value - (1 << bits), value)


def unsigned(value, bits):
    return value if bits == 64 else value & ((1 << bits) - 1)


def quotient(a, b):
    """Rounded towards zero, as LLVM's."""
    return np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))


def computed(name, bits, a, b):
    """The low bits of a result are its value; the others are anything."""
    sa, sb, ua, ub = signed(a, bits), signed(b, bits), unsigned(a, bits), unsigned(b, bits)
    least, most, all_ones = -(1 << (bits - 1)), (1 << (bits - 1)) - 1, (1 << bits) - 1
    results = {
        "add": lambda: ua + ub, "sub": lambda: ua - ub, "mul": lambda: sa * sb, "and": lambda: ua & ub, "or": lambda: ua | ub,
        "xor": lambda: ua ^ ub, "smin": lambda: np.minimum(sa, sb), "smax": lambda: np.maximum(sa, sb),
        "umin": lambda: np.minimum(ua, ub), "umax": lambda: np.maximum(ua, ub),
        "uadd.sat": lambda: np.minimum(ua + ub, all_ones), "usub.sat": lambda: np.maximum(ua - ub, 0),
        "sadd.sat": lambda: np.clip(sa + sb, least, most), "ssub.sat": lambda: np.clip(sa - sb, least, most),
        "shl": lambda: ua << ub, "lshr": lambda: ua >> ub, "ashr": lambda: sa >> ub,
        "sdiv": lambda: quotient(sa, sb), "udiv": lambda: ua // ub, "srem": lambda: sa - sb * quotient(sa, sb), "urem": lambda: ua % ub,
        "fshl": lambda: (ua << ub) | (ua >> (bits - ub)), "fshr": lambda: (ua >> ub) | (ua << (bits - ub)),
        "neg": lambda: -sa, "not": lambda: ~ua, "abs": lambda: np.abs(sa),
        "ctpop": lambda: sum((ua >> at) & 1 for at in range(bits)),
        "ctlz": lambda: bits - np.vectorize(int.bit_length, otypes=[np.int64])(ua),
        "bswap": lambda: sum(((ua >> at) & 0xFF) << (bits - 8 - at) for at in range(0, bits, 8)),
        "bitreverse": lambda: sum(((ua >> at) & 1) << (bits - 1 - at) for at in range(bits)),
        "eq": lambda: ua == ub, "ne": lambda: ua != ub, "slt": lambda: sa < sb, "sle": lambda: sa <= sb, "sgt": lambda: sa > sb,
        "sge": lambda: sa >= sb, "ult": lambda: ua < ub, "ule": lambda: ua <= ub, "ugt": lambda: ua > ub, "uge": lambda: ua >= ub,
    }
    return np.asarray(results[name]()).astype(np.int64)


class Expression:
    """Lines of LLVM IR, and what each value is."""

    def __init__(self, rng):
        self.rng, self.lines, self.values, self.intrinsics = rng, [], [("%x", 16, X), ("%y", 16, Y)], set()
        for _ in range(rng.randint(2, 6)):
            self.step()
        name, bits, value = self.values[-1]
        self.result = self.to(name, bits, value, 32, rng.choice(["sext", "zext"]))

    def new(self, text, bits, value):
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        self.values.append((name, bits, value))
        return name, bits, value

    def to(self, name, bits, value, wanted, extension):
        if bits == wanted:
            return name, bits, value
        if bits > wanted:
            return self.new(f"trunc i{bits} {name} to i{wanted}", wanted, value)
        wide = signed(value, bits) if extension == "sext" else unsigned(value, bits)
        return self.new(f"{extension} i{bits} {name} to i{wanted}", wanted, wide)

    def one_of(self, names, bits):
        return self.rng.choice([name for name in names if bits < 64 or name in OF_64])

    def constant(self, bits):
        least = -(1 << (bits - 1))
        return self.rng.choice([0, 1, -1, 2, 3, 7, 100, least, least + 1, -least - 1, self.rng.randint(least, -least - 1)])

    def step(self):
        rng = self.rng
        # The newest value most of the time: chains are what folds look at.
        name, bits, value = self.values[-1] if rng.random() < 0.8 else rng.choice(self.values)
        kind = rng.random()
        if kind < 0.15:
            wanted = rng.choice([other for other in (8, 16, 32, 64) if other != bits])
            self.to(name, bits, value, wanted, rng.choice(["sext", "zext"]))
        elif kind < 0.2:
            self.extremes(name, bits, value)
        elif kind < 0.25:
            self.absolute_difference(name, bits, value)
        elif kind < 0.4:
            self.unary(self.one_of(UNARY, bits), name, bits, value)
        elif kind < 0.6:
            self.by_constant(self.one_of(BY_CONSTANT, bits), name, bits, value)
        else:
            if rng.random() < 0.5:
                constant = self.constant(bits)
                other, other_value = str(constant), np.full_like(X, constant)
            else:
                theirs = rng.choice(self.values)
                other, _, other_value = self.to(*theirs, bits, rng.choice(["sext", "zext"]))
            if kind < 0.9:
                self.binary(self.one_of(BINARY, bits), name, bits, value, other, other_value)
            else:
                self.choice(self.one_of(COMPARISONS, bits), name, bits, value, other, other_value)

    def call(self, name, bits, arguments, types):
        self.intrinsics.add(f"declare i{bits} @llvm.{name}.i{bits}({types})")
        return f"call i{bits} @llvm.{name}.i{bits}({arguments})"

    def unary(self, name, operand, bits, value):
        if name == "bswap" and bits == 8:
            return
        result = computed(name, bits, value, value)
        texts = {"neg": f"sub i{bits} 0, {operand}", "not": f"xor i{bits} {operand}, -1"}
        if name in texts:
            text = texts[name]
        elif name in ("abs", "ctlz"):
            text = self.call(name, bits, f"i{bits} {operand}, i1 false", f"i{bits}, i1")
        else:
            text = self.call(name, bits, f"i{bits} {operand}", f"i{bits}")
        self.new(text, bits, result)

    def extremes(self, name, bits, value):
        """The least or greatest of three or four numbers, some of which are negated, in 32 bits most of the time."""
        function = self.rng.choice(["smin", "smax"])
        if self.rng.random() < 0.7:
            name, bits, value = self.to(name, bits, value, 32, "sext")
        for _ in range(self.rng.randint(2, 3)):
            theirs, _, their_value = self.to(*self.rng.choice(self.values), bits, self.rng.choice(["sext", "zext"]))
            if self.rng.random() < 0.5:
                self.unary("neg", theirs, bits, their_value)
                theirs, _, their_value = self.values[-1]
            first, second = self.rng.sample([(name, value), (theirs, their_value)], 2)
            self.binary(function, first[0], bits, first[1], *second)
            name, _, value = self.values[-1]

    def absolute_difference(self, name, bits, value):
        """Of two numbers that are extended before, and most of the time of what it is added to."""
        theirs, _, their_value = self.to(*self.rng.choice(self.values), bits, "sext")
        wanted, extension = self.rng.choice([wide for wide in (16, 32, 64) if wide > bits] or [bits]), self.rng.choice(["sext", "zext"])
        one, _, one_value = self.to(name, bits, value, wanted, extension)
        other, _, other_value = self.to(theirs, bits, their_value, wanted, extension)
        self.binary("sub", one, wanted, one_value, other, other_value)
        name, _, value = self.values[-1]
        self.unary("abs", name, wanted, value)
        if self.rng.random() < 0.7:
            name, _, value = self.values[-1]
            theirs, _, their_value = self.to(*self.rng.choice(self.values[:-1]), wanted, extension)
            self.binary("add", name, wanted, value, theirs, their_value)

    def by_constant(self, name, operand, bits, value):
        if name in ("sdiv", "udiv", "srem", "urem"):
            constant = self.constant(bits)
            # What overflows is undefined.
            constant = 3 if constant in (0, -1) else constant
        else:
            constant = self.rng.randint(1, bits - 1)
        result = computed(name, bits, value, np.full_like(X, constant))
        if name.startswith("fsh"):
            text = self.call(name, bits, f"i{bits} {operand}, i{bits} {operand}, i{bits} {constant}", f"i{bits}, i{bits}, i{bits}")
        else:
            text = f"{name} i{bits} {operand}, {constant}"
        self.new(text, bits, result)

    def binary(self, name, operand, bits, value, other, other_value):
        result = computed(name, bits, value, other_value)
        if name in ("add", "sub", "mul", "and", "or", "xor"):
            text = f"{name} i{bits} {operand}, {other}"
        else:
            text = self.call(name, bits, f"i{bits} {operand}, i{bits} {other}", f"i{bits}, i{bits}")
        self.new(text, bits, result)

    def choice(self, name, operand, bits, value, other, other_value):
        condition = computed(name, bits, value, other_value)
        flag = f"%c{len(self.lines)}"
        self.lines.append(f"  {flag} = icmp {name} i{bits} {operand}, {other}")
        if self.rng.random() < 0.4:
            extension = self.rng.choice(["sext", "zext"])
            self.new(f"{extension} i1 {flag} to i{bits}", bits, -condition if extension == "sext" else condition)
        else:
            theirs, _, their_value = self.to(*self.rng.choice(self.values), bits, self.rng.choice(["sext", "zext"]))
            self.new(f"select i1 {flag}, i{bits} {operand}, i{bits} {theirs}", bits, np.where(condition != 0, value, their_value))

    def head(self):
        """What x and y are."""
        return []

    def kernel(self, name):
        return "\n".join([
            f"define ptx_kernel void @{name}(ptr addrspace(1) %p) {{",
            "  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
            "  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
            "  %o = mul i32 %b, 256",
            "  %i = add i32 %o, %t",
            # Through memory, so that nothing is known of it.
            "  %xp = getelementptr i16, ptr addrspace(1) %p, i32 %i",
            "  %x = load i16, ptr addrspace(1) %xp",
            "  %yi = add i32 %i, 65536",
            "  %yp = getelementptr i16, ptr addrspace(1) %p, i32 %yi",
            "  %y = load i16, ptr addrspace(1) %yp",
            *self.head(),
            *self.lines,
            "  %ri = add i32 %i, 65536",
            "  %rp = getelementptr i32, ptr addrspace(1) %p, i32 %ri",
            f"  store i32 {self.result[0]}, ptr addrspace(1) %rp",
            "  ret void",
            "}",
        ])


KINDS = {"half": np.float16, "bfloat": getattr(ml_dtypes, "bfloat16", None), "float": np.float32, "double": np.float64}
SHORT = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
ORDERED = {
    "oeq": lambda a, b: a == b, "ogt": lambda a, b: a > b, "oge": lambda a, b: a >= b, "olt": lambda a, b: a < b,
    "ole": lambda a, b: a <= b, "one": lambda a, b: (a < b) | (a > b), "ord": lambda a, b: (a == a) & (b == b),
    "ueq": lambda a, b: ~((a < b) | (a > b)), "ugt": lambda a, b: ~(a <= b), "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b), "ule": lambda a, b: ~(a > b), "une": lambda a, b: ~(a == b), "uno": lambda a, b: (a != a) | (b != b),
}
TO_WHOLE = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "roundeven": np.rint}


class FloatExpression(Expression):
    """Operations on f16, bf16, f32 and f64 whose results are exact or rounded once. There is one NaN: its bits are nobody's."""

    def __init__(self, rng):
        self.rng, self.lines, self.intrinsics, self.kind = rng, [], set(), rng.choice(["half", "bfloat"])
        with np.errstate(all="ignore"):
            numbers = [quiet(bits.astype(np.uint16).view(KINDS[self.kind])) for bits in (X, Y)]
        self.values = [(name, self.kind, value) for name, value in zip(("%fx", "%fy"), numbers, strict=True)]
        with np.errstate(all="ignore"):
            for _ in range(rng.randint(2, 6)):
                self.float_step()
            name, kind, value = self.values[-1]
            name, _, value = self.converted(name, kind, value, "float")
            flag = f"%c{len(self.lines)}"
            self.lines.append(f"  {flag} = fcmp uno float {name}, 0.0")
            bits, _, _ = self.new(f"bitcast float {name} to i32", 32, None)
            value = np.where(np.isnan(value), 0x7FC00000, value.view(np.uint32)).astype(np.int64)
            self.result = self.new(f"select i1 {flag}, i32 {0x7FC00000}, i32 {bits}", 32, value)

    def head(self):
        # Signalling NaN become quiet, in integers.
        lines = []
        infinity, quiet_bit = {"half": (0x7C00, 0x200), "bfloat": (0x7F80, 0x40)}[self.kind]
        for name in "xy":
            lines += [
                f"  %a{name} = and i16 %{name}, 32767",
                f"  %n{name} = icmp ugt i16 %a{name}, {infinity}",
                f"  %q{name} = or i16 %{name}, {quiet_bit}",
                f"  %s{name} = select i1 %n{name}, i16 %q{name}, i16 %{name}",
                f"  %f{name} = bitcast i16 %s{name} to {self.kind}",
            ]
        return lines

    def converted(self, name, kind, value, wanted):
        sizes = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
        if kind == wanted:
            return name, kind, value
        if sizes[kind] == sizes[wanted]:
            return self.converted(*self.converted(name, kind, value, "float"), wanted)
        text = "fpext" if sizes[wanted] > sizes[kind] else "fptrunc"
        if kind == "double" and wanted == "bfloat":
            # ml_dtypes rounds twice.
            return self.converted(*self.converted(name, kind, value, "float"), wanted)
        return self.new(f"{text} {kind} {name} to {wanted}", wanted, value.astype(KINDS[wanted]))

    def literal(self, kind):
        value = np.array(self.rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -7.0, 100.0, -4.5, self.rng.uniform(-10, 10)])).astype(KINDS[kind])
        return self.text_of(kind, value), value

    @staticmethod
    def text_of(kind, value):
        letter = {"half": "H", "bfloat": "R"}.get(kind)
        if letter:
            return f"0x{letter}{int(value.view(np.uint16)):04X}"
        return f"0x{int(np.array(float(value)).view(np.uint64)):016X}"

    def operand(self, kind):
        if self.rng.random() < 0.5:
            return self.literal(kind)
        floats = [value for value in self.values if isinstance(value[1], str)]
        name, _, value = self.converted(*self.rng.choice(floats), kind)
        return name, value

    def float_step(self):
        rng = self.rng
        name, kind, value = self.values[-1] if rng.random() < 0.8 else rng.choice(self.values)
        if not isinstance(kind, str):
            # An integer: back to a float.
            wanted = rng.choice(["half", "bfloat", "float", "double"])
            return self.from_integer(name, kind, value, wanted)
        choice = rng.random()
        if choice < 0.15:
            self.limited(name, kind, value)
        elif choice < 0.3:
            self.converted(name, kind, value, rng.choice([other for other in KINDS if other != kind]))
        elif choice < 0.5:
            operation = rng.choice(["fadd", "fsub", "fmul"])
            other, other_value = self.operand(kind)
            result = {"fadd": np.add, "fsub": np.subtract, "fmul": np.multiply}[operation](value, other_value)
            self.new(f"{operation} {kind} {name}, {other}", kind, result)
        elif choice < 0.6:
            text, result = rng.choice([(f"fneg {kind} {name}", -value), (self.of_floats("fabs", kind, name), np.abs(value))])
            self.new(text, kind, result)
        elif choice < 0.7:
            function = rng.choice(list(TO_WHOLE))
            self.new(self.of_floats(function, kind, name), kind, TO_WHOLE[function](value.astype(np.float64)).astype(KINDS[kind]))
        elif choice < 0.8:
            other, other_value = self.operand(kind)
            function = rng.choice(["minimum", "maximum", "minimumnum", "maximumnum"])
            self.new(self.of_floats(function, kind, name, other), kind, extreme(function, value, np.broadcast_to(other_value, value.shape)))
        elif choice < 0.9:
            other, other_value = self.operand(kind)
            third, third_value = self.operand(kind)
            predicate, flag = rng.choice(list(ORDERED)), f"%c{len(self.lines)}"
            condition = ORDERED[predicate](value, other_value)
            self.lines.append(f"  {flag} = fcmp {predicate} {kind} {name}, {other}")
            self.new(f"select i1 {flag}, {kind} {name}, {kind} {third}", kind, np.where(condition, value, third_value).astype(KINDS[kind]))
        else:
            bits, sign = rng.choice([8, 16, 32]), rng.choice("su")
            least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if sign == "s" else (0, (1 << bits) - 1)
            wide = value.astype(np.float64)
            whole = np.clip(np.trunc(np.where(np.isnan(wide), 0, wide)), least, most).astype(np.int64)
            intrinsic = f"fpto{sign}i.sat.i{bits}.{SHORT[kind]}"
            self.intrinsics.add(f"declare i{bits} @llvm.{intrinsic}({kind})")
            made = self.new(f"call i{bits} @llvm.{intrinsic}({kind} {name})", bits, whole)
            self.from_integer(*made, rng.choice(list(KINDS)))

    def limited(self, name, kind, value):
        """Limits of 0 and 1 on one side or both, by functions and by choices, and a choice between two constants."""
        rng = self.rng
        for constant in rng.choice([[0.0], [-0.0], [1.0, 0.0], [0.0, 1.0], [1.0, -0.0], [-0.0, 1.0]]):
            limit = np.array(constant).astype(KINDS[kind])
            text = self.text_of(kind, limit)
            everywhere = np.broadcast_to(limit, value.shape)
            if rng.random() < 0.5:
                side = "min" if constant == 1.0 or rng.random() < 0.2 else "max"
                function = rng.choice([f"{side}imumnum", f"{side}imum"])
                name, _, value = self.new(self.of_floats(function, kind, name, text), kind, extreme(function, value, everywhere))
            else:
                predicate, flag = rng.choice(list(ORDERED)), f"%c{len(self.lines)}"
                condition = ORDERED[predicate](value, everywhere)
                self.lines.append(f"  {flag} = fcmp {predicate} {kind} {name}, {text}")
                pairs = [((name, value), (text, everywhere)), ((text, everywhere), (name, value))]
                if rng.random() < 0.2:
                    other = np.array(rng.choice([0.0, -0.0, 1.0])).astype(KINDS[kind])
                    pairs = [((text, everywhere), (self.text_of(kind, other), np.broadcast_to(other, value.shape)))]
                (first, first_value), (second, second_value) = rng.choice(pairs)
                result = np.where(condition, first_value, second_value).astype(KINDS[kind])
                name, _, value = self.new(f"select i1 {flag}, {kind} {first}, {kind} {second}", kind, result)

    def from_integer(self, name, bits, value, wanted):
        sign = self.rng.choice("su")
        number = signed(value, bits) if sign == "s" else unsigned(value, bits)
        rounded = number.astype(np.float64)
        if wanted == "bfloat":
            # Exact in f64, and rounded once: by way of f32 only where that is exact, too.
            exact = np.abs(number) < 1 << 24
            if not exact.all():
                wanted = "float"
        self.new(f"{sign}itofp i{bits} {name} to {wanted}", wanted, rounded.astype(KINDS[wanted]))

    def of_floats(self, function, kind, *operands):
        self.intrinsics.add(f"declare {kind} @llvm.{function}.{SHORT[kind]}({', '.join([kind] * len(operands))})")
        return f"call {kind} @llvm.{function}.{SHORT[kind]}({', '.join(f'{kind} {operand}' for operand in operands)})"


def quiet(numbers):
    """With one NaN."""
    return np.where(np.isnan(numbers), np.array(np.nan, numbers.dtype), numbers)


def extreme(function, a, b):
    """The less or greater of two, where -0 is less than 0. NaN wins, or loses where the name ends in num."""
    less = (a < b) | ((a == b) & (np.signbit(a) > np.signbit(b)))
    result = np.where(less, a, b) if function.startswith("min") else np.where(less, b, a)
    if function.endswith("num"):
        return np.where(np.isnan(a), b, np.where(np.isnan(b), a, result))
    return np.where(np.isnan(a), a, np.where(np.isnan(b), b, result))


def module(seed, number, floats):
    """The text of a module, and the results of its kernels."""
    rng = random.Random(f"{seed} {number}")
    expressions = [(FloatExpression if floats else Expression)(rng) for _ in range(IN_MODULE)]
    declared = set().union(*(one.intrinsics for one in expressions))
    text = "\n".join([
        'target triple = "nvptx64-nvidia-cuda"',
        "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()",
        "declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()",
        *sorted(declared),
        *(one.kernel(f"k{at}") for at, one in enumerate(expressions)),
    ])
    return text + "\n", [unsigned(one.result[2], 32).astype(np.uint32) for one in expressions]


def made(options, folder, number):
    """Machine code for each setting, and the sums of what it has to leave in memory."""
    text, expected = module(options.seed, number, options.floats)
    source = folder / f"m{number}.ll"
    source.write_text(text)
    refused = {level: said for level in "30" if (said := compiled(options, folder, number, level, "cubin")[1])}
    return number, [sum_of(one) for one in expected], refused


def sum_of(numbers):
    return hashlib.sha256(numbers.tobytes()).hexdigest()


def compiled(options, folder, number, level, kind):
    """The path of what a module is compiled to, and what was said if it was refused."""
    path = folder / f"m{number}.{level}.{kind}"
    command = [harness.GPULOWER, "compile", folder / f"m{number}.ll", "-j1", "--no-cache", "--target", options.target, "-O", level, "--emit", kind, "-o", path]
    done = subprocess.run(command, capture_output=True, text=True)
    return path, done.stderr if done.returncode else None


def on_host(options, number):
    """How many runs differ: of the LLVM IR that instruction selection gets, on this machine's processor."""
    sys.path.append(str(harness.HERE.parent))
    import run_ir

    text, expected = module(options.seed, number, options.floats)
    given = np.concatenate([X.astype(np.uint16), Y.astype(np.uint16)]).tobytes() + bytes(4 * X.size)
    launches = [run_ir.Launch(f"k{at}", 256, 256, [given], [(0, 0)]) for at in range(IN_MODULE)]
    different = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "module"
        folder.mkdir()
        (folder / f"m{number}.ll").write_text(text)
        for level in "30":
            path, refused = compiled(options, folder, number, level, "llvm")
            if refused:
                print(f"module {number}, O={level}: refused: {refused[:300]}")
                return 2 * IN_MODULE
            program = run_ir.Program(path.read_text(), folder)
            for at, launch in enumerate(launches):
                memory = program.run([launch])[0]
                if isinstance(memory, str):
                    different += 1
                    print(f"module {number}, k{at}, O={level}: {memory}")
                    continue
                got = np.frombuffer(memory[0], np.uint32)[X.size:]
                if sum_of(got) != sum_of(expected[at]):
                    different += 1
                    print(differs(vars(options), number, at, level, text, got), flush=True)
    return different


def make(options, folder):
    folder.mkdir(parents=True, exist_ok=True)
    description = {"seed": options.seed, "floats": options.floats, "sums": {}, "refused": {}}
    with concurrent.futures.ProcessPoolExecutor(options.threads) as pool:
        futures = [pool.submit(made, options, folder, number) for number in range(-(-options.count // IN_MODULE))]
        for future in concurrent.futures.as_completed(futures):
            number, description["sums"][number], description["refused"][number] = future.result()
    (folder / "expected.json").write_text(json.dumps(description))


def run(cupy, folder):
    """How many were tried, differ, and were refused."""
    description = json.loads((folder / "expected.json").read_text())
    different = tried = 0
    refused = sum(len(levels) for levels in description["refused"].values()) * IN_MODULE
    given = np.concatenate([X.astype(np.uint16), Y.astype(np.uint16)])
    for number, sums in sorted(description["sums"].items(), key=lambda item: int(item[0])):
        for level in "30":
            if level in description["refused"][number]:
                print(f"module {number}, O={level}: refused: {description['refused'][number][level][:300]}")
                continue
            loaded = cupy.RawModule(path=str(folder / f"m{number}.{level}.cubin"))
            for at, wanted in enumerate(sums):
                memory = cupy.concatenate([cupy.asarray(given).view(cupy.uint32), cupy.zeros(65536, cupy.uint32)])
                loaded.get_function(f"k{at}")((256,), (256,), (memory,))
                got = memory[65536:].get()
                tried += 1
                if sum_of(got) != wanted:
                    different += 1
                    np.save(folder / f"m{number}.{level}.k{at}.npy", got)
                    text = (folder / f"m{number}.ll").read_text()
                    print(differs(description, int(number), at, level, text, got), flush=True)
    return tried, different, refused


def differs(description, number, at, level, text, got):
    """Which kernel, and which values where the expected ones can be computed."""
    said = f"differs: seed {description['seed']}, module {number}, k{at}, O={level}"
    if ml_dtypes:
        wanted = module(description["seed"], number, description["floats"])[1][at]
        wrong = np.flatnonzero(got != wanted)
        first = wrong[0]
        said += (f": {wrong.size} values, the first x = {X[first]:#x}, y = {Y[first]:#x}: {got[first]:#x}, "
                 f"expected {wanted[first]:#x}")
    return said + text.split(f"define ptx_kernel void @k{at}(")[1].split("  %y = load")[1].split("\n}")[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["make", "run", "host", "print"])
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=6400, help=f"how many expressions, in modules of {IN_MODULE}")
    parser.add_argument("--floats", action="store_true", help="floats of 16 bits in place of integers")
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args()
    if options.action == "print":
        print(module(options.seed, 0, options.floats)[0])
        return 0
    if options.action == "host":
        numbers = range(-(-options.count // IN_MODULE))
        with concurrent.futures.ProcessPoolExecutor(options.threads) as pool:
            different = sum(pool.map(on_host, [options] * len(numbers), numbers))
        print(f"{2 * IN_MODULE * len(numbers)} runs of expressions on this processor; {different} different or refused")
        return min(different, 1)
    if not options.folder:
        parser.error(f"{options.action} needs a folder")
    kinds = {"integers": False, "floats": True}
    if options.action == "make":
        for kind, options.floats in kinds.items():
            make(options, options.folder / kind)
        return 0
    checks, cupy = harness.Checks("kinds"), harness.gpu()
    for kind in kinds:
        tried, different, refused = run(cupy, options.folder / kind)
        said = f"{tried} runs of expressions, each for 65,536 values; {different} different, {refused} refused"
        checks.check(kind, tried > 0 and different + refused == 0, said)
    return checks.status()


if __name__ == "__main__":
    sys.exit(main())
