#!/usr/bin/env python3
"""Random loops in C, compiled by clang for NVIDIA: what gpulower makes of their LLVM IR, against the IR as clang wrote it, on this machine.

    scripts/check_loops.py --gpulower target/debug/gpulower --seed 1 --count 1000

Kernels read and write buffers that may overlap, in nested loops with every kind of counter, condition and step; or, with `--structures`,
choose between structures by their addresses. Each is compiled with several
settings to LLVM IR (all that is done before instruction selection), runs on the processor (run_ir.py) for arguments at random, and has to
leave the same in memory as the unoptimised IR. The exit status is 0 when nothing differs. docs/lab/differential.md has counts.
"""

import argparse
import math
import random
import struct
import sys
import tempfile
from pathlib import Path

from run_ir import LLVM, Failure, Launch, Program, command

INTEGERS = ["unsigned char", "short", "unsigned", "int", "unsigned long", "long"]
FLOATS = ["float", "double"]
FIELDS = ["int", "float", "short", "long", "unsigned char", "double"]
COUNTERS = ["int", "int", "unsigned", "long", "unsigned long", "short"]
ARENA, MIDDLE, LAUNCHES = 8192, 2048, 8

SETTINGS = {
    "default": [],
    "O0": ["-O0"],
    "O1-interleave2": ["-O1", "--interleave", "2"],
    "O2-interleave4": ["-O2", "--interleave", "4"],
    "O3-interleave8": ["-O3", "--interleave", "8"],
    "O2-interleave1": ["-O2", "--interleave", "1"],
    "speed-fast": ["--speed", "fast"],
    "input-optimized": [],
}


