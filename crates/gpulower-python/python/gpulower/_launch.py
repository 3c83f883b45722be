"""Launching, for quick work; and the way to the packages that do it for others."""

from __future__ import annotations

import ctypes
import tempfile
import threading
from collections.abc import Sequence
from ctypes import c_void_p
from typing import TYPE_CHECKING, Any, Union

from ._arrays import MemRef, array, parameters, raw
from ._driver import FUNC_MAX_DYNAMIC_SHARED, FUNC_MAX_THREADS_PER_BLOCK, KEPT, Driver, driver
from ._once import once

if TYPE_CHECKING:
    from cuda.core import ObjectCode
    from cupy import RawModule

    from ._artifact import Artifact

#: Up to three numbers.
Shape = Union[int, Sequence[int]]

#: Dynamic shared memory that needs no permission.
_USUAL_SHARED = 48 << 10


def native_target() -> str:
    """The chip of the current device, or of the first."""
    cuda = driver()
    device = cuda.integer("cuCtxGetDevice") if cuda.pointer("cuCtxGetCurrent") else cuda.integer("cuDeviceGet", 0)
    major, minor = cuda.capability(device)
    # What belongs to one chip alone, such as wgmma, is there where the kernel runs on nothing else.
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def _three(name: str, shape: Shape) -> tuple[int, int, int]:
    sizes = [shape] if isinstance(shape, int) else list(shape)
    if not 1 <= len(sizes) <= 3 or any(size < 1 for size in sizes):
        raise ValueError(f"a {name} is one to three numbers above zero, and not {shape!r}")
    x, y, z = [*sizes, 1, 1][:3]
    return x, y, z


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream: an object with `__cuda_stream__`, one of torch's or cupy's, a number, or None for the
    default stream."""
    if stream is None:
        return 0
    if isinstance(stream, int):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    for name in ("cuda_stream", "ptr", "handle"):
        handle = getattr(stream, name, None)
        if handle is not None:
            return int(getattr(handle, "value", handle) or 0)
    raise TypeError(f"a {type(stream).__name__} is no stream: it has no __cuda_stream__")


class Launchable:
    """A kernel of an artifact: `artifact["saxpy"](grid, block, stream)(a, x, y)`."""

    def __init__(self, artifact: Artifact, name: str) -> None:
        artifact.kernel(name) if artifact.kernels else None
        if artifact.format not in ("cubin", "fatbin", "ptx"):
            raise TypeError(f"an artifact of the format {artifact.format} is not for NVIDIA's driver to launch")
        self.artifact, self.name = artifact, name

    def __call__(self, grid: Shape, block: Shape, stream: Any = None, *, shared: int = 0) -> Launch:
        """How it is to be launched: blocks, threads of a block, a stream, bytes of dynamic shared memory."""
        return Launch(self, _three("grid", grid), _three("block", block), stream_handle(stream), shared)

    def __repr__(self) -> str:
        return f"<kernel {self.name} of {self.artifact!r}>"

    @once
    def _parameters(self) -> list[Any] | None:
        declared = self.artifact.parameters.get(self.name)
        return None if declared is None else parameters(declared)

    def _function(self, cuda: Driver, device: int) -> int:
        return _loaded(cuda, device, self.artifact).function(self.name)

    def active_blocks(self, threads: int, shared: int = 0) -> int:
        """How many blocks fit on a multiprocessor of the current device, as the driver says."""
        cuda = driver()
        function = self._function(cuda, cuda.device())
        return cuda.integer("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, shared)


class Launch:
    """A kernel with its launch shape, to be called with its arguments."""

    def __init__(
        self,
        kernel: Launchable,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        stream: int,
        shared: int,
    ) -> None:
        self.kernel, self.grid, self.block, self.stream, self.shared = kernel, grid, block, stream, shared

    def __call__(self, *arguments: Any) -> None:
        """Puts the kernel into the stream. Arrays are kept alive until it is done."""
        cuda = driver()
        device = cuda.device()
        values = self._values(cuda, device, arguments)
        function = self.kernel._function(cuda, device)
        self._check(cuda, function)
        pointers = (c_void_p * max(len(values), 1))(*(ctypes.cast(ctypes.byref(value), c_void_p) for value in values))
        cuda.call("cuLaunchKernel", function, *self.grid, *self.block, self.shared, self.stream, pointers, None)
        KEPT.until_done(cuda, self.stream, arguments)

    def _values(self, cuda: Driver, device: int, arguments: tuple[Any, ...]) -> list[Any]:
        name, declared = self.kernel.name, self.kernel._parameters
        given = [self._array(cuda, device, argument) for argument in arguments]
        if declared is None:
            return self._raw(given)
        if len(declared) != len(given):
            raise TypeError(f"{name} takes {len(declared)} arguments, and not {len(given)}")
        settings = self.kernel.artifact.settings
        index = ctypes.c_int32 if settings.get("index-bitwidth") == "32" else ctypes.c_int64
        bare = settings.get("bare-pointers") == "true"
        values: list[Any] = []
        for position, (parameter, argument) in enumerate(zip(declared, given)):
            try:
                values += _passed(parameter, argument, index, bare)
            except (TypeError, ValueError, OverflowError) as error:
                raise type(error)(f"{name}, argument {position}: {error}") from None
        return values

    def _array(self, cuda: Driver, device: int, argument: Any) -> Any:
        found = array(argument, self.stream)
        if found is None or not found.address:
            return argument if found is None else found
        where = cuda.device_of(found.address)
        if where is not None and where != device:
            raise ValueError(f"an array is on device {where}, and the current device is {device}")
        return found

    def _raw(self, given: list[Any]) -> list[Any]:
        artifact, name = self.kernel.artifact, self.kernel.name
        if not artifact.kernels:
            raise TypeError(f"nothing is known of the parameters of {name}: compile it to machine code, or from MLIR")
        sizes = [parameter["size"] for parameter in artifact.kernel(name).details["parameters"]]
        if len(sizes) != len(given):
            raise TypeError(
                f"{name} has {len(sizes)} parameters, and was given {len(given)}; its source declares no types"
            )
        return [raw(argument, size) for argument, size in zip(given, sizes)]

    def _check(self, cuda: Driver, function: int) -> None:
        threads = self.block[0] * self.block[1] * self.block[2]
        most = cuda.integer("cuFuncGetAttribute", FUNC_MAX_THREADS_PER_BLOCK, function)
        if threads > most:
            raise ValueError(f"{self.kernel.name} runs with {most} threads in a block at most, and not with {threads}")
        if self.shared > _USUAL_SHARED:
            cuda.call("cuFuncSetAttribute", function, FUNC_MAX_DYNAMIC_SHARED, self.shared)


def _passed(parameter: Any, argument: Any, index: Any, bare: bool) -> list[Any]:
    from ._arrays import Array

    if not isinstance(parameter, MemRef):
        if isinstance(argument, Array):
            raise TypeError(f"{parameter.text} wants a number, and not an array")
        return [parameter.value(argument, index)]
    if not parameter.dtype:
        # A bare address.
        return [c_void_p(argument.address if isinstance(argument, Array) else int(argument))]
    if not isinstance(argument, Array):
        raise TypeError(f"{parameter.text} wants an array in device memory, and not {type(argument).__name__}")
    parameter.check(argument)
    return parameter.descriptor(argument, index, bare)


class _Loaded:
    """A module that the driver has loaded into a context; it stays there for the life of the process."""

    def __init__(self, cuda: Driver, artifact: Artifact) -> None:
        content = artifact.bytes + (b"\0" if artifact.format == "ptx" else b"")
        self._cuda, self._content = cuda, content
        self._module = cuda.pointer("cuModuleLoadData", content)
        self._functions: dict[str, int] = {}

    def function(self, name: str) -> int:
        """The driver's handle of a kernel."""
        if name not in self._functions:
            self._functions[name] = self._cuda.pointer("cuModuleGetFunction", self._module, name.encode())
        return self._functions[name]


