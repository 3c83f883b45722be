"""FlyDSL's last step by gpulower, without ROCm; its code object is executed by the interpreter of `tests/amd`."""

import os
import re
import subprocess
import sys
import tempfile
import types
import unittest
from pathlib import Path
from typing import Any

FOLDER = tempfile.TemporaryDirectory()
PREFIX = Path(FOLDER.name, "prefix")
DUMPS = Path(FOLDER.name, "dumps")
os.environ.update(
    ARCH="gfx942",
    FLYDSL_GPU_ARCH="gfx942",
    COMPILE_ONLY="1",
    FLYDSL_COMPILE_LLVM_DIR=str(PREFIX),
    FLYDSL_RUNTIME_CACHE_DIR=str(Path(FOLDER.name, "cache")),
    FLYDSL_DUMP_IR="1",
    FLYDSL_DUMP_DIR=str(DUMPS),
)


class _Name(type):
    """A class for each name that is asked for."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(cls, name, _Name(name, (), {}))
        return getattr(cls, name)


def _stand_in(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _Name(name, (), {})


# FlyDSL imports torch to know its types, 800 MB of it; nothing is done with it here.
try:
    import torch
except ImportError:
    torch = types.ModuleType("torch")
    torch.__dict__["__getattr__"] = _stand_in
    sys.modules["torch"] = torch

import flydsl.compiler as flyc
import numpy as np
import vector_add
from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Buffer, Pointer, execute


def unescaped(text: str) -> bytes:
    """The bytes of a string in MLIR's syntax."""
    return re.sub(rb"\\([0-9A-F]{2})", lambda found: bytes.fromhex(found[1].decode()), text.encode("latin-1"))


class FlyDSL(unittest.TestCase):
    """A kernel for gfx942."""

    def test_a_code_object_without_rocm(self) -> None:
        """It is compiled and adds."""
        program = os.environ["GPULOWER_OPT"]
        PREFIX.joinpath("bin").mkdir(parents=True)
        PREFIX.joinpath("bin/mlir-opt").symlink_to(program)
        self.addCleanup(FOLDER.cleanup)
        x, y = np.arange(128, dtype=np.float32), np.full(128, 0.5, np.float32)
        arguments = [flyc.from_dlpack(array) for array in (x, y, np.zeros_like(x))]
        vector_add.add(*arguments, 128)
        (made,) = DUMPS.rglob("*external_output.mlir")
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', made.read_text(encoding="latin-1"))
        binary = max(strings, key=len)
        path = Path(FOLDER.name, "kernel.hsaco")
        content = unescaped(binary)
        path.write_bytes(content[content.index(b"\x7fELF") :])
        code = codeobject.read(path, "gfx942")
        (name,) = code.kernels
        buffers = [Buffer("x", x), Buffer("y", y), Buffer("out", np.zeros_like(x), writable=True)]
        result = execute(code, name, Geometry((2, 1, 1), (64, 1, 1)), buffers, [Pointer(b.name) for b in buffers])
        np.testing.assert_array_equal(result.outputs["out"], x + y)


if __name__ == "__main__":
    assert subprocess.run([os.environ["GPULOWER_OPT"], "--version"], capture_output=True).returncode == 0
    unittest.main()