class Writer:
    """One kernel: `void k(T *p0, .., T *p3, int n, int m, int s, long x)`. n, m and s are small and not negative."""

    def __init__(self, source: random.Random, name: str) -> None:
        self.source, self.name = source, name
        self.types = [source.choice(FLOATS if number == 3 else INTEGERS) for number in range(4)]
        if source.random() < 0.3:
            self.types[:3] = [source.choice(INTEGERS)] * 3
        self.lines: list[str] = []
        self.counters: list[str] = []
        self.locals = 0
        self.buffers = source.choice([3, 3, 5, 6, 7])
        # Pointers that promise to be apart have buffers of their own.
        self.apart = [source.random() < 0.15 for _ in range(4)]
        for _ in range(source.randint(1, 3)):
            self.nest(source.choice([1, 1, 1, 2, 2, 3]))
        restrict = ["restrict " if apart else "" for apart in self.apart]
        pointers = ", ".join(f"{type_} *{restrict[number]}p{number}" for number, type_ in enumerate(self.types))
        body = "\n".join(self.lines)
        self.text = f"__attribute__((device_kernel)) void {name}({pointers}, int n, int m, int s, long x) {{\n{body}\n}}\n"

    def line(self, text: str) -> None:
        self.lines.append("  " * (len(self.counters) + 1) + text)

    def nest(self, depth: int) -> None:
        pick, counter = self.source.choice, f"i{self.locals}"
        self.locals += 1
        type_, kind = pick(COUNTERS), self.source.random()
        step = pick(["1", "1", "1", "2", "3", "s", "s + 1"]) if depth == 1 else "1"
        self.line(f"unsigned long a{counter} = x;")
        if kind < 0.45:
            start, relation = pick(["0", "0", "1", "m", "p2[0] & 7"]), pick(["<", "<", "<="])
            end = pick(["n", "n", "m", "17", "n + m", "(p0[1] & 31)", "(n >> 1)"])
            step = step if step != "s" else "(s | 1)"
            self.line(f"for ({type_} {counter} = {start}; {counter} {relation} ({type_}){end}; {counter} += {step}) {{")
        elif kind < 0.55:
            self.line(f"for ({type_} {counter} = 0; {counter} != ({type_})n; ++{counter}) {{")
        elif kind < 0.7:
            self.line(f"for (long {counter} = n - 1; {counter} >= 0; {counter} -= {step if step != 's' else '(s | 1)'}) {{")
        elif kind < 0.8:
            self.line(f"{type_} {counter} = 0; do {{")
        elif kind < 0.9:
            # Far apart, or near the end of what the type holds.
            begin, end, by = pick(
                [
                    ("-2000000000", "2000000000", "370000000"),
                    ("2147483600", "2147483647 - s", "1"),
                    ("-2147483647 - 1", "m - 2147483640", "1"),
                    ("x > 0 ? -2147483647 : 2000000000", "2147483600", "300000000"),
                ]
            )
            # It wraps nowhere: the last step is of a wider type.
            self.line(f"for (long w{counter} = {begin}; w{counter} < ({end}); w{counter} += {by}) {{ int {counter} = (int)(w{counter} & 63);")
        else:
            self.line(f"unsigned {counter} = 0; while (p2[{counter} & 15] != 5 && {counter} < n + m) {{")
        self.counters.append(counter)
        if depth > 1:
            if self.source.random() < 0.4:
                self.statement()
            self.nest(depth - 1)
            if self.source.random() < 0.4:
                self.statement()
        else:
            for _ in range(self.source.randint(1, 4)):
                self.statement()
        self.counters.pop()
        if 0.7 <= kind < 0.8:
            self.line(f"}} while (({counter} += {'1' if step == 's' else step}) < ({type_})n);")
        else:
            self.line("}" if kind < 0.9 else f"  ++{counter}; }}")
        self.line(f"p{pick([0, 1, 2])}[{pick(['60', '3', 'n'])}] += a{counter};")

    def index(self) -> str:
        pick = self.source.choice
        i, j = f"(long){self.counters[-1]}", f"(long){pick(self.counters)}"
        offset = pick(["", "", "", f" + {self.source.randint(1, 9)}", f" - {self.source.randint(1, 9)}", " + m", " + s", " - s"])
        ring = f"(long)(({self.counters[-1]} + {self.source.randint(0, 4)}) % {self.buffers})"
        return pick([ring, ring, f"{i}", f"{i}", f"{i}", f"{i} * 2", f"{i} * s", f"{i} * m", f"{i} * (m - 3)", f"{i} + m * {j}", f"(long)(p1[{i}] & 31)", f"{j}", f"{i} * 3", "n - " + i]) + offset

    def element(self, floats: bool) -> str:
        number = 3 if floats else self.source.choice([0, 0, 1, 1, 2])
        return f"p{number}[{self.index()}]"

    def value(self, depth: int = 2) -> str:
        pick, kind = self.source.choice, self.source.random()
        if depth == 0 or kind < 0.35:
            i = self.counters[-1]
            return pick([self.element(False)] * 4 + [f"(unsigned){i}", "(unsigned long)x", "(unsigned)n", str(self.source.randint(0, 300)), f"a{i}"])
        one, other = self.value(depth - 1), self.value(depth - 1)
        if kind < 0.7:
            return f"({one} {pick(['+', '-', '*', '^', '&', '|', '+'])} 1ul * {other})"
        if kind < 0.8:
            return f"({self.condition(depth - 1)} ? {one} : {other})"
        if kind < 0.87:
            return f"((unsigned){one} {pick(['>>', '<<'])} ({other} & 31))"
        if kind < 0.93:
            return f"((unsigned){one} {pick(['/', '%'])} (({other} & 255) + 1u))"
        type_ = pick(["int", "long", "short"])
        return f"(({type_}){one} < 0 ? -(unsigned long)({type_}){one} : (unsigned long)({type_}){one})"

    def number(self) -> str:
        one, other = self.element(True), self.element(True)
        pick = self.source.choice
        return pick([f"({one} + {other}) * 0.5f", f"({one} - {other}) * 0.25f", f"__builtin_fabs({one})", f"({one} > {other} ? {one} : -{other})", f"(short){self.value(1)}", one])

    def condition(self, depth: int = 1) -> str:
        pick, kind = self.source.choice, self.source.random()
        if kind < 0.15:
            return f"{pick(['__builtin_fabs', ''])}({self.element(True)} + 1) {pick(['<', '>=', '>', '<=', '!='])} {pick(['0', '-1', '0.5f', self.element(True)])}"
        relation = pick(["<", ">", "<=", ">=", "==", "!="])
        signed = pick(["(int)", "(long)", "(short)", ""])
        return f"{signed}({self.value(depth)}) {relation} {signed}({pick([self.value(0), '0', '-1', '7'])})"

    def place(self) -> str:
        """An index that stays in the innermost loop."""
        pick = self.source.choice
        return pick(["0", "3", "17", "m", "n", "s + 2", "60", *(f"(long){counter}" for counter in self.counters[:-1])])

    def statement(self, depth: int = 1) -> None:
        pick, kind = self.source.choice, self.source.random()
        i = self.counters[-1]
        if kind < 0.15:
            self.line(f"p{pick([0, 1, 2])}[{self.place()}] {pick(['+=', '+=', '^=', '='])} (unsigned long){self.value()};")
        elif kind < 0.2:
            self.line(f"p3[{self.place()}] += {self.number()};")
        elif kind < 0.45:
            self.line(f"{self.element(False)} {pick(['=', '=', '=', '+=', '^='])} (unsigned long){self.value()};")
        elif kind < 0.6:
            self.line(f"{self.element(True)} = {self.number()};")
        elif kind < 0.75:
            self.line(f"a{i} {pick(['+=', '^=', '='])} {self.value()};")
        elif kind < 0.93 and depth:
            self.line(f"if ({self.condition()}) {{")
            self.statement(depth - 1)
            if self.source.random() < 0.5:
                self.line("} else {")
                self.statement(depth - 1)
            self.line("}")
        elif kind < 0.97:
            self.line(f"if ({self.condition()}) break;")
        else:
            self.line(f"{{ unsigned long t = {self.value()}; {self.element(False)} = t; {self.element(False)} = t + 1; }}")


