"""Kernels as MLIR and as CUDA C++, each written by hand: written/NAME.mlir and written/NAME.cu.

The first lines of the MLIR are

    // block 32 8
    // sizes rows = x 0; cols = x 1

the threads of a block, and what the CUDA C++ has as parameters after those of the MLIR: `Index rows` is dimension 0 of x.
With a stated block size, `{BLOCK}` in the MLIR becomes the attribute, and the CUDA C++ gets __launch_bounds__ and constants
for blockDim.
"""

import pathlib
import re

from twins import C_TYPES, memref, stated_block, three

#: Integers have no sign in MLIR: these are possible, too.
UNSIGNED = {"i8": "unsigned char", "i16": "unsigned short", "i32": "unsigned", "i64": "unsigned long long"}


class Kernel:
    """One pair of files: what twins.Kernel has, and its texts."""

    def __init__(self, path, shapes):
        self.name, self.mlir, self.c = path.stem, path.read_text(), path.with_suffix(".cu").read_text()
        self.block = tuple(int(part) for part in re.search(r"^// block ([\d ]+)$", self.mlir, re.MULTILINE)[1].split())
        sizes = re.search(r"^// sizes (.*)$", self.mlir, re.MULTILINE)
        self.sizes = [(name, array, int(at)) for name, array, at in re.findall(r"(\w+) = (\w+) (\d+)", sizes[1] if sizes else "")]
        self.parameters = []
        for name, type in re.findall(r"%(\w+): ([^,\s]+)", re.search(rf"gpu\.func @{self.name}\(([^)]*)\)", self.mlir)[1]):
            found = re.fullmatch(r"memref<([\dx?]+)x(\w+)>", type)
            self.parameters.append((name, found[2], found[1].split("x")) if found else (name, type, None))
        self.check()
        self.fix(shapes)

    def check(self):
        """The CUDA C++ has the same parameters, and the sizes behind them."""
        has = [" ".join(part.split()) for part in re.search(rf"void {self.name}\(([^)]*)\)", self.c)[1].split(",")]
        wanted = [[f"{c} {'' if dimensions is None else '*RESTRICT '}{name}" for c in (C_TYPES[element], UNSIGNED.get(element))]
                  for name, element, dimensions in self.parameters] + [[f"Index {name}"] for name, *_ in self.sizes]
        if len(has) != len(wanted) or not all(one in several for one, several in zip(has, wanted)):
            raise ValueError(f"{self.name}: {has} are not {wanted}")
        arrays = {name: dimensions for name, _, dimensions in self.parameters}
        for name, array, at in self.sizes:
            if arrays[array][at] != "?":
                raise ValueError(f"{self.name}: {name} is a constant")

    def fix(self, shapes):
        """The arrays in `shapes` get constants for sizes."""
        self.parameters = [(name, element, [str(size) for size in shapes[name]] if name in shapes else dimensions)
                           for name, element, dimensions in self.parameters]
        kinds = {name: memref(element, dimensions) for name, element, dimensions in self.parameters if name in shapes}
        # In the heading, and where an array is read, written or asked for a size.
        self.mlir = re.sub(r"(%(\w+)(?:\[[^\]]*\]|, %\w+)? ?: (?:\(\w+, )?)(memref<[^>,]*>)",
                           lambda found: found[1] + kinds.get(found[2], found[3]), self.mlir)
        for name, array, at in reversed(self.sizes):
            if array in shapes:
                heading, body = re.search(rf"(.*\bvoid {self.name}\([^)]*\) {{)(.*)", self.c, re.DOTALL).groups()
                self.c = re.sub(rf",\s*Index {name}\b", "", heading) + f"\n  const Index {name} = {shapes[array][at]};" + body
        self.sizes = [size for size in self.sizes if size[1] not in shapes]

    def texts(self, stated):
        """MLIR and CUDA C++."""
        known, bounds = stated_block(self.block, stated)
        mlir, c = self.mlir.replace("{BLOCK}", f"{{{known}}}"), self.c.replace("__global__ void ", f"__global__ void {bounds}")
        if stated:
            c = re.sub(r"\bblockDim\.([xyz])", lambda found: f"{three(self.block)['xyz'.index(found[1])]}u", c)
        return mlir, c


def read_kernels(shapes, folder=pathlib.Path(__file__).with_name("written")):
    """`shapes` by kernel and array; empty where sizes are arguments."""
    return [Kernel(path, shapes.get(path.stem, {})) for path in sorted(folder.glob("*.mlir"))]
