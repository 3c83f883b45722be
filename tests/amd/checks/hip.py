"""Executes launches by HIP's API, on a GPU or on what stands for one: the same lines of JSON as `checks.differ` reads and writes.

`python -m checks.hip` uses the first libamdhip64 that the system's loader finds, and its first device.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so")
TO_DEVICE, TO_HOST = 1, 2
# hipDeviceProp_t of ROCm 6 and later; its field gcnArchName.
PROPERTIES, ARCHITECTURE = 1472, slice(1160, 1416)

Address = ctypes.c_uint64


class Refused(Exception):
    """A call that failed."""


def library() -> ctypes.CDLL:
    for name in NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError as problem:
            last = problem
    raise Refused(f"no library of HIP's: {last}")


class Device:
    """The first device. A call that fails is a `Refused`."""

    def __init__(self) -> None:
        self.hip = library()
        self.hip.hipGetErrorName.restype = ctypes.c_char_p
        self.call("hipInit", 0)

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.hip, name)(*arguments)
        if code:
            raise Refused(f"{name}: {self.hip.hipGetErrorName(code).decode()}")

    def target(self) -> str:
        properties = ctypes.create_string_buffer(2 * PROPERTIES)
        self.call("hipGetDevicePropertiesR0600", properties, 0)
        return properties.raw[ARCHITECTURE].split(b"\0")[0].decode()

    @contextmanager
    def memory(self, contents: list[bytes]) -> Iterator[list[Address]]:
        """Copies on the device."""
        made: list[Address] = []
        try:
            for content in contents:
                address = Address()
                self.call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(len(content) or 1))
                made.append(address)
                self.call("hipMemcpy", address, content, ctypes.c_size_t(len(content)), TO_DEVICE)
            yield made
        finally:
            for address in made:
                self.hip.hipFree(address)

    @contextmanager
    def module(self, image: bytes) -> Iterator[ctypes.c_void_p]:
        module = ctypes.c_void_p()
        self.call("hipModuleLoadDataEx", ctypes.byref(module), image, 0, None, None)
        try:
            yield module
        finally:
            self.hip.hipModuleUnload(module)

    def launch(self, request: dict[str, Any]) -> list[bytes]:
        contents = [bytes.fromhex(content) for content, _ in request["storages"]]
        with self.module(Path(request["image"]).read_bytes()) as module, self.memory(contents) as addresses:
            function = ctypes.c_void_p()
            self.call("hipModuleGetFunction", ctypes.byref(function), module, request["kernel"].encode())
            given = [bytes(addresses[word]) if isinstance(word, int) else bytes.fromhex(word) for word in request["arguments"]]
            words = [ctypes.create_string_buffer(word, len(word)) for word in given]
            pointers = (ctypes.c_void_p * len(words))(*(ctypes.addressof(word) for word in words))
            shape = (*three(request["blocks"]), *three(request["threads"]), request.get("shared", 0))
            self.call("hipModuleLaunchKernel", function, *shape, None, pointers, None)
            self.call("hipDeviceSynchronize")
            results = []
            for address, content in zip(addresses, contents, strict=True):
                result = ctypes.create_string_buffer(len(content))
                self.call("hipMemcpy", result, address, ctypes.c_size_t(len(content)), TO_HOST)
                results.append(result.raw)
            return results


def three(sizes: int | list[int]) -> tuple[int, int, int]:
    """The sizes of a grid or a block, of which a number is the first."""
    x, y, z = (*([sizes] if isinstance(sizes, int) else sizes), 1, 1)[:3]
    return x, y, z


def answer(device: Device, request: dict[str, Any]) -> dict[str, Any]:
    try:
        if "image" not in request:
            return {"target": device.target()}
        return {"storages": [content.hex() for content in device.launch(request)]}
    except Refused as refused:
        return {"trap": str(refused)}


def main() -> int:
    try:
        device = Device()
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 1
    for line in sys.stdin:
        print(json.dumps(answer(device, json.loads(line))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
