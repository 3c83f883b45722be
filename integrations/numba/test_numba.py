"""What numba-cuda-mlir's MLIR, which is of another release, becomes; `on_gpu.py` runs it."""

import os
import unittest
from pathlib import Path
from unittest import mock

# It asks for the CUDA runtime when it is imported.
os.environ.setdefault("CUDA_HOME", "")

import gpulower
import numba_cuda_mlir.mlir_lowering
import numba_cuda_mlir.tools
from kernels import KERNELS
from numba_cuda_mlir.compiler import compile_mlir

#: What it needs a device, or NVRTC, for: a library in C++ that it compiles there.
NEEDS_NVRTC = {"grid_phases"}


class Numba(unittest.TestCase):
    """Kernels as numba-cuda-mlir lowers them, before its own pipeline for LLVM."""

    def setUp(self) -> None:
        """It asks the device and NVRTC for versions, whatever chip it is told."""
        for place, name, value in (
            (numba_cuda_mlir.tools, "_cached_cc", (9, 0)),
            (numba_cuda_mlir.mlir_lowering, "get_max_ptx_version", lambda: 80),
        ):
            patch = mock.patch.object(place, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def test_every_kernel_compiles(self) -> None:
        """To machine code of sm_90, with the shared memory that it declares."""
        shared = {"block_sums": 512, "transpose": 16 * 17 * 4}
        compiler = gpulower.Compiler(cache=False)
        for function, signature in KERNELS.items():
            name = function.__name__
            if name in NEEDS_NVRTC:
                continue
            with self.subTest(name):
                module = compile_mlir(function, signature, chip="sm_90")
                artifact = compiler.compile(module, "sm_90", name=f"{name}.mlir")
                (kernel,) = artifact.kernels
                self.assertIn(name, kernel.name)
                self.assertEqual(kernel.shared, shared.get(name, 0))
                self.assertEqual(kernel.spills, 0)
                self.assertFalse(artifact.warnings)


if __name__ == "__main__":
    assert Path(os.environ["CUDA_HOME"]).exists(), "set CUDA_HOME: a CUDA runtime is needed to import numba-cuda-mlir"
    unittest.main()
