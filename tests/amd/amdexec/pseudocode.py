"""Reads the pseudo-code in which AMD's ISA manuals define instructions, into a tree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .traps import Unknown


@dataclass(frozen=True)
class Number:
    """A literal. `kind` is "" (takes the type of what it meets), u, i or f."""

    value: int | float
    kind: str
    width: int


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Typed:
    """`value.f32`: the bits of the value, seen as a type."""

    value: Expr
    kind: str
    width: int


@dataclass(frozen=True)
class Bits:
    """`value[high : low]`, or one bit, or an element of an array."""

    value: Expr
    high: Expr
    low: Expr | None


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True)
class Cast:
    """`32'U(value)`."""

    value: Expr
    kind: str
    width: int


@dataclass(frozen=True)
class Unary:
    operator: str
    value: Expr


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Expr
    right: Expr


@dataclass(frozen=True)
class Choice:
    condition: Expr
    yes: Expr
    no: Expr


@dataclass(frozen=True)
class Concat:
    parts: tuple[Expr, ...]


Expr = Number | Name | Typed | Bits | Call | Cast | Unary | Binary | Choice | Concat


@dataclass(frozen=True)
class Assign:
    """`a = b = value`, or `a += value`."""

    targets: tuple[Expr, ...]
    operator: str
    value: Expr


@dataclass(frozen=True)
class If:
    branches: tuple[tuple[Expr, tuple[Stmt, ...]], ...]
    otherwise: tuple[Stmt, ...]


@dataclass(frozen=True)
class For:
    variable: str
    first: Expr
    last: Expr
    body: tuple[Stmt, ...]


@dataclass(frozen=True)
class Break:
    pass


@dataclass(frozen=True)
class Declare:
    name: str
    kind: str
    width: int
    count: int | None


Stmt = Assign | If | For | Break | Declare

_TOKEN = re.compile(
    r"\s+|//[^\n]*"
    r"|(?P<cast>\d+'[UIFB](?=\s*\())"
    r"|(?P<type>\d+'[UIFB])"
    r"|(?P<sized>-?\d+'-?(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)U?)"
    r"|(?P<number>0x[0-9a-fA-F]+(?:ULL|LL|U)?|\d+\.\d+F?|\d+(?:ULL|LL|U)?)"
    r"|(?P<word>[A-Za-z_]\w*)"
    r"|(?P<sign>\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|\+:|[-+*/%&|^~!<>=?:;,.(){}\[\]])"
)
_LAMBDA = re.compile(r"[A-Z_]+ = lambda.*?\)\)\)\);|BYTE_PERMUTE = lambda.*?endif\);", re.S)
_TYPE = re.compile(r"([uifb]|bf|fp)(\d+)")
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!=", "<>"),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
    ("**",),
)


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        self.at = 0
        text = _LAMBDA.sub("", text)
        position = 0
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise Unknown(f"pseudo-code: {text[position : position + 30]!r}")
            if match.lastgroup:
                self.tokens.append((match.lastgroup, match.group()))
            position = match.end()
        self.tokens.append(("end", ""))

    def peek(self, ahead: int = 0) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def take(self) -> tuple[str, str]:
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, text: str) -> bool:
        if self.peek() == text and self.tokens[self.at][0] != "end":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise Unknown(f"pseudo-code: expected {text!r}, found {self.peek()!r}")

    def program(self) -> tuple[Stmt, ...]:
        statements: list[Stmt] = []
        while self.tokens[self.at][0] != "end":
            statements += self.statement()
        return tuple(statements)

    def block(self, *ends: str) -> tuple[Stmt, ...]:
        statements: list[Stmt] = []
        while self.peek() not in ends:
            if self.tokens[self.at][0] == "end":
                raise Unknown("pseudo-code: unexpected end")
            statements += self.statement()
        return tuple(statements)

    def statement(self) -> list[Stmt]:
        if self.accept(";"):
            return []
        if self.accept("declare"):
            return [self.declaration()]
        if self.accept("if"):
            return [self.conditional()]
        if self.accept("for"):
            variable = self.take()[1]
            self.expect("in")
            first = self.expression()
            self.expect(":")
            last = self.expression()
            self.expect("do")
            body = self.block("endfor")
            self.expect("endfor")
            return [For(variable, first, last, body)]
        if self.accept("break"):
            return [Break()]
        return [self.assignment()]

    def declaration(self) -> Declare:
        name = self.take()[1]
        self.expect(":")
        width, kind = self.take()[1].split("'")
        count = None
        if self.accept("["):
            count = int(self.take()[1])
            self.expect("]")
        return Declare(name, kind.lower(), int(width), count)

    def conditional(self) -> If:
        branches = []
        while True:
            condition = self.expression()
            self.expect("then")
            branches.append((condition, self.block("elsif", "else", "endif")))
            if not self.accept("elsif"):
                break
        otherwise = self.block("endif") if self.accept("else") else ()
        self.expect("endif")
        return If(tuple(branches), otherwise)

    def assignment(self) -> Assign:
        targets = [self.unary()]
        operator = self.take()[1]
        if operator not in ("=", "+=", "-="):
            raise Unknown(f"pseudo-code: expected an assignment, found {operator!r}")
        value = self.expression()
        while operator == "=" and self.accept("="):
            targets.append(value)
            value = self.expression()
        return Assign(tuple(targets), operator, value)

    def expression(self) -> Expr:
        condition = self.binary(0)
        if not self.accept("?"):
            return condition
        yes = self.expression()
        self.expect(":")
        return Choice(condition, yes, self.expression())

    def binary(self, level: int) -> Expr:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _LEVELS[level] and self.tokens[self.at][0] == "sign":
            operator = self.take()[1]
            left = Binary(operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Expr:
        if self.tokens[self.at][0] == "sign":
            for operator in ("-", "+", "!", "~"):
                if self.accept(operator):
                    return Unary(operator, self.unary())
        return self.postfix(self.primary())

    def primary(self) -> Expr:
        kind, text = self.take()
        if kind == "number":
            return _number(text)
        if kind == "sized":
            return _sized(text)
        if kind == "cast":
            width, letter = text.split("'")
            self.expect("(")
            value = self.expression()
            self.expect(")")
            return Cast(value, letter.lower(), int(width))
        if text == "(":
            value = self.expression()
            self.expect(")")
            return value
        if text == "{":
            parts = [self.expression()]
            while self.accept(","):
                parts.append(self.expression())
            self.expect("}")
            return Concat(tuple(parts))
        if kind == "word":
            return self.call(text) if self.accept("(") else Name(text)
        raise Unknown(f"pseudo-code: unexpected {text!r}")

    def call(self, name: str) -> Expr:
        arguments = []
        while not self.accept(")"):
            arguments.append(self.expression())
            self.accept(",")
        return Call(name, tuple(arguments))

    def postfix(self, value: Expr) -> Expr:
        while True:
            match = _TYPE.fullmatch(self.peek(1)) if self.peek() == "." else None
            if match:
                self.at += 2
                value = Typed(value, match[1], int(match[2]))
            elif self.peek() == "." and self.tokens[self.at + 1][0] == "word" and isinstance(value, Name):
                self.at += 1
                value = Name(f"{value.name}.{self.take()[1]}")
            elif self.accept("["):
                value = self.slice(value)
            else:
                return value

    def slice(self, value: Expr) -> Expr:
        high = self.expression()
        if self.accept(":"):
            low = self.expression()
            self.expect("]")
            return Bits(value, high, low)
        if self.accept("+:"):
            count = self.expression()
            self.expect("]")
            return Bits(value, Binary("-", Binary("+", high, count), Number(1, "", 32)), high)
        self.expect("]")
        return Bits(value, high, None)


def _number(text: str) -> Number:
    if "." in text:
        return Number(float(text.rstrip("F")), "f", 32 if text.endswith("F") else 64)
    digits = text.rstrip("UL")
    suffix = text[len(digits) :]
    return Number(int(digits, 0), {"": "", "U": "u", "LL": "i", "ULL": "u"}[suffix], 64 if "LL" in suffix else 32)


def _sized(text: str) -> Number:
    width, digits = text.split("'")
    sign = -1 if width.startswith("-") else 1
    if "." in digits:
        return Number(sign * float(digits), "f", abs(int(width)))
    return Number(sign * int(digits.rstrip("U"), 0), "u" if digits.endswith("U") else "", abs(int(width)))


def parse(text: str) -> tuple[Stmt, ...]:
    """The statements of one instruction; `Unknown` where the text is prose rather than a program."""
    return _Parser(text).program()