_MODULES: dict[tuple[int, bytes], _Loaded] = {}
_LOADING = threading.Lock()


def _loaded(cuda: Driver, device: int, artifact: Artifact) -> _Loaded:
    del device
    key = (cuda.pointer("cuCtxGetCurrent"), artifact.bytes)
    with _LOADING:
        if key not in _MODULES:
            _MODULES[key] = _Loaded(cuda, artifact)
        return _MODULES[key]


def to_cuda_core(artifact: Artifact) -> ObjectCode:
    """The object that `cuda.core` loads and launches."""
    try:
        from cuda.core import ObjectCode
    except ImportError:
        from cuda.core.experimental import ObjectCode
    makers = {"cubin": "from_cubin", "ptx": "from_ptx", "fatbin": "from_fatbin", "object": "from_object"}
    maker = makers.get(artifact.format)
    if maker is None:
        raise TypeError(f"cuda.core takes cubins, PTX and fat binaries, and not {artifact.format}")
    made: ObjectCode = getattr(ObjectCode, maker)(artifact.bytes, name=artifact.module)
    return made


def to_cupy(artifact: Artifact) -> RawModule:
    """The module that cupy loads: a cubin, PTX or a fat binary."""
    import cupy

    if artifact.format not in ("cubin", "ptx", "fatbin"):
        raise TypeError(f"cupy takes cubins, PTX and fat binaries, and not {artifact.format}")
    # It takes files alone, and reads them when it is told to compile.
    with tempfile.NamedTemporaryFile(suffix=f".{artifact.extension}") as file:
        file.write(artifact)
        file.flush()
        module = cupy.RawModule(path=file.name)
        module.compile()
    return module
