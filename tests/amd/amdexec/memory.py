"""What a kernel can reach: named buffers in an address space of our own, workgroup memory (LDS), and private memory.

Nothing else exists: an access that does not lie wholly inside one of them is a trap. Bytes of LDS and private memory that nobody
wrote are marked, so that what is loaded from them is known to be undefined.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .traps import Trap

Array = Any

# The high halves of generic addresses that mean LDS and private memory. Any value does that no buffer has.
SHARED_APERTURE = 0x0001_0000
PRIVATE_APERTURE = 0x0002_0000
# Bits 32 to 47 of the base of the buffer resource for private memory, on chips that need one.
PRIVATE_RESOURCE = 0x5C47

_FIRST_ADDRESS = 0x7F00_0000_0000
_GAP = 0x10_0000
_DTYPES = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass
class Ownership:
    """Who stored what is not known to have arrived, and who touched what since the last barrier."""

    unfinished: Array
    writer: Array
    writer_epoch: Array
    reader: Array
    reader_epoch: Array
    # The last atomic: a loop of compare-and-swap begins with a plain load beside the atomics of others.
    atomic_epoch: Array


MANY_READERS = -2


@dataclass
class Region:
    """Bytes with a name. `size` bytes are valid; the array is longer, so that wide views fit."""

    name: str
    base: int
    size: int
    data: Array
    writable: bool
    undefined: Array | None = None
    ownership: Ownership | None = None
    views: dict[int, Array] = field(default_factory=dict)

    @classmethod
    def create(cls, name: str, base: int, size: int, writable: bool, *, fill: Array | None = None) -> Region:
        data = np.zeros(size + 31 & ~15, np.uint8)
        if fill is not None:
            data[:size] = fill
        return cls(name, base, size, data, writable)

    def track(self, *, undefined: bool) -> None:
        """Follows stores through the region: waits and barriers between the waves of a workgroup."""
        count = len(self.data)
        self.ownership = Ownership(
            np.full(count, -1, np.int32),
            np.full(count, -1, np.int32),
            np.full(count, -1, np.int32),
            np.full(count, -1, np.int32),
            np.full(count, -1, np.int32),
            np.full(count, -1, np.int32),
        )
        if undefined:
            self.undefined = np.ones(len(self.data), np.bool_)

    def view(self, size: int) -> Array:
        if size not in self.views:
            self.views[size] = self.data.view(_DTYPES[size])
        return self.views[size]

    def gather(self, offsets: Array, size: int) -> Array:
        """`size` bytes at each offset, as unsigned integers."""
        if not (offsets & (size - 1)).any():
            return self.view(size)[offsets // size]
        result = np.zeros(offsets.shape, np.uint64)
        for byte in range(size):
            result |= self.data[offsets + byte].astype(np.uint64) << np.uint64(8 * byte)
        return result.astype(_DTYPES[size])

    def scatter(self, offsets: Array, size: int, values: Array) -> None:
        """A later lane wins where two store to one place."""
        if not (offsets & (size - 1)).any():
            self.view(size)[offsets // size] = values
            return
        wide = np.asarray(values).astype(np.uint64)
        for byte in range(size):
            self.data[offsets + byte] = (wide >> np.uint64(8 * byte)).astype(np.uint8)


class AddressSpace:
    """The buffers of one launch, with the code object and the kernel arguments among them."""

    def __init__(self) -> None:
        self.regions: list[Region] = []
        self.bases: list[int] = []
        self.next = _FIRST_ADDRESS

    def add(self, name: str, content: Array, *, writable: bool) -> Region:
        """Copies bytes to an address of their own, with room that belongs to nobody on both sides."""
        region = self.place(name, self.next, content, writable=writable)
        self.next += (region.size + 2 * _GAP) & ~(_GAP - 1)
        return region

    def place(self, name: str, base: int, content: Array | bytes, *, writable: bool) -> Region:
        """Copies bytes to an address that nothing else has."""
        raw = np.frombuffer(content, np.uint8) if isinstance(content, (bytes, bytearray)) else content.reshape(-1).view(np.uint8)
        region = Region.create(name, base, len(raw), writable, fill=raw)
        self.insert(region)
        return region

    def insert(self, region: Region) -> None:
        index = bisect_right(self.bases, region.base)
        self.regions.insert(index, region)
        self.bases.insert(index, region.base)

    def remove(self, region: Region) -> None:
        index = self.bases.index(region.base)
        del self.regions[index], self.bases[index]

    def find(self, address: int, size: int, *, write: bool) -> Region:
        index = bisect_right(self.bases, address) - 1
        region = self.regions[index] if index >= 0 else None
        verb = "writes" if write else "reads"
        if region is None or address + size > region.base + region.size:
            raise Trap(f"{verb} {size} bytes at {address:#x}, outside of every buffer{self.near(address)}")
        if write and not region.writable:
            raise Trap(f"writes {size} bytes at {address - region.base} of {region.name}, which is read-only")
        return region

    def near(self, address: int) -> str:
        close = [r for r in self.regions if r.base - _GAP < address < r.base + r.size + _GAP]
        return "".join(f" ({address - r.base} bytes from the start of {r.name}, of {r.size})" for r in close)

    def region_of(self, addresses: Array, size: int, *, write: bool) -> Region | None:
        """The one region in which all of the lanes' addresses lie; None when there are several."""
        low, high = int(addresses.min()), int(addresses.max())
        region = self.find(low, size, write=write)
        if high + size <= region.base + region.size:
            return region
        return None
