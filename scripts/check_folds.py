#!/usr/bin/env python3
"""Compare integer functions with what a pass makes of them, for every value of their arguments.

    scripts/check_folds.py --seed 1 --count 5000 gpulower-opt --gpulower-canonicalize

Functions of a few operations of `arith` on i1 to i8, with and without promises about overflow, are made at random. Both texts, before and
after the pass, are interpreted here, poison and undefined behaviour included: the second may do less than what the first leaves open,
and nothing else. MLIR 22's own `mlir-opt-22 --canonicalize` differs in one function of 2,500 or so (docs/lab/differential.md).
The exit status is 0 when nothing differs.
"""

import argparse
import random
import re
import subprocess
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

WIDTHS = [1, 3, 4, 5, 8]
FLAGGED = ["addi", "subi", "muli", "shli"]
COMMON = ["addi", "subi", "muli", "andi", "ori", "xori", "shli"]
SIGNED_DIVISIONS = ["divsi", "remsi", "ceildivsi", "floordivsi"]
DIVISIONS = ["divui", "remui", "ceildivui", *SIGNED_DIVISIONS]
BINARY = [*COMMON, *DIVISIONS, "shrui", "shrsi", "minsi", "maxsi", "minui", "maxui"]
PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


class Undefined(Exception):
    """The behaviour of an operation is undefined."""


class Operation(NamedTuple):
    result: str
    name: str
    operands: list[str]
    width: int  # of the last operand
    result_width: int
    flags: str
    number: int  # the value of a constant, the predicate of a comparison


@dataclass
class Function:
    arguments: list[str] = field(default_factory=list)
    width: int = 0  # of all arguments
    operations: list[Operation] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)


class Generator:
    """The text of one function: the results are its last two values."""

    def __init__(self, source: random.Random, name: str) -> None:
        self.source = source
        self.lines: list[str] = []
        self.width = source.choice([3, 4])
        self.values = [("%a0", self.width), ("%a1", self.width)]
        for _ in range(source.randint(1, 6)):
            self.operation()
        made = self.values[-2:]
        types = ", ".join(f"i{width}" for _, width in made)
        body = "\n  ".join([*self.lines, f"return {', '.join(value for value, _ in made)} : {types}"])
        self.text = f"func.func @{name}(%a0: i{self.width}, %a1: i{self.width}) -> ({types}) {{\n  {body}\n}}"

    def value(self, width: int, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"{name} = arith.{text}")
        self.values.append((name, width))
        return name

    def constant(self, width: int) -> str:
        if width == 1:
            return self.value(1, f"constant {self.source.choice(['true', 'false'])}")
        half = 1 << (width - 1)
        number = self.source.choice([0, 1, -1, 2, 3, -half, half - 1, self.source.randrange(-half, half)])
        return self.value(width, f"constant {signed(number & (2 * half - 1), width)} : i{width}")

    def pick(self, width: int) -> str:
        known = [name for name, of in self.values if of == width]
        if not known or self.source.random() < 0.3:
            return self.constant(width)
        return self.source.choice(known[-4:] + known)

    def flags(self, often: float) -> str:
        return f" overflow<{self.source.choice(['nsw', 'nuw', 'nsw, nuw'])}>" if self.source.random() < often else ""

    def operation(self) -> None:
        width, kind = self.source.choice(self.values)[1], self.source.random()
        if kind < 0.5:
            name = self.source.choice(COMMON if self.source.random() < 0.6 else BINARY)
            flags = self.flags(0.6) if name in FLAGGED else ""
            if name in ("shrui", "shrsi", "divui", "divsi") and self.source.random() < 0.3:
                flags = " exact"
            self.value(width, f"{name} {self.pick(width)}, {self.pick(width)}{flags} : i{width}")
        elif kind < 0.65:
            predicate = self.source.choice(PREDICATES)
            self.value(1, f"cmpi {predicate}, {self.pick(width)}, {self.pick(width)} : i{width}")
        elif kind < 0.75:
            self.value(width, f"select {self.pick(1)}, {self.pick(width)}, {self.pick(width)} : i{width}")
        else:
            to = self.source.choice([other for other in WIDTHS if other != width])
            name = self.source.choice(["extsi", "extui"]) if to > width else "trunci"
            flags = self.flags(0.75) if name == "trunci" else ""
            self.value(to, f"{name} {self.pick(width)}{flags} : i{width} to i{to}")


def signed(value: int, width: int) -> int:
    return value - (1 << width) if value >> (width - 1) & 1 else value