class Csmith(Writer):
    """A program by csmith, whose `main` is a kernel that leaves its checksum."""

    HEADER = """
#include <float.h>
#include <limits.h>
#include <stdint.h>
#define STATIC static
#define UNDEFINED(x) (x)
#define fabsf __builtin_fabsf
#define fabs __builtin_fabs
#define ldexpf __builtin_ldexpf
#define ldexp __builtin_ldexp
#define LOG_INDEX
#define LOG_EXEC
#define FUNC_NAME(name) safe_##name
#define printf(...) 0
#define platform_main_begin() (void)0
#define crc32_gentab() (void)0
#define platform_main_end(sum, flag) (void)(*to = sum)
static uint64_t crc32_context;
static void transparent_crc(uint64_t value, const char *name, int flag) { crc32_context = (crc32_context ^ value) * 1099511628211u; }
#include <safe_math.h>
"""

    def __init__(self, seed: int, name: str) -> None:
        self.name, self.types, self.apart = name, ["unsigned long"], []
        # It leaves a file where it runs.
        with tempfile.TemporaryDirectory() as folder:
            words = ["csmith", "--seed", str(seed), "--no-argc", "--max-funcs", "5", "--no-packed-struct"]
            made = command("env", "-C", folder, *words).decode()
        self.text = made.replace('#include "csmith.h"', self.HEADER).replace(
            "int main (void)", f"__attribute__((device_kernel)) void {name}(uint64_t *to)"
        )
        # The last one is that of `main`.
        self.text = "return;".join(self.text.rsplit("return 0;", 1))


