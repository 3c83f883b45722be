"""Arrays of other packages, and what a kernel's parameters are made of."""

from __future__ import annotations

import ctypes
import re
import struct
from dataclasses import dataclass
from typing import Any

#: Types of elements in MLIR, as the array interface and DLPack call them: kind and bytes.
_CODES = {"f": 2, "i": 0, "u": 1, "bf": 4, "b": 6, "c": 5}


@dataclass(frozen=True)
class Array:
    """An array in device memory."""

    address: int
    #: Such as `f4`, `bf2`, `i8`, `u1`, `b1`.
    dtype: str
    shape: tuple[int, ...]
    #: In elements.
    strides: tuple[int, ...]
    #: What keeps the memory alive.
    owner: object

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return int(re.sub(r"\D", "", self.dtype))


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array without gaps."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class _Device(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("number", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    # `DLTensor` of dlpack.h.
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


#: `kDLCUDA` and `kDLCUDAManaged` of dlpack.h.
_CUDA_DEVICES = (2, 13)


def array(value: object, stream: int) -> Array | None:
    """A value that is an array in device memory; None for others. What its owner has enqueued on other streams is waited for
    by what comes later in `stream`, as far as the protocols say."""
    # torch refuses the interface where gradients are recorded, and has no name for bfloat16 in it; DLPack has.
    try:
        interface = getattr(value, "__cuda_array_interface__", None)
    except Exception:
        interface = None
    if isinstance(interface, dict) and _named(interface["typestr"]):
        return _of_interface(value, interface)
    if hasattr(value, "__dlpack__"):
        return _of_dlpack(value, stream)
    return None


def _named(typestr: str) -> str | None:
    return typestr[1:] if typestr[0] in "<|=" and typestr[1] in "fiubc" else None


def _of_interface(value: object, interface: dict[str, Any]) -> Array:
    dtype = _named(interface["typestr"])
    assert dtype is not None
    shape = tuple(interface["shape"])
    size = int(dtype[1:])
    strides = interface.get("strides")
    steps = contiguous(shape) if strides is None else tuple(_divided(stride, size) for stride in strides)
    return Array(interface["data"][0], dtype, shape, steps, value)


def _divided(stride: int, size: int) -> int:
    if stride % size:
        raise TypeError(
            f"an array whose stride of {stride} bytes is no multiple of its elements of {size} cannot be passed"
        )
    return stride // size


def _of_dlpack(value: Any, stream: int) -> Array:
    if hasattr(value, "__dlpack_device__") and int(value.__dlpack_device__()[0]) not in _CUDA_DEVICES:
        raise TypeError(f"a {type(value).__name__} that is not in device memory cannot be passed")
    detached = value.detach() if getattr(value, "requires_grad", False) else value
    try:
        # 1 is the legacy default stream, which DLPack does not call 0.
        capsule = detached.__dlpack__(stream=stream or 1)
    except TypeError:
        capsule = detached.__dlpack__()
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.argtypes, pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p
    # The name stays as it is: the capsule frees its tensor itself when it goes.
    tensor = _Tensor.from_address(pointer_of(capsule, b"dltensor"))
    if tensor.device.kind not in _CUDA_DEVICES:
        raise TypeError(f"a {type(value).__name__} that is not in device memory cannot be passed")
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    strides = tuple(tensor.strides[i] for i in range(tensor.ndim)) if tensor.strides else contiguous(shape)
    names = {code: name for name, code in _CODES.items()}
    if tensor.lanes != 1 or tensor.code not in names or tensor.bits % 8:
        raise TypeError(f"a {type(value).__name__} whose elements have no type of MLIR cannot be passed")
    dtype = f"{names[tensor.code]}{tensor.bits // 8}"
    return Array((tensor.data or 0) + tensor.byte_offset, dtype, shape, strides, (value, capsule))


@dataclass(frozen=True)
class MemRef:
    """A parameter of MLIR's type `memref`; None where the type leaves it open."""

    text: str
    dtype: str
    shape: tuple[int | None, ...]
    #: None for the layout of an array without gaps.
    strides: tuple[int | None, ...] | None
    offset: int | None

    def check(self, given: Array) -> None:
        """Refuses what the kernel would misunderstand."""
        wanted, got = _same(self.dtype), _same(given.dtype)
        if wanted != got:
            raise TypeError(f"{self.text} wants elements of {self.dtype}, and the array has {given.dtype}")
        if len(self.shape) != len(given.shape):
            raise TypeError(f"{self.text} has {len(self.shape)} dimensions, and the array {len(given.shape)}")
        for axis, (size, its) in enumerate(zip(self.shape, given.shape)):
            if size is not None and size != its:
                raise ValueError(f"{self.text} has size {size} in dimension {axis}, and the array {its}")
        strides = contiguous(given.shape) if self.strides is None else self.strides
        for axis, (step, its) in enumerate(zip(strides, given.strides)):
            if step is not None and step != its and given.shape[axis] > 1 and 0 not in given.shape:
                layout = "an array without gaps" if self.strides is None else f"a stride of {step} in dimension {axis}"
                raise ValueError(f"{self.text} wants {layout}, and the array has a stride of {its} in dimension {axis}")

    def descriptor(self, given: Array, index: type[ctypes.c_int64] | type[ctypes.c_int32], bare: bool) -> list[Any]:
        """The kernel's parameters: pointers, offset, sizes, strides; or one pointer."""
        address = given.address - (self.offset or 0) * given.itemsize
        pointer = ctypes.c_void_p(address)
        if bare and None not in self.shape:
            return [pointer]
        offset = index(self.offset or 0)
        return [pointer, ctypes.c_void_p(address), offset, *map(index, given.shape), *map(index, given.strides)]


