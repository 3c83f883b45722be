"""What `hip/libamdhip64.c` asks for: loading a code object, and launching a kernel on memory of the program that calls.

A question is its kind (1: load, 2: launch), the number of bytes that follow, and those; an answer is a number of HIP's, how many
bytes follow, and those: where the number is an error's, a text.
"""

from __future__ import annotations

import socket
import struct
import sys
from dataclasses import dataclass

import numpy as np

from . import codeobject
from .arguments import Geometry
from .codeobject import CodeObject
from .heap import Heap
from .kernel import launch
from .memory import AddressSpace
from .traps import NoEntry, Trap, Unknown

INVALID_VALUE, INVALID_IMAGE, NO_BINARY_FOR_GPU, ILLEGAL_ADDRESS, LAUNCH_FAILURE = 1, 200, 209, 700, 719

# Where kernel arguments lie: between what the library maps and what the system does.
OWN_MEMORY = 0x2000_0000_0000

GENERIC = {"gfx9-4-generic": ("gfx942", "gfx950"), "gfx11-generic": ("gfx1100", "gfx1150"), "gfx12-generic": ("gfx1201",)}


class Refused(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


@dataclass
class Reader:
    data: bytes
    at: int = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        found = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return found

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]


class Device:
    """The code objects that were loaded, by the numbers that the library gave them."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.loaded: dict[int, tuple[CodeObject, int]] = {}
        self.launches = 0
        self.heap = Heap()

    def load(self, question: Reader) -> bytes:
        number, base = question.numbers("IQ")
        try:
            chip = self.target.split(":")[0]
            code = codeobject.parse(codeobject.unbundled(question.data[question.at :], chip))
        except NoEntry as problem:
            raise Refused(NO_BINARY_FOR_GPU, str(problem)) from problem
        except (Unknown, struct.error, ValueError, KeyError) as problem:
            raise Refused(INVALID_IMAGE, f"the image cannot be read: {problem}") from problem
        if code.target != chip and chip not in GENERIC.get(code.target, ()):
            raise Refused(NO_BINARY_FOR_GPU, f"the image is for {code.target}, and the device is {self.target}")
        self.loaded[number] = code, base
        image = bytes(code.image(base)) + bytes(256)
        return struct.pack("<Q", len(image)) + image + "\n".join(describe(code)).encode()

    def run(self, question: Reader) -> bytes:
        number, *shape = question.numbers("I7I")
        kernel = question.bytes(512).split(b"\0")[0].decode()
        arguments = [question.bytes(*question.numbers("I")) for _ in range(*question.numbers("I"))]
        code, base = self.loaded[number]
        space = AddressSpace()
        regions = []
        for index in range(*question.numbers("I")):
            address, size = question.numbers("QQ")
            content = np.frombuffer(question.bytes(size), np.uint8)
            name = "the code object" if address == base else f"buffer {index}"
            regions.append(space.place(name, address, content, writable=True))
            regions[-1].track(undefined=False)
        space.next = OWN_MEMORY
        (region,) = (region for region in regions if region.base == base)
        geometry = Geometry((shape[0], shape[1], shape[2]), (shape[3], shape[4], shape[5]), shape[6])
        self.launches += 1
        try:
            launch(code, kernel, geometry, space, region, arguments, seed=self.launches, heap=self.heap)
        except Trap as trap:
            where = ILLEGAL_ADDRESS if "outside of every buffer" in str(trap) else LAUNCH_FAILURE
            raise Refused(where, f"{kernel}: {trap}") from trap
        except ValueError as problem:
            raise Refused(INVALID_VALUE, f"{kernel}: {problem}") from problem
        return b"".join(region.data[: region.size].tobytes() for region in regions)


def describe(code: CodeObject) -> list[str]:
    """Lines of words, as the library reads them."""
    lines = []
    for name, kernel in code.kernels.items():
        explicit = [argument for argument in kernel.get(".args", []) if not argument[".value_kind"].startswith("hidden_")]
        words: list[object] = ["kernel", name, kernel[".group_segment_fixed_size"], kernel[".max_flat_workgroup_size"]]
        words += [kernel[".private_segment_fixed_size"], kernel[".vgpr_count"], len(explicit)]
        words += [argument[key] for argument in explicit for key in (".offset", ".size")]
        lines.append(" ".join(map(str, words)))
    kernels = {kernel[".symbol"] for kernel in code.kernels.values()}
    for name, (address, size) in code.symbols.items():
        if name and size and name not in kernels and name not in code.kernels:
            lines.append(f"variable {name} {address} {size}")
    return lines


def serve(device: Device, channel: socket.socket) -> None:
    channel.sendall(struct.pack("<I", 1))
    stream = channel.makefile("rb")
    while head := stream.read(12):
        kind, size = struct.unpack("<IQ", head)
        question = Reader(stream.read(size))
        try:
            code, reply = 0, device.load(question) if kind == 1 else device.run(question)
        except Refused as refused:
            code, reply = refused.code, str(refused).encode()
        channel.sendall(struct.pack("<IQ", code, len(reply)) + reply)


if __name__ == "__main__":
    serve(Device(sys.argv[1]), socket.socket(fileno=0))