class Structures(Writer):
    """`void k(long *in, long *out, int n)`: structures that functions choose between by their addresses, and small arrays of them."""

    def __init__(self, source: random.Random, name: str) -> None:
        self.source, self.name, self.types, self.apart = source, name, ["long", "long"], []
        self.lines, self.counters, self.locals = [], [], 0
        self.fields = [(source.choice(FIELDS), f"f{number}") for number in range(source.randint(1, 4))]
        self.variables = [f"v{number}" for number in range(source.randint(2, 5))]
        self.type, self.choosers = f"struct {name}_s", [f"{name}_choose{number}" for number in range(source.randint(1, 3))]
        self.line(f"{self.type} {', '.join(self.variables)};\n  long h = n;")
        for variable in self.variables:
            for type_, field in self.fields:
                self.assign(variable, type_, field)
        for _ in range(source.randint(4, 12)):
            self.statement(2)
        for variable in self.variables:
            for _, field in self.fields:
                self.line(f"h = h * 31 + (long){variable}.{field};")
        self.line("*out = h;")
        body = "\n".join(self.lines)
        members = " ".join(f"{type_} {field};" for type_, field in self.fields)
        self.text = f"{self.type} {{ {members} }};\n{''.join(map(self.chooser, self.choosers))}"
        self.text += f"__attribute__((device_kernel)) void {name}(long *restrict in, long *restrict out, int n) {{\n{body}\n}}\n"

    def assign(self, variable: str, type_: str, field: str) -> None:
        self.line(f"{variable}.{field} = ({type_})(in[{self.source.randrange(16)}] % 50);")

    def chooser(self, name: str) -> str:
        def less() -> str:
            field = self.source.choice(self.fields)[1]
            return f"a->{field} {self.source.choice(['<', '>', '<=', '==', '!='])} b->{field}"

        returns = "".join(f"  if ({less()}) return {self.source.choice('ab')};\n" for _ in range(self.source.randint(0, 2)))
        return f"static inline {self.type} *{name}({self.type} *a, {self.type} *b) {{\n{returns}  return {less()} ? a : b;\n}}\n"

    def chosen(self, depth: int = 0) -> str:
        if depth > 2 or self.source.random() < 0.4:
            return f"&{self.source.choice(self.variables)}"
        if self.source.random() < 0.3:
            return f"(h % {self.source.randint(2, 5)} ? {self.chosen(depth + 1)} : {self.chosen(depth + 1)})"
        return f"{self.source.choice(self.choosers)}({self.chosen(depth + 1)}, {self.chosen(depth + 1)})"

    def local(self) -> str:
        self.locals += 1
        return str(self.locals)

    def statement(self, depth: int = 1) -> None:
        pick, kind, number = self.source.choice, self.source.random(), self.local()
        variable, (type_, field) = pick(self.variables), pick(self.fields)
        if kind < 0.35:
            self.line(f"{{ {self.type} *q = {self.chosen()};")
            for _ in range(self.source.randint(1, 3)):
                some, (of, at) = pick(self.variables), pick(self.fields)
                self.line(pick([f"h = h * 7 + (long)q->{at};", f"q->{at} = ({of})(h % 40);", f"{some} = *q;", f"*q = {some};"]))
            self.line("}")
        elif kind < 0.5:
            self.line(f"{variable} = *{self.chosen()};")
        elif kind < 0.65:
            self.assign(variable, type_, field)
        elif kind < 0.8 and depth:
            start = pick([f"if (h % {self.source.randint(2, 6)} < 2)", f"for (int i{number} = 0; i{number} < {pick(['n', '3', '8'])}; i{number}++)"])
            self.line(f"{start} {{")
            self.statement(depth - 1)
            self.statement(depth - 1)
            self.line("}")
        else:
            count, last = self.source.randint(2, 4), self.fields[-1]
            self.line(f"{{ {self.type} a[{count}]; for (int i = 0; i < {count}; i++) a[i] = {variable};")
            self.line(f"for (int i = 0; i < {count}; i++) {{ a[i].{field} += ({type_})(i + h % 3); h = h * 5 + (long)a[i * 3 % {count}].{last[1]}; }}")
            self.line(f"{self.type} *p = a; for (int i = 0; i < {count}; i++, p++) {{ h += (long)p->{field}; p->{last[1]} = ({last[0]})(h % 20); }}")
            self.line(f"{pick(self.variables)} = a[{self.source.randrange(count)}]; }}")


def size(type_: str) -> int:
    return {"unsigned char": 1, "short": 2, "unsigned": 4, "int": 4, "float": 4}.get(type_, 8)


