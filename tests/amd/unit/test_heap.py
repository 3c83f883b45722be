"""The heap after a kernel: what was freed is given again, and what the host gave is given back.

GPULOWER names the program `gpulower`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.heap import Heap
from amdexec.kernel import launch
from amdexec.machine import load
from amdexec.memory import AddressSpace
from amdexec.traps import Trap

KERNELS = Path(__file__).resolve().parent.parent / "kernels/heap.mlir"


class AfterAKernel(unittest.TestCase):
    def left(self, target: str, text: str, kernel: str, threads: int) -> list[str]:
        """The names of what the heap holds."""
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder) / "heap.mlir", Path(folder) / "heap.hsaco"
            source.write_text(text)
            subprocess.run(
                [os.environ["GPULOWER"], "compile", str(source), "--target", target, "-o", str(made)], check=True, capture_output=True
            )
            code = codeobject.read(made)
        space, heap = AddressSpace(), Heap()
        region = load(code, space)
        x = np.arange(threads, dtype=np.int32)
        places = [space.add(name, x, writable=name == "y") for name in ("x", "y")]
        numbers = [number for place in places for number in (place.base, place.base, 0, threads, 1)]
        arguments = [np.uint64(number).tobytes() for number in numbers]
        launch(code, kernel, Geometry((1, 1, 1), (threads, 1, 1)), space, region, arguments, heap=heap)
        return [region.name for region in heap.regions.values()]

    def test_blocks_of_slabs(self) -> None:
        """A slab has 512 blocks of this size. One lane: Debian's ockl counts each block once for every lane."""
        text = KERNELS.read_text().replace("constant 40", "constant 500")
        kept = text.replace("llvm.call @free(%memory) : (!llvm.ptr) -> ()", "")
        once, again = len(self.left("gfx1201", text, "again", 1)), len(self.left("gfx1201", kept, "again", 1))
        self.assertEqual(again, once + 1)

    def test_what_the_host_gives(self) -> None:
        text = KERNELS.read_text()
        kept = text.replace("memref.dealloc %large : memref<?x1024xi32>", "")
        for target in ("gfx942", "gfx1201"):
            once, again = len(self.left(target, text, "rows", 10)), len(self.left(target, kept, "rows", 10))
            self.assertEqual(again, once + 9, target)

    def test_what_is_no_memory_of_the_heap(self) -> None:
        heap, space = Heap(), AddressSpace()
        heap.attach(space)
        with self.assertRaisesRegex(Trap, "frees 0x1000, which is no memory of the heap"):
            heap.request(space, 0x1000, 0)
        place = heap.request(space, 0, 4096)
        self.assertEqual(space.find(place, 4096, write=True).size, 4096)
        heap.request(space, place, 0)
        self.assertRaisesRegex(Trap, "outside of every buffer", space.find, place, 1, write=False)


if __name__ == "__main__":
    unittest.main()
