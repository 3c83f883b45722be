"""The heap of device code. ockl's `__ockl_dm_alloc` keeps books in a structure that the runtime gives to kernels (`hidden_heap_v1`), takes
its first slab from there, and asks the host for more, as for each large allocation, by hostcall."""

from __future__ import annotations

import struct

import numpy as np

from .memory import AddressSpace, Region
from .traps import Trap

# What AMD's runtime allocates and clears for the structure, and where `__ockl_dm_init_v1` of Debian's ockl (rocm-device-libs 5.2.3)
# writes the slabs that it begins with.
_STRUCTURE, _INITIAL_SLABS = 131_072, 108_544
_SLAB = 1 << 21
# More than this at once is refused, as a device refuses what it has not.
_MOST = 1 << 32
# Slabs are found again by their addresses, which are multiples of their size.
_FIRST_ADDRESS = 0x2800_0000_0000


class Heap:
    """Of one device: it outlives launches. It begins with one slab, where AMD's runtime has four, so that the host is asked as well."""

    def __init__(self) -> None:
        self.next = _FIRST_ADDRESS
        self.regions: dict[int, Region] = {}
        self.structure = self._make("the heap", _STRUCTURE)
        self.structure.undefined = None
        slab = self._make("the first slab of the heap", _SLAB).base
        state = struct.pack("<QQQ", slab, slab + _SLAB, slab)
        self.structure.data[_INITIAL_SLABS : _INITIAL_SLABS + len(state)] = list(state)

    def _make(self, name: str, size: int) -> Region:
        region = Region.create(name, self.next, size, True)
        # What nobody wrote is undefined; who wrote it is not followed, since blocks change hands.
        region.undefined = np.ones(len(region.data), np.bool_)
        self.next += (size // _SLAB + 2) * _SLAB
        self.regions[region.base] = region
        return region

    def attach(self, space: AddressSpace) -> None:
        for region in self.regions.values():
            space.insert(region)

    def request(self, space: AddressSpace, address: int, size: int) -> int:
        """What the host does for a kernel: memory of some size, or memory at an address back."""
        if not address:
            if not size or size > _MOST:
                return 0
            region = self._make("memory of the heap", size)
            space.insert(region)
            return region.base
        if address not in self.regions or address == self.structure.base:
            raise Trap(f"frees {address:#x}, which is no memory of the heap{space.near(address)}")
        space.remove(self.regions.pop(address))
        return 0
