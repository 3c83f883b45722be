"""Conversions of 8-bit floats, in all formats of MLIR: every one of the 256, and numbers around each boundary between two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .case import Array, Case, Inputs, Launch

F64 = np.float64


@dataclass(frozen=True)
class Format:
    """`infinity`: its bits, if there is one. `nan`: the first bits that are no number; where there is one zero, 0x80 alone."""

    fraction: int
    bias: int
    infinity: int | None
    nan: int

    @property
    def one_zero(self) -> bool:
        return self.nan == 0x80

    def values(self) -> Array:
        """What each of the 256 bytes is, in float64."""
        byte = np.arange(256)
        size, sign = byte & 0x7F, np.where(byte & 0x80, -1.0, 1.0)
        exponent, fraction = size >> self.fraction, size & (1 << self.fraction) - 1
        steps = np.where(exponent > 0, fraction + (1 << self.fraction), fraction)
        result = sign * steps * 2.0 ** (np.maximum(exponent, 1) - self.bias - self.fraction)
        if self.one_zero:
            return np.where(byte == 0x80, np.nan, result)
        result = np.where(size >= self.nan, np.nan, result)
        return result if self.infinity is None else np.where(size == self.infinity, sign * np.inf, result)

    def nearest(self, numbers: Array) -> Array:
        """The bytes of numbers, rounded to nearest even; what is too large becomes the largest, and what is no number -1."""
        values = self.values()[:128]
        finite = np.flatnonzero(np.isfinite(values))
        sizes = np.abs(numbers.astype(F64))
        above = np.clip(np.searchsorted(values[finite], sizes), 1, len(finite) - 1)
        low, high = values[above - 1], values[above]
        middle = (low + high) / 2
        byte = np.where(sizes > middle, above, above - 1)
        byte = np.where(sizes == middle, np.where(above % 2 == 0, above, above - 1), byte)
        if self.infinity is not None:
            byte = np.where(np.isinf(sizes), self.infinity, byte)
        negative = np.signbit(numbers) & ~(self.one_zero & (byte == 0))
        byte = byte | np.where(negative, 0x80, 0)
        none = np.isnan(sizes) | (np.isinf(sizes) & (self.infinity is None))
        return np.where(none, -1, byte)


FORMATS = (
    Format(3, 7, None, 0x7F),
    Format(2, 15, 0x7C, 0x7D),
    Format(3, 8, None, 0x80),
    Format(2, 16, None, 0x80),
    Format(3, 7, 0x78, 0x79),
    Format(4, 3, 0x70, 0x71),
    Format(3, 11, None, 0x80),
)


# Every type has it, and no 8-bit float is it.
NOT_A_NUMBER = 12344.0


def _without_nan(numbers: Array) -> Array:
    return np.where(np.isnan(numbers), NOT_A_NUMBER, numbers)


def _bytes(output: Array) -> Array:
    """The bytes, with -1 for each that is no number: which of them it is, is open."""
    columns = zip(FORMATS, output.view(np.uint8).astype(int).T, strict=True)
    return np.stack([np.where(np.isnan(form.values())[column], -1, column) for form, column in columns], axis=1)


def widen(kind: Any) -> Callable[[np.random.Generator, bool], Iterator[Launch]]:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        expected = _without_nan(np.stack([form.values() for form in FORMATS], axis=1))
        inputs = Inputs().array("x", np.arange(256).astype(np.int8)).out("y", (256, 7), kind, np.full((256, 7), 5))
        yield inputs.launch("all bytes", (4,), (64,), expected, 0, compared=_without_nan)

    return launches


def narrow(kind: Any) -> Callable[[np.random.Generator, bool], Iterator[Launch]]:
    def launches(rng: np.random.Generator, large: bool) -> Iterator[Launch]:
        numbers = _around_boundaries(kind)
        numbers = numbers if large else rng.choice(numbers, 448, replace=False)
        special = np.array([0, np.inf, np.nan, 1e-40, 2e-7, np.finfo(kind).max, np.finfo(kind).tiny, 464, 65536, 61440], F64)
        with np.errstate(over="ignore"):
            special = np.concatenate([special, np.full(22, 1.0)]).astype(kind)
        numbers = np.concatenate([numbers, -special, special])
        numbers = np.pad(numbers, (0, -len(numbers) % 64))
        expected = np.stack([form.nearest(numbers) for form in FORMATS], axis=1)
        inputs = Inputs().array("x", numbers).out("y", expected.shape, np.int8)
        yield inputs.launch(f"n={len(numbers)}", (len(numbers) // 64,), (64,), expected, 0, compared=_bytes)

    return launches


def _around_boundaries(kind: Any) -> Array:
    """Each value, what lies in the middle of two, and their neighbours on both sides."""
    found = []
    for form in FORMATS:
        values = np.sort(form.values()[np.isfinite(form.values())])
        points = np.concatenate([values, (values[1:] + values[:-1]) / 2]).astype(kind)
        found += [points, np.nextafter(points, kind(np.inf)), np.nextafter(points, kind(-np.inf))]
    everything = np.concatenate(found)
    if kind is F64:
        # What f32 would round to a middle, on either side of it.
        everything = np.concatenate([everything, everything * (1 + 2.0**-40), everything * (1 - 2.0**-40)])
    return everything[np.isfinite(everything)]


CASES = tuple(
    Case(f"{name}_{kind.__name__.replace('float', 'f')}", "tests/amd/kernels/small_floats.mlir", make(kind))
    for name, make in (("widen", widen), ("narrow", narrow))
    for kind in (np.float32, np.float16, np.float64)
)
