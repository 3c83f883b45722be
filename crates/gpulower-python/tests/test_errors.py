"""What goes wrong."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import gpulower
from conftest import BROKEN, SAXPY, kernel
from gpulower import _errors


def broken() -> gpulower.Error:
    with pytest.raises(gpulower.InputError) as raised:
        gpulower.compile(BROKEN, "sm_90", name="broken.mlir")
    return raised.value


def test_the_place_and_a_caret() -> None:
    error = broken()
    assert (error.code, error.stage) == ("E0101", "input")
    assert (error.file, error.line, error.column) == ("broken.mlir", 3, 5)
    assert str(error).startswith("broken.mlir:3:5: input: ")
    assert str(error).splitlines()[-2:] == [" 3 |     arith.nonsense", "   |     ^"]


def test_errors_travel() -> None:
    error = broken()
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is gpulower.InputError
    assert (str(again), again.line, again.excerpt) == (str(error), error.line, error.excerpt)


def test_everything_that_failed_is_told() -> None:
    # An operation of AMD's in a kernel for NVIDIA, twice.
    source = kernel(1).replace("gpu.return", "rocdl.s.barrier\n gpu.return")
    source += kernel(2).replace("gpu.return", "rocdl.s.barrier\n gpu.return")
    with pytest.raises(gpulower.LoweringError) as raised:
        gpulower.Compiler().compile_all(source, "sm_90")
    error = raised.value
    assert [each.module for each in error.errors] == ["m1", "m2"]
    assert "module m2" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert [each.module for each in again.errors] == ["m1", "m2"]


def test_codes_are_those_of_the_documentation() -> None:
    page = Path(__file__).parents[3] / "docs/errors.md"
    listed = {line.split("|")[1].strip() for line in page.read_text().splitlines() if line.startswith("| E")}
    assert listed == set(_errors.KINDS)
    for code, kind in _errors.KINDS.items():
        assert kind.__doc__ is not None
        assert kind.__doc__.startswith(code)


def test_what_python_calls_by_its_own_names() -> None:
    assert issubclass(gpulower.TimeLimitError, TimeoutError)
    assert issubclass(gpulower.MemoryLimitError, MemoryError)
    with pytest.raises(TimeoutError):
        gpulower.compile(SAXPY, "sm_90", time_limit=0.000001, cache=False)
