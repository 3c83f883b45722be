"""Compiles the pseudo-code of an instruction to a function over numpy values.

The vector form computes all lanes at once: a conditional becomes a choice by lane. The scalar form runs branches as they
stand. Types are those of the manuals: `S0.f32` is register bits seen as a float, and every result wraps or rounds to its width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import arithmetic
from .pseudocode import (
    Assign,
    Binary,
    Bits,
    Break,
    Call,
    Cast,
    Choice,
    Concat,
    Declare,
    Expr,
    For,
    If,
    Name,
    Number,
    Stmt,
    Typed,
    Unary,
    parse,
)
from .traps import Unknown


@dataclass(frozen=True)
class Value:
    """Code that yields a value. `kind`: u, i, f, p (a condition) or "" (a literal); integers live in 32 or 64 bits."""

    code: str
    kind: str
    width: int
    constant: int | float | None = None


@dataclass(frozen=True)
class Modes:
    """What MODE and the encoding add to the text."""

    wave: int = 32
    flush32: bool = False
    flush16_64: bool = False
    ieee: bool = True
    opsel: int = 0
    opsel_hi: int = 0
    neg: int = 0


@dataclass(frozen=True)
class Compiled:
    """`run(S0, S1, S2, D0, SCC, VCC, EXEC, lane, SIMM16, SIMM32)` returns (D0, SCC, lane bits or None, EXEC)."""

    run: Callable[..., tuple[Any, Any, Any, Any]]
    source: str
    sets_scc: bool
    sets_exec: bool
    sets_lane_bits: bool
    sets_destination: bool


def _container(width: int) -> int:
    if width > 64:
        raise Unknown(f"pseudo-code: {width} bits")
    return 32 if width <= 32 else 64


def _dtype(kind: str, width: int) -> str:
    if kind == "f":
        return f"F{width}"
    return f"{'I' if kind == 'i' else 'U'}{_container(width)}"


_REGISTERS = ("S0", "S1", "S2", "D0", "SIMM32", "SIMM16")
_IGNORED = ("TRAPSTS.INVALID",)
_INVERSE = {"==": "==", "!=": "!=", "<>": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}


@dataclass
class _Emitter:
    scalar: bool
    widths: dict[str, int]
    modes: Modes
    lines: list[str] = field(default_factory=list)
    depth: int = 1
    variables: dict[str, Value] = field(default_factory=dict)
    literals: dict[str, int] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)
    mask: str | None = None
    names: int = 0
    broken: list[str] = field(default_factory=list)
    written: set[str] = field(default_factory=set)

    # -- small helpers

    def emit(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def fresh(self) -> str:
        self.names += 1
        return f"t{self.names}"

    def constant(self, value: int | float, kind: str, width: int) -> Value:
        """A literal with a type, made once."""
        dtype = getattr(np, f"float{width}") if kind == "f" else getattr(np, f"{'' if kind == 'i' else 'u'}int{_container(width)}")
        if kind != "f":
            value = int(value) & ((1 << width) - 1)
            if kind == "i" and value >> width - 1:
                value -= 1 << width
        name = f"k_{kind}{width}_{len(self.constants)}"
        self.constants[name] = dtype(value)
        return Value(name, kind, width, value)

    def typed_literal(self, value: Value, kind: str, width: int) -> Value:
        if value.kind == "" and value.constant is not None:
            return self.constant(value.constant, kind, width)
        return value

    def wrap(self, code: str, kind: str, width: int) -> Value:
        if kind != "f" and width not in (32, 64):
            if kind == "i":
                shift = _container(width) - width
                code = f"(({code}) << {shift} >> {shift})"
            else:
                code = f"(({code}) & {(1 << width) - 1})"
        return Value(f"({code})", kind, width)

    def choose(self, condition: str, yes: str, no: str) -> str:
        return f"({yes} if {condition} else {no})" if self.scalar else f"where({condition}, {yes}, {no})"

    # -- conversions

    def bits(self, value: Value, width: int | None = None) -> Value:
        """The bits of a value, unsigned."""
        if value.kind == "":
            return self.constant(value.constant or 0, "u", width or value.width)
        if value.kind == "f":
            if value.width == 16:
                return Value(f"{value.code}.view(U16).astype(U32)", "u", 16)
            return Value(f"{value.code}.view(U{value.width})", "u", value.width)
        if value.kind == "p":
            return Value(f"{value.code}.astype(U32)", "u", 1)
        if value.kind == "i":
            code = f"{value.code}.view(U{_container(value.width)})"
            return self.wrap(code, "u", value.width)
        return value

    def integer(self, value: Value, kind: str, width: int) -> Value:
        """An integer, converted to a kind and a width: extended or cut."""
        if value.kind == "":
            return self.constant(value.constant or 0, kind, width)
        if value.kind in "fp":
            value = self.bits(value)
        code = value.code
        if _dtype(value.kind, value.width) != _dtype(kind, width):
            code = f"{code}.astype({_dtype(kind, width)})"
        if width < value.width or (kind == "u" and value.kind == "i" and width not in (32, 64)):
            return self.wrap(code, kind, width)
        if kind == "i" and value.kind == "u" and width == value.width:
            return self.wrap(code, kind, width)
        return Value(code, kind, width, value.constant)

    def seen_as(self, value: Value, kind: str, width: int) -> Value:
        """`value.f32` and the like."""
        if kind in ("bf", "fp"):
            if (kind, width) == ("bf", 16):
                return Value(f"from_bfloat16({self.integer(self.bits(value), 'u', 16).code})", "f", 32)
            return self.integer(self.bits(value), "u", width)
        if kind == "f":
            if value.kind == "f":
                if value.width != width:
                    return Value(f"{value.code}.astype(F{width})", "f", width)
                return value
            narrow = self.integer(self.bits(value), "u", width)
            code = f"{narrow.code}.astype(U16).view(F16)" if width == 16 else f"{narrow.code}.view(F{width})"
            return self.flushed(Value(code, "f", width))
        if value.kind == "f":
            value = self.bits(value)
        return self.integer(value, "i" if kind == "i" else "u", width)

    def flushed(self, value: Value) -> Value:
        if (value.width == 32 and self.modes.flush32) or (value.width != 32 and self.modes.flush16_64):
            return Value(f"flush{value.width}({value.code})", "f", value.width)
        return value

    def cast(self, value: Value, kind: str, width: int) -> Value:
        """`32'F(value)`: a float is converted, bits are taken for a float as they are."""
        if kind == "f":
            if value.kind == "f":
                return Value(f"{value.code}.astype(F{width})", "f", width)
            return self.seen_as(self.bits(value, width), "f", width)
        if value.kind == "f" and kind in "ui":
            raise Unknown("pseudo-code: a cast of a float to an integer")
        return self.integer(value, "i" if kind == "i" else "u", width)

    def condition(self, value: Value) -> Value:
        if value.kind == "p":
            return value
        if value.constant is not None:
            name = f"k_p{len(self.constants)}"
            self.constants[name] = np.bool_(bool(value.constant))
            return Value(name, "p", 1, int(bool(value.constant)))
        return Value(f"({value.code} != 0)", "p", 1)

    def same_type(self, a: Value, b: Value) -> tuple[Value, Value, str, int]:
        """Both operands in one type."""
        if a.kind == "p":
            a = self.bits(a)
        if b.kind == "p":
            b = self.bits(b)
        if "f" in (a.kind, b.kind):
            width = b.width if a.kind != "f" else a.width if b.kind != "f" else max(a.width, b.width)
            if a.constant is not None and b.kind == "f":
                width = b.width
            elif b.constant is not None and a.kind == "f":
                width = a.width
            return self.as_float(a, width), self.as_float(b, width), "f", width
        if a.kind == "" and b.kind == "":
            return a, b, "", max(a.width, b.width)
        kind = b.kind if a.kind == "" else a.kind if b.kind == "" else "i" if a.kind == b.kind == "i" else "u"
        width = b.width if a.kind == "" else a.width if b.kind == "" else max(a.width, b.width)
        return self.integer(a, kind, width), self.integer(b, kind, width), kind, width

    def as_float(self, value: Value, width: int) -> Value:
        if value.constant is not None:
            return self.constant(float(value.constant), "f", width)
        if value.kind != "f" or value.width != width:
            return Value(f"{value.code}.astype(F{width})", "f", width)
        return value

    # -- expressions

    def expression(self, node: Expr) -> Value:
        match node:
            case Number(value, "f", width):
                return self.constant(value, "f", width)
            case Number(value, "", width):
                return Value(str(value), "", width, value)
            case Number(value, kind, width):
                return self.constant(value, kind, width)
            case Name(name):
                return self.name(name)
            case Typed(inner, kind, width):
                return self.typed(inner, kind, width)
            case Bits():
                return self.slice(node)
            case Cast(inner, kind, width):
                return self.cast(self.expression(inner), kind, width)
            case Unary(operator, inner):
                return self.unary(operator, self.expression(inner))
            case Binary(operator, left, right):
                # As in `S1.f64 == DENORM.f64`: whether it is one.
                named = right.value if isinstance(right, Typed) else right
                if isinstance(named, Name) and named.name.startswith("DENORM"):
                    return Value(f"is_denormal({self.expression(left).code})", "p", 1)
                return self.binary(operator, self.expression(left), self.expression(right))
            case Choice(condition, yes, no):
                return self.choice(condition, yes, no)
            case Concat(parts):
                return self.concat([self.expression(part) for part in parts])
            case Call(name, arguments):
                return self.call(name, [self.expression(argument) for argument in arguments])
        raise Unknown(f"pseudo-code: {node!r}")

    def typed(self, inner: Expr, kind: str, width: int) -> Value:
        if isinstance(inner, Name) and inner.name in ("INF", "NAN", "DENORM"):
            return self.constant(float("inf" if inner.name == "INF" else "nan"), "f", width)
        if kind == "u" and isinstance(inner, Name) and inner.name in ("OPSEL", "OPSEL_HI", "NEG"):
            return self.name(inner.name)
        if isinstance(inner, Name) and inner.name == "VCC":
            return Value("VCC", "lanes", 64)
        if isinstance(inner, Name) and inner.name in ("D0", "EXEC") and self.widths.get("D0") == 0:
            return Value("LANES", "lanes", 64)
        return self.seen_as(self.expression(inner), kind, width)

    def name(self, name: str) -> Value:
        if name in self.literals:
            return Value(str(self.literals[name]), "", 32, self.literals[name])
        if name in _REGISTERS:
            return Value(name, "u", self.widths.get(name, 32))
        if name == "EXEC":
            return Value("EXEC", "u", self.modes.wave if self.modes.wave == 64 else 32)
        if name in ("SCC",):
            return Value("SCC", "p", 1)
        if name in ("OPSEL", "OPSEL_HI", "NEG"):
            number = {"OPSEL": self.modes.opsel, "OPSEL_HI": self.modes.opsel_hi, "NEG": self.modes.neg}[name]
            return Value(str(number), "", 32, number)
        if name == "laneId":
            return Value("lane", "u", 32)
        if name in self.variables:
            return self.variables[name]
        fixed = {"WAVE64": self.modes.wave == 64, "WAVE32": self.modes.wave == 32, "WAVE_MODE.IEEE": self.modes.ieee}
        if name in fixed:
            return Value(str(fixed[name]), "", 1, int(fixed[name]))
        if name in ("INF", "NAN", "PI"):
            return self.constant({"INF": float("inf"), "NAN": float("nan"), "PI": np.pi}[name], "f", 64)
        special = {
            "UNDERFLOW_F32": (0.0, 32),
            "OVERFLOW_F32": (float("inf"), 32),
            "UNDERFLOW_F64": (0.0, 64),
            "OVERFLOW_F64": (float("inf"), 64),
            "MAX_FLOAT_F32": (float(np.finfo(np.float32).max), 32),
        }
        if name in special:
            return self.constant(special[name][0], "f", special[name][1])
        raise Unknown(f"pseudo-code: unknown name {name!r}")

    def slice(self, node: Bits) -> Value:
        array = self.element(node)
        if array is not None:
            return array
        value = self.expression(node.value)
        high = self.expression(node.high)
        if value.kind == "lanes":
            return Value(value.code, "p", 1)
        if value.kind == "" and value.constant is not None and high.constant is not None and node.low is None:
            bit = int(value.constant) >> int(high.constant) & 1
            return Value(str(bit), "", 1, bit)
        value = self.bits(value)
        if node.low is None:
            shift = high.code if high.constant is not None else self.integer(high, "u", value.width).code
            return Value(f"({value.code} >> {shift} & 1)", "u", 1)
        low = self.expression(node.low)
        if high.constant is None or low.constant is None:
            raise Unknown("pseudo-code: a slice whose place is not constant")
        width = int(high.constant) - int(low.constant) + 1
        if width < 1:
            raise Unknown("pseudo-code: a slice from low to high")
        code = value.code
        if low.constant:
            code = f"({code} >> {int(low.constant)})"
        if int(low.constant) + width < value.width or value.width not in (32, 64):
            code = f"({code} & {(1 << width) - 1})"
        if _container(value.width) != _container(width):
            code = f"{code}.astype(U{_container(width)})"
        return Value(code, "u", width)

    def element(self, node: Bits) -> Value | None:
        """`in[i]` of a declared array, and `S[i]`, with `i` known."""
        if not isinstance(node.value, Name) or node.low is not None:
            return None
        index = self.expression(node.high) if node.value.name == "S" or f"{node.value.name}[]" in self.variables else None
        if index is None:
            return None
        if index.constant is None:
            raise Unknown("pseudo-code: an array index that is not constant")
        if node.value.name == "S":
            return self.name(f"S{int(index.constant)}")
        return self.variables[f"{node.value.name}[{int(index.constant)}]"]

    def unary(self, operator: str, value: Value) -> Value:
        if operator == "+":
            return value
        if operator == "!":
            condition = self.condition(value)
            if condition.constant is not None:
                return self.condition(Value("", "", 1, int(not condition.constant)))
            return Value(f"(~{condition.code})", "p", 1)
        if value.kind == "":
            number = -int(value.constant or 0) if operator == "-" else ~int(value.constant or 0)
            return Value(str(number), "", value.width, number)
        if value.kind == "f":
            if value.constant is not None:
                return self.constant(-value.constant, "f", value.width)
            return Value(f"(-{value.code})", "f", value.width)
        if value.kind == "p":
            value = self.bits(value)
        return self.wrap(f"{operator}{value.code}", value.kind, value.width)

    def binary(self, operator: str, a: Value, b: Value) -> Value:
        if operator in ("&&", "||"):
            x, y = self.condition(a), self.condition(b)
            return Value(f"({x.code} {operator[0]} {y.code})", "p", 1)
        if operator in _INVERSE:
            if a.kind == "p" and b.kind == "p":
                return Value(f"({a.code} {_INVERSE[operator]} {b.code})", "p", 1)
            x, y, kind, _ = self.same_type(a, b)
            if kind == "":
                answer = eval(f"{a.constant} {_INVERSE[operator]} {b.constant}")
                return Value(str(answer), "", 1, int(answer))
            if operator == "<>" and kind == "f":
                # Less or greater: a NaN is neither.
                return Value(f"(({x.code} < {y.code}) | ({x.code} > {y.code}))", "p", 1)
            return Value(f"({x.code} {_INVERSE[operator]} {y.code})", "p", 1)
        if operator in ("<<", ">>"):
            return self.shift(operator, a, b)
        if operator == "**":
            if a.constant is not None and b.constant is not None:
                return self.constant(a.constant**b.constant, "f", a.width)
            raise Unknown("pseudo-code: a power")
        if operator in "&|^" and a.kind == "p" and b.kind == "p":
            return Value(f"({a.code} {operator} {b.code})", "p", 1)
        x, y, kind, width = self.same_type(a, b)
        if kind == "":
            number = int(eval(f"{a.constant} {'//' if operator == '/' else operator} {b.constant}"))
            return Value(str(number), "", width, number)
        if kind == "f":
            if operator not in "+-*/":
                raise Unknown(f"pseudo-code: {operator} of floats")
            return Value(f"({x.code} {operator} {y.code})", "f", width)
        operator = "//" if operator == "/" else operator
        if operator in "&|":
            return Value(f"({x.code} {operator} {y.code})", kind, width)
        return self.wrap(f"{x.code} {operator} {y.code}", kind, width)

    def shift(self, operator: str, a: Value, b: Value) -> Value:
        if a.kind == "":
            if b.constant is not None:
                number = eval(f"{a.constant} {operator} {b.constant}")
                return Value(str(number), "", a.width, number)
            a = self.constant(a.constant or 0, "i", 32)
        if a.kind == "p":
            a = self.bits(a)
        count = str(b.constant) if b.constant is not None else self.integer(b, a.kind, a.width).code
        code = f"{a.code} {operator} {count}"
        return self.wrap(code, a.kind, a.width) if operator == "<<" else Value(f"({code})", a.kind, a.width)

    def choice(self, condition: Expr, yes: Expr, no: Expr) -> Value:
        test = self.condition(self.expression(condition))
        if test.constant is not None:
            return self.expression(yes if test.constant else no)
        a, b = self.expression(yes), self.expression(no)
        if a.kind == "p" and b.kind == "p":
            return Value(self.choose(test.code, a.code, b.code), "p", 1)
        x, y, kind, width = self.same_type(a, b)
        if kind == "":
            x, y, kind = self.typed_literal(x, "i", 32), self.typed_literal(y, "i", 32), "i"
        return Value(self.choose(test.code, x.code, y.code), kind, width)

    def concat(self, parts: list[Value]) -> Value:
        width, code = 0, ""
        total = sum(part.width for part in parts)
        for part in reversed(parts):
            piece = self.integer(self.bits(part), "u", total).code
            if width:
                piece = f"({piece} << {width})"
            code = f"({code} | {piece})" if code else piece
            width += part.width
        return Value(code, "u", total)

    # -- named functions

    def call(self, name: str, a: list[Value]) -> Value:
        code = [value.code for value in a]
        first = a[0] if a else Value("", "", 32)
        simple = {
            "isNAN": "np.isnan({0})",
            "isSignalNAN": "is_signalling({0})",
            "sign": "np.signbit({0})",
            "GT_NEG_ZERO": "less_with_zeros({1}, {0})",
            "LT_NEG_ZERO": "less_with_zeros({0}, {1})",
        }
        if name in simple:
            return Value(simple[name].format(*code), "p", 1)
        if name == "isQuietNAN":
            return Value(f"(np.isnan({code[0]}) & ~is_signalling({code[0]}))", "p", 1)
        if name == "isEven":
            return Value(f"(np.fmod({code[0]}, 2) == 0)", "p", 1)
        same = {
            "abs": "np.abs({0})",
            "cvtToQuietNAN": "quiet({0})",
            "floor": "np.floor({0})",
            "trunc": "np.trunc({0})",
            "fract": "({0} - np.floor({0}))",
            "sqrt": "np.sqrt({0})",
            "mantissa": "mantissa({0})",
            "log2": "log2_wide({0})",
            "ldexp": "np.ldexp({0}, {1})",
        }
        if name in same:
            return Value(same[name].format(*code), first.kind, first.width)
        if name == "fma":
            width = max(value.width for value in a)
            return Value(f"fma{width}({', '.join(self.as_float(value, width).code for value in a)})", "f", width)
        if name == "exponent":
            return Value(f"exponent({code[0]})", "i", 32)
        if name == "pow" and first.constant == 2.0:
            return Value(f"exp2_wide({code[1]})", "f", a[1].width)
        if name == "signext":
            return self.integer(first, "i", 64)
        if name == "signext_from_bit":
            return self.sign_extended(first, a[1])
        if name in ("sin", "cos"):
            raise Unknown(f"pseudo-code: {name}")
        return self.conversion(name, first, a)

    def sign_extended(self, value: Value, width: Value) -> Value:
        container = _container(value.width)
        count = self.integer(width, "i", container).code
        kind = f"I{container}"
        zero = self.constant(0, "i", container).code
        shift = f"({container} - {count}) % {container}"
        extended = f"({value.code} << ({shift}) >> ({shift}))"
        return Value(f"{self.choose(f'({count} == 0)', zero, extended)}.astype({kind})", "i", value.width)

    def conversion(self, name: str, value: Value, a: list[Value]) -> Value:
        """`f32_to_i32` and the like; `v_max_f32` and the like."""
        if name.startswith("v_"):
            return self.other_instruction(name, a)
        source, to, target = name.partition("_to_")
        if not to or (not target[1:].isdigit() and target != "bf16"):
            raise Unknown(f"pseudo-code: unknown function {name!r}")
        if target == "bf16":
            return Value(f"to_bfloat16({value.code})", "u", 16)
        kind, width = target[0], int(target[1:])
        if source in ("bf16", "fp8", "bf8"):
            if source == "bf16" and target == "f32":
                return value if value.kind == "f" else Value(f"from_bfloat16({value.code})", "f", 32)
            raise Unknown(f"pseudo-code: unknown function {name!r}")
        if kind == "f":
            return Value(f"{value.code}.astype(F{width})", "f", width)
        if source[0] == "f":
            if width == 8:
                return Value(f"to_integer({value.code}, {'I8' if kind == 'i' else 'U8'}).astype({_dtype(kind, 8)})", kind, 8)
            if width == 16:
                return Value(f"to_integer({value.code}, {'I16' if kind == 'i' else 'U16'}).astype({_dtype(kind, 16)})", kind, 16)
            return Value(f"to_integer({value.code}, {_dtype(kind, width)})", kind, width)
        if (source[0], kind) in (("i", "i"), ("u", "u")) and int(source[1:]) <= width:
            return self.integer(value, kind, width)
        raise Unknown(f"pseudo-code: unknown function {name!r}")

    def other_instruction(self, name: str, a: list[Value]) -> Value:
        base, _, kind = name[2:].rpartition("_")
        functions = {
            "min": "minimum_number",
            "max": "maximum_number",
            "min_num": "minimum_number",
            "max_num": "maximum_number",
            "minimum": "minimum",
            "maximum": "maximum",
        }
        three = base.rstrip("3") if base.endswith("3") else base.replace("3_", "_")
        if three not in functions or not a:
            raise Unknown(f"pseudo-code: unknown function {name!r}")
        code = a[0].code
        for value in a[1:]:
            if kind[0] == "f":
                code = f"{functions[three]}({code}, {value.code})"
            else:
                code = f"np.{'minimum' if three.startswith('min') else 'maximum'}({code}, {value.code})"
        return Value(code, a[0].kind, a[0].width)

    # -- statements

    def statements(self, nodes: tuple[Stmt, ...]) -> None:
        for node in nodes:
            match node:
                case Declare(name, kind, width, None):
                    self.declare(name, kind, width)
                case Declare(name, kind, width, int(count)):
                    self.variables[f"{name}[]"] = Value(name, kind, width)
                    for index in range(count):
                        self.variables[f"{name}[{index}]"] = Value(f"v_{name}_{index}", kind, width)
                case If():
                    self.conditional(node)
                case For():
                    self.loop(node)
                case Break():
                    self.leave()
                case Assign():
                    self.assign(node)

    def declare(self, name: str, kind: str, width: int) -> None:
        zero = self.constant(0, "f" if kind == "f" else "i" if kind == "i" else "u", width)
        self.emit(f"v_{name} = {zero.code}")
        self.variables[name] = Value(f"v_{name}", zero.kind, width)

    def conditional(self, node: If) -> None:
        if self.scalar:
            return self.branches(node)
        outer = self.mask
        rest = outer
        for condition, body in node.branches:
            test = self.condition(self.expression(condition))
            if test.constant == 0:
                continue
            taken = self.fresh()
            self.emit(f"{taken} = {test.code}" if rest is None else f"{taken} = {test.code} & {rest}")
            if test.constant != 1:
                following = self.fresh()
                self.emit(f"{following} = ~{taken}" if rest is None else f"{following} = {rest} & ~{taken}")
            self.mask = taken if test.constant != 1 else rest
            self.statements(body)
            if test.constant == 1:
                self.mask = outer
                return
            rest = following
        self.mask = rest
        self.statements(node.otherwise)
        self.mask = outer

    def branches(self, node: If) -> None:
        word = "if"
        for condition, body in node.branches:
            test = self.condition(self.expression(condition))
            if test.constant == 0:
                continue
            self.emit(f"{word} {test.code}:")
            self.inside(body)
            word = "elif"
        if word == "if":
            self.statements(node.otherwise)
        elif node.otherwise:
            self.emit("else:")
            self.inside(node.otherwise)

    def inside(self, body: tuple[Stmt, ...]) -> None:
        self.depth += 1
        before = len(self.lines)
        self.statements(body)
        if len(self.lines) == before:
            self.emit("pass")
        self.depth -= 1

    def loop(self, node: For) -> None:
        """Unrolled: the bounds are constants everywhere."""
        first, last = self.expression(node.first), self.expression(node.last)
        if first.constant is None or last.constant is None:
            raise Unknown("pseudo-code: a loop without constant bounds")
        outer = self.mask
        if self.scalar:
            self.emit("for _ in (0,):")
            self.depth += 1
        for index in range(int(first.constant), int(last.constant) + 1):
            self.literals[node.variable] = index
            self.statements(node.body)
        if self.scalar:
            self.emit("pass")
            self.depth -= 1
        self.literals.pop(node.variable, None)
        self.mask = outer

    def leave(self) -> None:
        if self.scalar:
            return self.emit("break")
        raise Unknown("pseudo-code: a loop that lanes leave one by one")

    def assign(self, node: Assign) -> None:
        value = self.expression(node.value)
        for target in node.targets:
            self.store(target, node.operator, value)

    def store(self, target: Expr, operator: str, value: Value) -> None:
        kind, width, high, low = "", 0, None, None
        whole = target
        while not isinstance(target, Name):
            if isinstance(target, Typed):
                kind, width, target = kind or target.kind, width or target.width, target.value
            elif isinstance(target, Bits):
                if isinstance(target.value, Name) and f"{target.value.name}[]" in self.variables:
                    index = self.expression(target.high)
                    target = Name(f"{target.value.name}[{index.constant}]")
                    continue
                high, low, target = target.high, target.low, target.value
            else:
                raise Unknown(f"pseudo-code: an assignment to {whole!r}")
        name = target.name
        if name in _IGNORED:
            return
        if high is not None and low is None and isinstance(high, Name) and high.name == "laneId":
            return self.store_lane(name, value)
        if name == "VCC":
            return self.store_lane(name, value)
        if operator != "=":
            value = self.binary(operator[0], self.expression(whole), value)
        if high is not None:
            return self.store_slice(name, high, low, kind, width, value)
        self.store_whole(name, kind, width, value)

    def guarded(self, name: str, code: str) -> str:
        return code if self.mask is None else f"where({self.mask}, {code}, {name})"

    def store_lane(self, name: str, value: Value) -> None:
        """One bit for each lane: a comparison, a carry, an overflow."""
        self.written.add("lanes")
        code = self.condition(value).code
        self.emit(f"LANES = {self.guarded('LANES', code)}")
        if name == "VCC":
            self.emit("VCC = LANES")

    def store_slice(self, name: str, high: Expr, low: Expr | None, kind: str, width: int, value: Value) -> None:
        top = self.expression(high)
        bottom = self.expression(low) if low is not None else top
        value = self.encoded(value, kind, width)
        if name not in _REGISTERS and name not in self.variables:
            self.declare(name, "u", 32)
        register = name if name in _REGISTERS else f"v_{name}"
        size = self.widths.get(name, 32) if name in _REGISTERS else self.variables[name].width
        if top.constant is None or bottom.constant is None:
            if low is not None:
                raise Unknown("pseudo-code: a slice whose place is not constant")
            place = self.integer(top, "u", size).code
            one = self.constant(1, "u", size).code
            bit = f"({self.integer(self.bits(value), 'u', size).code} & 1) << {place}"
            code = f"({register} & ~({one} << {place})) | ({bit})"
        else:
            mask = ((1 << int(top.constant) - int(bottom.constant) + 1) - 1) << int(bottom.constant)
            piece = self.integer(self.bits(value), "u", size).code
            full = (1 << size) - 1
            code = f"({register} & {full & ~mask}) | ({piece} << {int(bottom.constant)} & {mask})"
        self.written.add(name)
        self.emit(f"{register} = {self.guarded(register, code)}")

    def encoded(self, value: Value, kind: str, width: int) -> Value:
        """A value on its way into a register, as the suffix of the destination says."""
        if kind == "bf":
            return value if value.kind == "u" else Value(f"to_bfloat16({value.code})", "u", 16)
        if kind == "f":
            number = self.as_float(value, width) if value.kind in ("f", "") else self.seen_as(value, "f", width)
            return self.bits(self.flushed(number))
        return value

    def store_whole(self, name: str, kind: str, width: int, value: Value) -> None:
        if name in ("D0", "EXEC"):
            if name == "D0" and self.widths.get("D0") == 0:
                return self.store_lane(name, value)
            size = self.widths.get("D0", 32) if name == "D0" else (64 if self.modes.wave == 64 else 32)
            if kind == "i" and width:
                value = self.integer(value, "i", width)
            code = self.integer(self.bits(self.encoded(value, kind, width)), "u", size).code
            self.written.add(name)
            return self.emit(f"{name} = {self.guarded(name, code)}")
        if name == "SCC":
            self.written.add("SCC")
            return self.emit(f"SCC = {self.condition(value).code}")
        if "." in name or name in ("PC", "M0", "VGPR", "SGPR", "MEM"):
            raise Unknown(f"pseudo-code: an assignment to {name}")
        known = self.variables.get(name)
        if known is None:
            if value.kind == "":
                value = self.constant(value.constant or 0, "i", 32)
            known = Value(f"v_{name}".replace("[", "_").replace("]", ""), value.kind, value.width)
            self.variables[name] = known
            if kind:
                value = self.seen_as(value, kind, width)
                known = self.variables[name] = Value(known.code, value.kind, value.width)
            return self.emit(f"{known.code} = {value.code}")
        if known.kind == "f":
            code = self.as_float(value, known.width).code
        elif known.kind == "p":
            code = self.condition(value).code
        else:
            code = self.integer(value, known.kind, known.width).code
        self.emit(f"{known.code} = {self.guarded(known.code, code)}")


def compile_instruction(name: str, text: str, *, scalar: bool, widths: dict[str, int], modes: Modes) -> Compiled:
    """`widths` holds the bits of S0, S1, S2 and D0; D0 of width 0 stands for one bit in each lane."""
    emitter = _Emitter(scalar, dict(widths), modes)
    emitter.statements(parse(text))
    head = "def run(S0, S1, S2, D0, SCC, VCC, EXEC, lane, SIMM16, SIMM32):\n  LANES = None\n"
    if not scalar and "lanes" in emitter.written:
        head += "  LANES = NO_LANES\n"
        emitter.constants["NO_LANES"] = np.zeros(modes.wave, np.bool_)
    source = head + "\n".join(emitter.lines) + "\n  return D0, SCC, LANES, EXEC\n"
    space: dict[str, Any] = dict(vars(arithmetic)) | emitter.constants
    exec(compile(source, f"<{name}>", "exec"), space)
    written = emitter.written
    return Compiled(space["run"], source, "SCC" in written, "EXEC" in written, "lanes" in written, "D0" in written)
