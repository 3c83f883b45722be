"""Functions of C's mathematical library in LLVM IR, which nothing defines, are those of AMD's library.

GPULOWER names the program `gpulower`. What they compute is compared with this machine's own C library.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import numpy as np

from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Buffer, Pointer, execute

X, Y = 0.4375, -2.5

OF_ONE = (
    "acos asin asinh atan atanh cos cosh erf erfc exp exp10 exp2 expm1 j0 j1 lgamma log log10 log1p log2 logb "
    "sin sinh sqrt tan tanh tgamma y0 y1"
)
OF_A_NEGATIVE = "cbrt ceil fabs floor nearbyint rint round trunc"
"""Of -2.5: the ways of rounding give -2 and -3."""
OF_TWO = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
CALLS: list[tuple[str, str]] = (
    [(name, "x") for name in OF_ONE.split()]
    + [(name, "y") for name in OF_A_NEGATIVE.split()]
    + [("acosh", "p")]
    + [(name, "xy") for name in OF_TWO.split()]
    + [("fma", "xyx"), ("ldexp", "x3"), ("scalbn", "y3"), ("ilogb", "y")]
)
"""Each function, and its arguments: x, y, 1 - y (p), or 3."""


def expected() -> list[float]:
    library = ctypes.CDLL("libm.so.6")
    values = {"x": X, "y": Y, "p": 1 - Y}
    results = []
    for name, arguments in CALLS:
        function = getattr(library, name)
        function.restype = ctypes.c_int if name == "ilogb" else ctypes.c_double
        results.append(float(function(*(3 if a == "3" else ctypes.c_double(values[a]) for a in arguments))))
    return results


def module(number: str) -> str:
    suffix = "f" if number == "float" else ""
    declarations, body = [], []
    for at, (name, arguments) in enumerate(CALLS):
        result = "i32" if name == "ilogb" else number
        kinds = ["i32" if a == "3" else number for a in arguments]
        given = ", ".join(f"{kind} {'3' if a == '3' else '%' + a}" for kind, a in zip(kinds, arguments, strict=True))
        declarations.append(f"declare {result} @{name}{suffix}({', '.join(kinds)})")
        body.append(f"  %r{at} = call {result} @{name}{suffix}({given})")
        if result == "i32":
            body.append(f"  %n{at} = sitofp i32 %r{at} to {number}")
        body.append(f"  %p{at} = getelementptr {number}, ptr addrspace(1) %out, i32 {at}")
        body.append(f"  store {number} %{'n' if result == 'i32' else 'r'}{at}, ptr addrspace(1) %p{at}")
    lines = [
        'target triple = "amdgcn-amd-amdhsa"',
        *declarations,
        "define amdgpu_kernel void @k(ptr addrspace(1) %out, ptr addrspace(1) %in) {",
        f"  %x = load {number}, ptr addrspace(1) %in",
        f"  %second = getelementptr {number}, ptr addrspace(1) %in, i32 1",
        f"  %y = load {number}, ptr addrspace(1) %second",
        f"  %p = fsub {number} 1.0, %y",
        *body,
        "  ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"


class MathOfC(unittest.TestCase):
    def computed(self, target: str, number: str) -> list[float]:
        kind = np.float32 if number == "float" else np.float64
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder) / "k.ll", Path(folder) / "k.hsaco"
            source.write_text(module(number))
            subprocess.run(
                [os.environ["GPULOWER"], "compile", str(source), "--target", target, "-o", str(made)], check=True, capture_output=True
            )
            code = codeobject.read(made)
        buffers = [Buffer("out", np.zeros(len(CALLS), kind), writable=True), Buffer("in", np.array([X, Y], kind))]
        outputs = execute(code, "k", Geometry((1, 1, 1), (1, 1, 1)), buffers, [Pointer("out"), Pointer("in")]).outputs
        return [float(value) for value in outputs["out"]]

    def test_both_sizes(self) -> None:
        for target, number, error in (("gfx942", "double", 1e-12), ("gfx1201", "float", 1e-5)):
            with np.errstate(all="ignore"):
                computed = self.computed(target, number)
            for (name, _), value, should in zip(CALLS, computed, expected(), strict=True):
                with self.subTest(name=name, target=target):
                    if np.isnan(should):
                        self.assertTrue(np.isnan(value), f"{value}, and not NaN")
                    else:
                        self.assertLessEqual(abs(value - should), error * max(1.0, abs(should)), f"{value}, and not {should}")


if __name__ == "__main__":
    unittest.main()