def launches(kernel: Writer, source: random.Random) -> list[Launch]:
    if isinstance(kernel, Csmith):
        return [Launch(kernel.name, 1, 1, [bytes(8)], [(0, 0)])]
    made = []
    if isinstance(kernel, Structures):
        for n in range(LAUNCHES):
            numbers = struct.pack("<16q", *(source.randrange(1 << 24) for _ in range(16)))
            made.append(Launch(kernel.name, 1, 1, [numbers, bytes(8)], [(0, 0), (1, 0), struct.pack("<i", n)]))
        return made
    for _ in range(LAUNCHES):
        # Integers in one buffer, where they may overlap, unless a pointer promises that they do not; floats in another.
        storages = [bytes(source.choices(range(256), k=ARENA)) if source.random() < 0.7 else bytes(ARENA)]
        form = "f" if kernel.types[3] == "float" else "d"
        count = ARENA // size(kernel.types[3])
        storages.append(struct.pack(f"<{count}{form}", *(source.randint(-40, 40) / 4 for _ in range(count))))
        arguments: list[tuple[int, int] | bytes] = []
        for number, type_ in enumerate(kernel.types):
            where = 1 if number == 3 else 0
            if number < 3 and any(kernel.apart[:3]) and (kernel.apart[number] or number):
                where = len(storages)
                storages.append(bytes(source.choices(range(256), k=ARENA)))
            near = source.choice([0, 0, 8, 16, size(type_), source.randrange(0, 64), source.randrange(0, 512)])
            arguments.append((where, MIDDLE + near // size(type_) * size(type_)))
        n, m, s = source.choice([0, 1, 2, 3, 4, 7, 8, 9, 16, source.randint(0, 40)]), source.randint(0, 8), source.randint(0, 4)
        arguments += [struct.pack("<i", n), struct.pack("<i", m), struct.pack("<i", s), struct.pack("<q", source.randint(-(1 << 40), 1 << 40))]
        made.append(Launch(kernel.name, 1, 1, storages, arguments))
    return made


def same(one: bytes, other: bytes, form: str) -> bool:
    if one == other:
        return True
    each = struct.calcsize(form)
    numbers = zip(struct.iter_unpack(f"<{form}", one), struct.iter_unpack(f"<{form}", other), strict=True)
    pairs = ((one[at * each : at * each + each], other[at * each : at * each + each], x, y) for at, ((x,), (y,)) in enumerate(numbers))
    return all(a == b or (math.isnan(x) and math.isnan(y)) for a, b, x, y in pairs)


def differences(kernels: list[Writer], source: random.Random, options: argparse.Namespace, folder: Path) -> list[tuple[Writer, str, str]]:
    """Kernels, settings and what differs."""
    clang: list[str | Path] = [LLVM / "clang", "-x", "c", "-w", "-target", "nvptx64-nvidia-cuda", f"-march={options.target}", "-fno-strict-aliasing"]
    clang += ["-ffp-contract=off", "-Xclang", "-target-feature", "-Xclang", "+ptx83", "-S", "-emit-llvm", "-o", "-", "-"]
    text = "".join(kernel.text for kernel in kernels).encode()
    plain = command(*clang, "-O2", "-Xclang", "-disable-llvm-passes", *options.clang, source=text)
    if options.optimized:
        (folder / "input.ll").write_bytes(command(*clang, "-O2", "-fno-unroll-loops", *options.clang, source=text))
    else:
        (folder / "input.ll").write_bytes(plain)
    all_launches = [launch for kernel in kernels for launch in launches(kernel, source)]
    (folder / "reference").mkdir(exist_ok=True)
    wanted = Program(plain.decode(), folder / "reference").run(all_launches)
    found = []
    (folder / "made").mkdir(exist_ok=True)
    for name in options.settings:
        made = command(options.gpulower, "compile", folder / "input.ll", "--target", options.target, "-e", "llvm", "-o", "-", *SETTINGS[name])
        got = Program(made.decode(), folder / "made").run(all_launches)
        for launch, before, after in zip(all_launches, wanted, got, strict=True):
            kernel = next(kernel for kernel in kernels if kernel.name == launch.kernel)
            form = "f" if kernel.types[-1] == "float" else "d"
            if isinstance(before, str) and options.csmith:
                continue  # Some of its programs do not end.
            if isinstance(before, str):
                found.append((kernel, "as it came", before))
            elif isinstance(after, str):
                found.append((kernel, name, after))
            else:
                for number, (one, other) in enumerate(zip(before, after, strict=True)):
                    if not (same(one, other, form) if number == 1 else one == other):
                        found.append((kernel, name, f"buffer {number}, with {launch.arguments}"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--batch", type=int, default=50, help="kernels in a module")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--gpulower", default="gpulower", help="the program")
    parser.add_argument("--settings", type=lambda text: text.split(","), default=[name for name in SETTINGS if name != "input-optimized"])
    parser.add_argument("--optimized", action="store_true", help="what clang -O2 made is what gpulower gets")
    parser.add_argument("--clang", action="append", default=[], help="one more option of clang's")
    parser.add_argument("--csmith", action="store_true", help="programs by csmith, one in a module")
    parser.add_argument("--structures", action="store_true", help="structures that are chosen by their addresses, in place of loops over buffers")
    parser.add_argument("--print", action="store_true", help="the kernels, and nothing else")
    options = parser.parse_args()
    if options.csmith:
        options.batch, options.clang = 1, [*options.clang, "-ffreestanding", "-I/usr/include/csmith"]
    different: dict[str, tuple[Writer, str, str]] = {}
    done = 0
    with tempfile.TemporaryDirectory() as folder:
        for first in range(0, options.count, options.batch):
            numbers = range(first, min(options.count, first + options.batch))
            kernels: list[Writer] = [Csmith(options.seed * 100000 + number, f"k{number}") for number in numbers if options.csmith]
            writer = Structures if options.structures else Writer
            kernels = kernels or [writer(random.Random(f"{options.seed}-{number}"), f"k{number}") for number in numbers]
            if options.print:
                print("".join(kernel.text for kernel in kernels))
                continue
            try:
                found = differences(kernels, random.Random(options.seed), options, Path(folder))
            except Failure as failure:
                sys.exit(f"kernels from {first} on: {failure}")
            for kernel, setting, what in found:
                if kernel.name not in different:
                    print(f"{kernel.text}  seed {options.seed}, {setting}: {what}\n", flush=True)
                different.setdefault(kernel.name, (kernel, setting, what))
            done += len(kernels)
            print(f"{done} kernels, {done * (1 if options.csmith else LAUNCHES) * len(options.settings)} runs, {len(different)} differ", flush=True)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
