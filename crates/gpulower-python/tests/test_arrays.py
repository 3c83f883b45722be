"""What is passed to kernels, without a GPU: descriptors, refusals."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import gpulower
from conftest import SAXPY
from gpulower import _arrays, _launch
from gpulower._arrays import Array, MemRef, Scalar


class Interface:
    """An array by NVIDIA's protocol."""

    def __init__(self, typestr: str, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> None:
        self.__cuda_array_interface__ = {
            "typestr": typestr,
            "shape": shape,
            "strides": strides,
            "data": (4096, False),
            "version": 3,
        }


def given(typestr: str, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Array:
    found = _arrays.array(Interface(typestr, shape, strides), 0)
    assert found is not None
    return found


def parameter(text: str) -> MemRef | Scalar:
    [found] = _arrays.parameters(f"({text}) -> ()")
    return found


def memref(text: str) -> MemRef:
    found = parameter(text)
    assert isinstance(found, MemRef)
    return found


def values(made: list[Any]) -> list[Any]:
    return [value.value for value in made]


def test_types_are_read() -> None:
    declared = "(index, memref<4x?xbf16, strided<[?, 1], offset: ?>, 3>, memref<f64>, i1, memref<?xindex>) -> ()"
    found = _arrays.parameters(declared)
    assert [parameter.text for parameter in found] == [
        "index",
        "memref<4x?xbf16, strided<[?, 1], offset: ?>, 3>",
        "memref<f64>",
        "i1",
        "memref<?xindex>",
    ]
    second, third, last = found[1], found[2], found[4]
    assert isinstance(second, MemRef)
    assert (second.dtype, second.shape, second.strides, second.offset) == ("bf2", (4, None), (None, 1), None)
    assert isinstance(third, MemRef)
    assert third.shape == ()
    assert isinstance(last, MemRef)
    assert last.dtype == "i8"
    assert _arrays.parameters("() -> ()") == []
    for text in ("memref<*xf32>", "vector<4xf32>", "memref<4xf32, affine_map<(d0) -> (d0 * 2)>>"):
        with pytest.raises(TypeError, match="cannot be passed from Python"):
            parameter(text)


def test_descriptors() -> None:
    array = given("<f4", (2, 3))
    assert values(memref("memref<?x?xf32>").descriptor(array, ctypes.c_int64, False)) == [4096, 4096, 0, 2, 3, 3, 1]
    assert values(memref("memref<2x3xf32>").descriptor(array, ctypes.c_int64, True)) == [4096]
    assert len(memref("memref<?x3xf32>").descriptor(array, ctypes.c_int32, True)) == 7
    # The kernel adds an offset that its type names, whatever is passed.
    strided = memref("memref<?xf32, strided<[2], offset: 4>>")
    assert values(strided.descriptor(given("<f4", (3,), (8,)), ctypes.c_int64, False)) == [4080, 4080, 4, 3, 2]
    assert values(memref("memref<f32>").descriptor(given("<f4", ()), ctypes.c_int64, False)) == [4096, 4096, 0]


@pytest.mark.parametrize(
    ("text", "array", "message"),
    [
        ("memref<?xf32>", given("<f8", (4,)), "wants elements of f4, and the array has f8"),
        ("memref<?xf32>", given("<i4", (4,)), "wants elements of f4, and the array has i4"),
        ("memref<?xf32>", given("<f4", (4, 4)), "has 1 dimensions, and the array 2"),
        ("memref<8x?xf32>", given("<f4", (4, 4)), "has size 8 in dimension 0, and the array 4"),
        ("memref<?x?xf32>", given("<f4", (4, 4), (4, 16)), "wants an array without gaps"),
        ("memref<?xf32, strided<[2]>>", given("<f4", (4,)), "wants a stride of 2 in dimension 0"),
    ],
)
def test_arrays_that_do_not_fit(text: str, array: Array, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        memref(text).check(array)


def test_arrays_that_fit() -> None:
    memref("memref<?xi32>").check(given("<u4", (4,)))
    memref("memref<?xi1>").check(given("|b1", (4,)))
    memref("memref<?x?xf32>").check(given("<f4", (1, 4), (1024, 4)))
    memref("memref<?x?xf32, strided<[?, ?], offset: ?>>").check(given("<f4", (4, 4), (4, 16)))


def test_scalars() -> None:
    def passed(text: str, value: Any) -> Any:
        found = parameter(text)
        assert isinstance(found, Scalar)
        return found.value(value, ctypes.c_int64).value

    assert passed("f32", 2) == 2.0
    assert passed("index", -1) == -1
    assert passed("i8", -1) == 255
    assert passed("f16", 1.0) == 0x3C00
    assert passed("bf16", 1.0) == 0x3F80
    # Half way between two: the even one.
    assert passed("bf16", 1.00390625) == 0x3F80
    assert passed("bf16", 1.01171875) == 0x3F82
    assert passed("bf16", float("nan")) & 0x7FC0 == 0x7FC0
    with pytest.raises(TypeError, match="i32 wants an integer, and not float"):
        passed("i32", 1.5)
    with pytest.raises(TypeError, match="f32 wants a number, and not str"):
        passed("f32", "1")
    with pytest.raises(OverflowError, match="300 does not fit into i8"):
        passed("i8", 300)


def test_dlpack_of_the_host_is_refused() -> None:
    import numpy

    with pytest.raises(TypeError, match="a ndarray that is not in device memory cannot be passed"):
        _arrays.array(numpy.zeros(4, numpy.float32), 0)


def test_streams() -> None:
    class Protocol:
        def __cuda_stream__(self) -> tuple[int, int]:
            return (0, 42)

    class Torch:
        cuda_stream = 43

    assert [_launch.stream_handle(stream) for stream in (None, 7, Protocol(), Torch())] == [0, 7, 42, 43]
    with pytest.raises(TypeError, match="a str is no stream"):
        _launch.stream_handle("default")


def test_what_cannot_be_launched() -> None:
    with pytest.raises(TypeError, match="hsaco is not for NVIDIA's driver"):
        gpulower.compile(SAXPY, "gfx942")["saxpy"]
    saxpy = gpulower.compile(SAXPY, "sm_90")["saxpy"]
    with pytest.raises(ValueError, match="a grid is one to three numbers above zero"):
        saxpy(0, 32)


def test_cuda_core_takes_it() -> None:
    """Without a GPU it loads nothing yet, but holds the code."""
    artifact = gpulower.compile(SAXPY, "sm_90")
    code = artifact.to_cuda_core()
    assert code.code == artifact.bytes
    with pytest.raises(TypeError, match=r"cuda\.core takes cubins, PTX and fat binaries, and not hsaco"):
        gpulower.compile(SAXPY, "gfx942").to_cuda_core()