def _same(dtype: str) -> str:
    """Types that are one for MLIR, whose integers have no sign."""
    return {"u": "i", "b": "i"}.get(dtype[0], dtype[0]) + dtype[1:] if not dtype.startswith("bf") else dtype


@dataclass(frozen=True)
class Scalar:
    """A parameter that is a number, or an address."""

    text: str

    def value(self, given: Any, index: type[ctypes.c_int64] | type[ctypes.c_int32]) -> Any:
        """The kernel's parameter."""
        if self.text == "index":
            return index(_integer(self.text, given))
        if self.text in _FLOATS:
            if isinstance(given, bool) or not hasattr(given, "__float__"):
                raise TypeError(f"{self.text} wants a number, and not {type(given).__name__}")
            return _FLOATS[self.text](float(given))
        bits = int(self.text[1:])
        number = _integer(self.text, given)
        if not -(1 << (bits - 1)) <= number < 1 << bits:
            raise OverflowError(f"{number} does not fit into {self.text}")
        kind = {1: ctypes.c_uint8, 8: ctypes.c_uint8, 16: ctypes.c_uint16, 32: ctypes.c_uint32, 64: ctypes.c_uint64}[
            bits
        ]
        return kind(number & ((1 << bits) - 1))


def _integer(text: str, given: Any) -> int:
    try:
        return int(given.__index__())
    except AttributeError:
        raise TypeError(f"{text} wants an integer, and not {type(given).__name__}") from None


def _half(number: float) -> ctypes.c_uint16:
    return ctypes.c_uint16(struct.unpack("<H", struct.pack("<e", number))[0])


def _bfloat(number: float) -> ctypes.c_uint16:
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    if number != number:
        return ctypes.c_uint16(bits >> 16 | 0x40)
    # To the nearest, ties to even.
    return ctypes.c_uint16(bits + 0x7FFF + (bits >> 16 & 1) >> 16)


_FLOATS: dict[str, Any] = {"f64": ctypes.c_double, "f32": ctypes.c_float, "f16": _half, "bf16": _bfloat}

_ELEMENTS = {
    "f64": "f8",
    "f32": "f4",
    "f16": "f2",
    "bf16": "bf2",
    "i64": "i8",
    "i32": "i4",
    "i16": "i2",
    "i8": "i1",
    "i1": "b1",
}
_ELEMENTS["complex<f32>"], _ELEMENTS["complex<f64>"] = "c8", "c16"


def parameters(function: str) -> list[MemRef | Scalar]:
    """The parameters of a kernel of the type `(memref<?xf32>, f32) -> ()`."""
    inside = function[function.index("(") + 1 : function.rindex(") ->")]
    return [_parameter(text) for text in _split(inside)]


def _split(text: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for position, character in enumerate(text):
        if character in "<([{":
            depth += 1
        # The arrow of an affine map closes nothing.
        elif character in ">)]}" and text[position - 1 : position + 1] != "->":
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[begin:position].strip())
            begin = position + 1
    last = text[begin:].strip()
    return [*parts, last] if last else parts


def _parameter(text: str) -> MemRef | Scalar:
    if text == "index" or text in _FLOATS or text in ("i1", "i8", "i16", "i32", "i64"):
        return Scalar(text)
    if text.startswith("!llvm.ptr"):
        return MemRef(text, "", (), None, None)
    if not text.startswith("memref<"):
        raise TypeError(f"a parameter of the type {text} cannot be passed from Python")
    body, *rest = _split(text[len("memref<") : -1])
    *sizes, element = body.split("x") if "complex" not in body else [*body.split("x")[:-1], body.rsplit("x", 1)[-1]]
    # `index` has an x in it.
    if sizes and sizes[-1] == "inde":
        sizes.pop()
        element = "index"
    dtype = "i8" if element == "index" else _ELEMENTS.get(element)
    if dtype is None or "*" in sizes:
        raise TypeError(f"a parameter of the type {text} cannot be passed from Python")
    shape = tuple(None if size == "?" else int(size) for size in sizes)
    strides: tuple[int | None, ...] | None = None
    offset: int | None = 0
    for part in rest:
        layout = re.fullmatch(r"strided<\[(.*)\](?:, offset: (\?|-?\d+))?>", part)
        if layout:
            strides = tuple(None if step.strip() == "?" else int(step) for step in layout[1].split(",") if step.strip())
            offset = None if layout[2] == "?" else int(layout[2] or 0)
        elif part.startswith("affine_map"):
            raise TypeError(
                f"a parameter of the type {text} cannot be passed from Python: write its layout as strided<...>"
            )
    return MemRef(text, dtype, shape, strides, offset)


def raw(given: Any, size: int) -> Any:
    """An argument for a kernel of which no more than the sizes of parameters is known."""
    if isinstance(given, Array):
        return ctypes.c_void_p(given.address)
    if isinstance(given, ctypes._SimpleCData):
        return given
    number = given.item() if hasattr(given, "item") else given
    if isinstance(number, float):
        kinds: dict[int, Any] = {8: ctypes.c_double, 4: ctypes.c_float}
    elif isinstance(number, int):
        kinds = {8: ctypes.c_int64, 4: ctypes.c_int32, 2: ctypes.c_int16, 1: ctypes.c_int8}
    else:
        raise TypeError(f"a {type(given).__name__} cannot be passed to a kernel")
    if size not in kinds:
        raise TypeError(f"a parameter of {size} bytes is no {type(number).__name__}: pass a value of ctypes")
    return kinds[size](number)
