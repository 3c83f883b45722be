"""The few functions of the CUDA driver that a launch needs, through ctypes. The driver is loaded when it is first used."""

from __future__ import annotations

import collections
import ctypes
import functools
import threading
from ctypes import POINTER, byref, c_char_p, c_int, c_uint, c_void_p
from typing import Any

from ._errors import ToolkitError


class DriverError(RuntimeError):
    """A call of the CUDA driver failed."""


_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGet": (POINTER(c_int), c_int),
    "cuDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "cuDevicePrimaryCtxRetain": (POINTER(c_void_p), c_int),
    "cuCtxGetCurrent": (POINTER(c_void_p),),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxGetDevice": (POINTER(c_int),),
    "cuCtxSynchronize": (),
    "cuModuleLoadData": (POINTER(c_void_p), c_char_p),
    "cuModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "cuFuncGetAttribute": (POINTER(c_int), c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": (POINTER(c_int), c_void_p, c_int, ctypes.c_size_t),
    "cuPointerGetAttribute": (c_void_p, c_int, ctypes.c_uint64),
    "cuLaunchKernel": (c_void_p, *(7 * (c_uint,)), c_void_p, POINTER(c_void_p), c_void_p),
    "cuEventCreate": (POINTER(c_void_p), c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventQuery": (c_void_p,),
    "cuEventDestroy_v2": (c_void_p,),
}

# Numbers of `cuda.h`.
CAPABILITY_MAJOR, CAPABILITY_MINOR = 75, 76
FUNC_MAX_DYNAMIC_SHARED = 8
FUNC_MAX_THREADS_PER_BLOCK = 0
POINTER_DEVICE_ORDINAL = 9
EVENT_DISABLE_TIMING = 2
NOT_READY = 600
INVALID_VALUE = 1


class Driver:
    """The driver, initialised."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise ToolkitError(f"a launch needs NVIDIA's driver, and libcuda.so.1 cannot be loaded: {error}") from error
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.argtypes, function.restype = arguments, c_int
        self.call("cuInit", 0)

    def status(self, name: str, *arguments: Any) -> int:
        """Calls a function."""
        return int(getattr(self._library, name)(*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        """Calls a function that is not to fail."""
        status = self.status(name, *arguments)
        if status:
            text = c_char_p()
            self._library.cuGetErrorName(status, byref(text))
            said = text.value.decode() if text.value else "an unknown error"
            raise DriverError(f"{name}: {said} ({status})")

    def integer(self, name: str, *arguments: Any) -> int:
        """What a function gives that begins with an `int *`."""
        value = c_int()
        self.call(name, byref(value), *arguments)
        return value.value

    def pointer(self, name: str, *arguments: Any) -> int:
        """What a function gives that begins with a pointer to a handle."""
        value = c_void_p()
        self.call(name, byref(value), *arguments)
        return value.value or 0

    def device(self) -> int:
        """The device of the current context; where there is none, the primary context of the first device is made current,
        as CUDA's runtime does."""
        if not self.pointer("cuCtxGetCurrent"):
            self.call("cuCtxSetCurrent", self.pointer("cuDevicePrimaryCtxRetain", 0))
        return self.integer("cuCtxGetDevice")

    def capability(self, device: int) -> tuple[int, int]:
        """The compute capability of a device."""
        major = self.integer("cuDeviceGetAttribute", CAPABILITY_MAJOR, device)
        return major, self.integer("cuDeviceGetAttribute", CAPABILITY_MINOR, device)

    def device_of(self, address: int) -> int | None:
        """The device whose memory is at an address; None where the driver does not know it."""
        value = c_int()
        status = self.status(
            "cuPointerGetAttribute", ctypes.cast(byref(value), c_void_p), POINTER_DEVICE_ORDINAL, address
        )
        if status == INVALID_VALUE:
            return None
        if status:
            raise DriverError(f"cuPointerGetAttribute: {status}")
        return value.value


@functools.lru_cache(maxsize=1)
def driver() -> Driver:
    """The driver of this process."""
    return Driver()


class Kept:
    """What kernels use that may not have ended yet."""

    def __init__(self) -> None:
        self._held: collections.deque[tuple[int, object]] = collections.deque()
        self._lock = threading.Lock()

    def until_done(self, driver: Driver, stream: int, values: object) -> None:
        """Keeps values alive until what was put into the stream so far is done."""
        event = driver.pointer("cuEventCreate", EVENT_DISABLE_TIMING)
        driver.call("cuEventRecord", event, stream)
        with self._lock:
            self._held.append((event, values))
            pending = len(self._held)
            for _ in range(pending):
                event, held = self._held.popleft()
                if driver.status("cuEventQuery", event) == NOT_READY:
                    self._held.append((event, held))
                else:
                    driver.status("cuEventDestroy_v2", event)


KEPT = Kept()