def divide(name: str, x: int, y: int, operation: Operation) -> int | None:
    width = operation.width
    if name in SIGNED_DIVISIONS:
        x, y = signed(x, width), signed(y, width)
        if x == -(1 << (width - 1)) and y == -1:
            raise Undefined
    if y == 0:
        raise Undefined
    quotient = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    if "exact" in operation.flags and x % y:
        return None
    if name.startswith("rem"):
        return x - quotient * y
    return {"floordivsi": x // y, "ceildivsi": -(-x // y), "ceildivui": -(-x // y)}.get(name, quotient)


def shift(operation: Operation, x: int, amount: int) -> int | None:
    width, flags = operation.width, operation.flags
    if amount >= width:
        return None
    if operation.name == "shli":
        result = x << amount & ((1 << width) - 1)
        lost = "nuw" in flags and result >> amount != x
        lost |= "nsw" in flags and signed(result, width) >> amount != signed(x, width)
        return None if lost else result
    if "exact" in flags and x & ((1 << amount) - 1):
        return None
    return (x if operation.name == "shrui" else signed(x, width)) >> amount


def calculate(operation: Operation, x: int, y: int) -> int | None:
    """The value of an operation of two operands; None is poison."""
    name, width, flags = operation.name, operation.width, operation.flags
    if name in DIVISIONS:
        return divide(name, x, y, operation)
    if name.startswith("sh"):
        return shift(operation, x, y)
    sx, sy = signed(x, width), signed(y, width)
    if name in ("addi", "subi", "muli"):
        exact, exact_signed = {"addi": (x + y, sx + sy), "subi": (x - y, sx - sy), "muli": (x * y, sx * sy)}[name]
        result = exact & ((1 << width) - 1)
        lost = ("nuw" in flags and result != exact) or ("nsw" in flags and signed(result, width) != exact_signed)
        return None if lost else result
    if name == "cmpi":
        a, b = (sx, sy) if 2 <= operation.number < 6 else (x, y)
        order = PREDICATES[operation.number].lstrip("su")
        return int({"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[order])
    return {
        "andi": x & y,
        "ori": x | y,
        "xori": x ^ y,
        "minui": min(x, y),
        "maxui": max(x, y),
        "minsi": min(sx, sy),
        "maxsi": max(sx, sy),
    }[name]


def convert(operation: Operation, x: int) -> int | None:
    if operation.name == "extui":
        return x
    if operation.name == "extsi":
        return signed(x, operation.width)
    result = x & ((1 << operation.result_width) - 1)
    lost = "nuw" in operation.flags and result != x
    lost |= "nsw" in operation.flags and signed(result, operation.result_width) != signed(x, operation.width)
    return None if lost else result


def evaluate(operation: Operation, operands: list[int | None]) -> int | None:
    if operation.name == "constant":
        return operation.number
    if operation.name == "select":
        condition, yes, no = operands
        return None if condition is None else yes if condition else no
    if operation.name in DIVISIONS and (operands[1] is None or operands[1] == 0):
        raise Undefined
    if None in operands:
        if operation.name in SIGNED_DIVISIONS and operands[1] == (1 << operation.width) - 1:
            raise Undefined  # the dividend may be the least number
        return None
    known = [operand for operand in operands if operand is not None]
    return convert(operation, known[0]) if len(known) == 1 else calculate(operation, known[0], known[1])


def interpret(function: Function, arguments: tuple[int, int]) -> list[int | None]:
    values: dict[str, int | None] = dict(zip(function.arguments, arguments, strict=True))
    for operation in function.operations:
        value = evaluate(operation, [values[name] for name in operation.operands])
        values[operation.result] = None if value is None else value & ((1 << operation.result_width) - 1)
    return [values[name] for name in function.returned]


OPERATION = re.compile(r'\s*(%\w+) = "arith\.(\w+)"\(([^)]*)\)(?: <\{(.*?)\}>)? : \(([^)]*)\) -> i(\d+)$')


def read_operation(match: re.Match[str]) -> Operation:
    result, name, operands, properties, types, result_width = match.groups(default="")
    widths = [int(type_.strip()[1:]) for type_ in types.split(",") if type_]
    number = 0
    if found := re.search(r"(?:value|predicate) = (true|false|-?\d+)", properties):
        number = {"true": 1, "false": 0}.get(found[1], 0) or (0 if found[1] in ("true", "false") else int(found[1]))
    overflow = re.search(r"overflow<([^>]*)>", properties)
    flags = (overflow[1] if overflow else "") + (" exact" if "isExact" in properties else "")
    names = [operand.strip() for operand in operands.split(",") if operand]
    return Operation(result, name, names, widths[-1] if widths else 0, int(result_width), flags, number)


def read(text: str) -> dict[str, Function]:
    functions: dict[str, Function] = {}
    function = Function()
    for line in text.splitlines():
        if '"func.func"' in line and (name := re.search(r'sym_name = "(\w+)"', line)):
            function = functions[name[1]] = Function()
        elif "^bb0" in line:
            arguments = re.findall(r"(%\w+): i(\d+)", line)
            function.arguments, function.width = [argument for argument, _ in arguments], int(arguments[0][1])
        elif match := OPERATION.match(line):
            function.operations.append(read_operation(match))
        elif match := re.match(r'\s*"func.return"\(([^)]*)\)', line):
            function.returned = [name.strip() for name in match[1].split(",")]
        elif '"' in line and "builtin.module" not in line and "}) :" not in line:
            raise SystemExit(f"cannot interpret {line.strip()}")
    return functions


def generic(command: list[str], source: str) -> dict[str, Function]:
    command = [*command, "--mlir-print-op-generic"]
    made = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if made.returncode:
        raise SystemExit(f"{' '.join(command)}: {made.stderr[:2000]}")
    return read(made.stdout)


def difference(before: Function, after: Function) -> str | None:
    for x in range(1 << before.width):
        for y in range(1 << before.width):
            try:
                wanted = interpret(before, (x, y))
            except Undefined:
                continue
            try:
                found = interpret(after, (x, y))
            except Undefined:
                return f"({x}, {y}): {wanted}, after the pass undefined"
            if any(one is not None and one != other for one, other in zip(wanted, found, strict=True)):
                return f"({x}, {y}): {wanted}, after the pass {found}"
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("command", nargs=argparse.REMAINDER, help="a program like mlir-opt and its pass")
    options = parser.parse_args()
    if not options.command:
        parser.error("name a program like mlir-opt, and its pass")
    source = random.Random(options.seed)
    texts = {f"f{number}": Generator(source, f"f{number}").text for number in range(options.count)}
    text = "\n".join(texts.values())
    before, after = generic(options.command[:1], text), generic(options.command, text)
    different = 0
    for name, function in before.items():
        if found := difference(function, after[name]):
            different += 1
            print(f"{texts[name]}\n  {found}\n")
    print(f"{len(before)} functions, {different} differ")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
