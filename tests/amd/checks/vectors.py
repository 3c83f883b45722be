"""Kernels at random of the vector dialect's operations: executed by one lane, and computed by numpy. Both have to be the same.

`cargo xtask amd -- vectors --count 100 --target gfx942,gfx1100 --options=,-O1`; the tests run a few.

A kernel reads vectors from memory, whole or in part, makes others of them, and writes those.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Argument, Buffer, execute, memref
from amdexec.traps import Trap

Array = Any
BATCH = 25
KINDS = {"f32": np.float32, "i32": np.int32, "i8": np.int8, "f16": np.float16, "i64": np.int64, "f64": np.float64, "i16": np.int16}


def vector(shape: tuple[int, ...], kind: str) -> str:
    return f"vector<{'x'.join([*map(str, shape), kind])}>"


def listed(numbers: Any) -> str:
    return f"[{', '.join(map(str, numbers))}]"


@dataclass(frozen=True)
class Value:
    name: str
    kind: str
    array: Array

    @property
    def type(self) -> str:
        return vector(self.array.shape, self.kind)


@dataclass(frozen=True)
class Transfer:
    """The shape of memory, where it begins, the mask and the attributes, and which element is which."""

    sizes: tuple[int, ...]
    at: str
    how: str
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]


@dataclass
class Kernel:
    """The text of a function so far, and what it computes."""

    rng: np.random.Generator
    name: str
    lines: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    arguments: list[Argument] = field(default_factory=list)
    expected: dict[str, Array] = field(default_factory=dict)
    values: list[Value] = field(default_factory=list)
    count: int = 0

    # -- pieces of text

    def fresh(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def below(self, limit: int, low: int = 0) -> int:
        return int(self.rng.integers(low, limit))

    def one_of(self, choices: Any) -> Any:
        choices = list(choices)
        return choices[self.below(len(choices))]

    def maybe(self, part: float = 0.5) -> bool:
        return bool(self.rng.random() < part)

    def shape(self, rank: int, least: int = 1, most: int = 5) -> tuple[int, ...]:
        return tuple(self.below(most + 1, least) for _ in range(rank))

    def numbers(self, shape: tuple[int, ...], kind: str) -> Array:
        return self.rng.integers(-4, 5, shape).astype(KINDS[kind])

    def give(self, text: str, kind: str, array: Array) -> Value:
        """An operation whose result is an array."""
        value = Value(self.fresh(), kind, np.asarray(array))
        self.lines.append(f"{value.name} = {text}")
        if value.array.size <= 64 and value.array.ndim and kind != "i1":
            self.values.append(value)
        return value

    def index(self, number: int) -> str:
        """A number as an index: a constant, or read from memory so that no pass knows it."""
        name = self.fresh()
        if self.maybe():
            self.lines.append(f"{name} = arith.constant {number} : index")
        else:
            self.lines.append(f"{name} = memref.load %numbers[%at{number}] : memref<32xindex>")
        return name

    def constant_of(self, number: int, kind: str, type: str = "") -> str:
        """A constant; a vector of equal ones where its type is given."""
        name, text = self.fresh(), f"{number}.0" if kind[0] == "f" else str(number)
        self.lines.append(f"{name} = arith.constant {f'dense<{text}>' if type else text} : {type or kind}")
        return name

    def mask(self, shape: tuple[int, ...]) -> Value:
        if self.maybe():
            bounds = [self.below(size + 2) for size in shape]
            array = np.zeros(shape, bool)
            array[tuple(slice(0, bound) for bound in bounds)] = True
            operands = ", ".join(self.index(bound) for bound in bounds)
            return self.give(f"vector.create_mask {operands} : {vector(shape, 'i1')}", "i1", array)
        wide = self.numbers(shape, "i32")
        left = self.read(wide, "i32")
        return self.give(f"arith.cmpi sgt, {left.name}, {self.constant_of(0, 'i32', left.type)} : {left.type}", "i1", wide > 0)

    # -- memory

    def parameter(self, array: Array, kind: str, writable: bool = False) -> tuple[str, str]:
        name = f"m{len(self.buffers)}"
        sizes = ["?" if self.maybe() else str(size) for size in array.shape]
        text = f"memref<{'x'.join([*sizes, kind])}>"
        self.parameters.append(f"%{name}: {text}")
        self.buffers.append(Buffer(name, array, writable))
        self.arguments += memref(name, array)
        if writable:
            self.expected[name] = array.copy()
        return f"%{name}", text

    def place(self, whole: Array, kind: str, writable: bool = False) -> tuple[str, str, Array]:
        """A memref with the numbers of `whole`: a parameter, or a part of a larger one with strides. The array is a view of it."""
        if self.maybe():
            name, text = self.parameter(whole, kind, writable)
            return name, text, self.expected[name[1:]] if writable else whole
        offsets = [self.below(3) for _ in whole.shape]
        strides = [self.below(3, 1) for _ in whole.shape]
        shape = tuple(o + (n - 1) * s + 1 + self.below(2) for o, n, s in zip(offsets, whole.shape, strides, strict=True))
        within = tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, whole.shape, strides, strict=True))
        larger = self.numbers(shape, kind)
        larger[within] = whole
        name, text = self.parameter(larger, kind, writable)
        view = self.expected[name[1:]][within] if writable else whole
        operands = " ".join(listed(map(self.index, given)) for given in (offsets, whole.shape, strides))
        unknown = ["?"] * whole.ndim
        result, strided = self.fresh(), f"memref<{'x'.join([*unknown, kind])}, strided<{listed(unknown)}, offset: ?>>"
        self.lines.append(f"{result} = memref.subview {name}{operands} : {text} to {strided}")
        return result, strided, view

    def read(self, array: Array, kind: str) -> Value:
        """A vector that is in memory."""
        name, text = self.parameter(array, kind)
        at, of = ", ".join(self.index(0) for _ in array.shape), vector(array.shape, kind)
        if self.maybe(0.8 if array.ndim == 1 else 0.1):
            return self.give(f"vector.load {name}[{at}] : {text}, {of}", kind, array)
        zero, bounds = self.constant_of(0, kind), listed(["true"] * array.ndim)
        return self.give(f"vector.transfer_read {name}[{at}], {zero} {{in_bounds = {bounds}}} : {text}, {of}", kind, array)

    def store(self, value: Value) -> None:
        name, text = self.parameter(self.numbers(value.array.shape, value.kind), value.kind, writable=True)
        self.expected[name[1:]][...] = value.array
        at = ", ".join(self.index(0) for _ in value.array.shape)
        self.lines.append(f"vector.store {value.name}, {name}[{at}] : {text}, {value.type}")

    def transfer(self, shape: tuple[int, ...], rank: int, repeated: float) -> Transfer:
        dims: list[int | None] = [int(d) for d in self.rng.permutation(rank)[: len(shape)]]
        sizes, bounds = list(self.shape(rank)), [True] * len(shape)
        offsets = [self.below(size) for size in sizes]
        for at, dim in enumerate(dims):
            if self.maybe(repeated) and at > 0:
                dims[at] = None
            elif dim is not None:
                offsets[dim] = self.below(3)
                sizes[dim] = max(1, offsets[dim] + shape[at] + self.below(4) - 2)
                bounds[at] = sizes[dim] - offsets[dim] >= shape[at] and self.maybe()
        # A mask has the dimensions of memory's order, without those that are repeated.
        mask, enabled = "", np.ones(shape, bool)
        if self.maybe():
            order = [at for _, at in sorted((d, at) for at, d in enumerate(dims) if d is not None)]
            value = self.mask(tuple(shape[at] for at in order))
            turned = value.array.transpose(np.argsort(order))
            mask = f", {value.name}"
            enabled &= turned.reshape([1 if d is None else shape[at] for at, d in enumerate(dims)])
        pairs = []
        for place in np.argwhere(enabled):
            there = list(offsets)
            for step, dim in zip(place, dims, strict=True):
                if dim is not None:
                    there[dim] += int(step)
            if all(i < n for i, n in zip(there, sizes, strict=True)):
                pairs.append((tuple(place), tuple(there)))
        results = ", ".join("0" if d is None else f"d{d}" for d in dims)
        map = f"affine_map<({', '.join(f'd{n}' for n in range(rank))}) -> ({results})>"
        attributes = f"{{in_bounds = {listed(str(b).lower() for b in bounds)}, permutation_map = {map}}}"
        return Transfer(tuple(sizes), listed(self.index(offset) for offset in offsets), f"{mask} {attributes}", pairs)

    def transfer_read(self) -> None:
        kind, rank = self.one_of(KINDS), self.below(4, 1)
        shape, padding = self.shape(self.below(rank + 1, 1)), self.below(9)
        made = self.transfer(shape, rank, 0.15)
        whole, array = self.numbers(made.sizes, kind), np.full(shape, padding, KINDS[kind])
        name, text, _ = self.place(whole, kind)
        for place, there in made.pairs:
            array[place] = whole[there]
        words = f"vector.transfer_read {name}{made.at}, {self.constant_of(padding, kind)}{made.how} : {text}"
        self.give(f"{words}, {vector(shape, kind)}", kind, array)

    def transfer_write(self, value: Value) -> None:
        made = self.transfer(value.array.shape, self.below(4, value.array.ndim), 0)
        name, text, view = self.place(self.numbers(made.sizes, value.kind), value.kind, writable=True)
        for place, there in made.pairs:
            view[there] = value.array[place]
        self.lines.append(f"vector.transfer_write {value.name}, {name}{made.at}{made.how} : {value.type}, {text}")

    # -- operations on vectors

    def step(self, v: Value) -> None:
        how = self.one_of(("transpose", "extract", "insert"))
        if how != "transpose":
            self.part(v, how)
            return
        order = [int(n) for n in self.rng.permutation(v.array.ndim)]
        result = v.array.transpose(order)
        self.give(f"vector.transpose {v.name}, {listed(order)} : {v.type} to {vector(result.shape, v.kind)}", v.kind, result)

    def part(self, v: Value, how: str) -> None:
        """A part of a vector is taken out, or another one is put there, at positions that are known or not."""
        at = [self.below(n) for n in v.array.shape[: self.below(v.array.ndim + 1, 1)]]
        words, old = listed(str(n) if self.maybe() else self.index(n) for n in at), v.array[tuple(at)]
        of = vector(old.shape, v.kind) if old.ndim else v.kind
        if how == "extract":
            got = self.give(f"vector.extract {v.name}{words} : {of} from {v.type}", v.kind, old)
            if not old.ndim:
                self.give(f"vector.broadcast {got.name} : {of} to {vector((2,), v.kind)}", v.kind, np.broadcast_to(old, (2,)))
            return
        new = self.read(self.numbers(old.shape or (1,), v.kind), v.kind)
        if not old.ndim:
            new = self.give(f"vector.extract {new.name}[0] : {of} from {new.type}", v.kind, new.array[0])
        result = v.array.copy()
        result[tuple(at)] = new.array
        self.give(f"vector.insert {new.name}, {v.name} {words} : {of} into {v.type}", v.kind, result)

    # -- the whole

    def text(self) -> str:
        constants = [f"%at{n} = arith.constant {n} : index" for n in range(32)]
        body = "\n    ".join([*constants, *self.lines])
        return f"  gpu.func @{self.name}({', '.join(self.parameters)}) kernel {{\n    {body}\n    gpu.return\n  }}\n"


def made(seed: int) -> Kernel:
    numbers = np.arange(32)
    kernel = Kernel(
        np.random.default_rng(seed), f"k{seed}", parameters=["%numbers: memref<32xindex>"], arguments=memref("numbers", numbers)
    )
    kernel.buffers.append(Buffer("numbers", numbers))
    for _ in range(kernel.below(6, 2)):
        kernel.transfer_read()
        for _ in range(2):
            kernel.step(kernel.values[-1 - kernel.below(min(len(kernel.values), 3))])
    for value in kernel.values[-4:]:
        if value.array.ndim <= 3:
            kernel.one_of([kernel.store, kernel.transfer_write, kernel.transfer_write])(value)
    return kernel


def executed(image: Path, target: str, kernel: Kernel) -> str:
    try:
        result = execute(codeobject.read(image, target), kernel.name, Geometry((1, 1, 1), (1, 1, 1)), kernel.buffers, kernel.arguments)
    except Trap as trap:
        return f"stopped: {trap}"
    for name, expected in kernel.expected.items():
        different = np.argwhere(result.outputs[name] != expected)
        if len(different):
            at = tuple(map(int, different[0]))
            return f"DIFFERENT: {name}{list(at)} is {result.outputs[name][at]}, not {expected[at]}"
    return "same"


def check(gpulower: str, seeds: range, target: str, options: list[str]) -> list[tuple[int, str]]:
    """(seed, what came of it), of kernels that are compiled together unless one is refused."""
    kernels = [made(seed) for seed in seeds]
    with tempfile.TemporaryDirectory(prefix="gpulower-vectors-") as name:
        source, image = Path(name) / "random.mlir", Path(name) / "random.hsaco"
        source.write_text("gpu.module @random {\n" + "".join(kernel.text() for kernel in kernels) + "}\n")
        command = [gpulower, "compile", str(source), "--no-cache", "--target", target, *options, "-o", str(image)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and len(kernels) > 1:
            return [pair for seed in seeds for pair in check(gpulower, range(seed, seed + 1), target, options)]
        if done.returncode:
            return [(seeds[0], f"refused: {done.stderr.strip()}")]
        return [(seed, executed(image, target, kernel)) for seed, kernel in zip(seeds, kernels, strict=True)]


def main(arguments: list[str]) -> int:
    options = argparse.ArgumentParser(prog="cargo xtask amd -- vectors", description=__doc__)
    options.add_argument("--gpulower", required=True)
    options.add_argument("--target", type=lambda text: text.split(","), default=["gfx942", "gfx1100"])
    options.add_argument("--options", type=lambda text: text.split(","), default=[""], help="settings of gpulower compile, with commas")
    options.add_argument("--seed", type=int, default=1, help="of the first kernel")
    options.add_argument("--count", type=int, default=100)
    chosen = options.parse_args(arguments)
    counts: dict[str, int] = {}
    end = chosen.seed + chosen.count
    for first, target, setting in itertools.product(range(chosen.seed, end, BATCH), chosen.target, chosen.options):
        for seed, verdict in check(chosen.gpulower, range(first, min(first + BATCH, end)), target, setting.split()):
            kind = verdict.split(":")[0]
            counts[kind] = counts.get(kind, 0) + 1
            if kind != "same":
                print(f"{seed} {target} {setting}: {verdict}\n{made(seed).text()}", flush=True)
    print(", ".join(f"{number} {kind}" for kind, number in counts.items()))
    return 0 if counts.keys() == {"same"} else 1
