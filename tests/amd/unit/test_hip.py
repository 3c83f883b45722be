"""Programs that load and launch by HIP's API, on a library of that name that stands on the executor.

GPULOWER names the program `gpulower`; `gpulower-checks` lies beside it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent.parent

OUTSIDE = """
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @store(%x: memref<4xi32>) kernel {
    %far = arith.constant 100 : index
    %one = arith.constant 1 : i32
    memref.store %one, %x[%far] : memref<4xi32>
    gpu.return
  }
}
func.func @main() -> i32 {
  %one = arith.constant 1 : index
  %zero = arith.constant 0 : i32
  %x = gpu.alloc () : memref<4xi32>
  gpu.launch_func @kernels::@store blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%x : memref<4xi32>)
  gpu.dealloc %x : memref<4xi32>
  return %zero : i32
}
}
"""

# What of `gpulower-checks session` is no matter of NVIDIA's.
SESSION = ("kernels one by one", "replaced under its name", "variables live on", "a variable by its address", "another module's variable")


class Programs(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        named = os.environ.get("GPULOWER")
        if not named:
            raise RuntimeError("GPULOWER is to name the program gpulower; `cargo xtask test amd` sets it")
        cls.gpulower = Path(named)
        cls.folder = tempfile.TemporaryDirectory(prefix="gpulower-hip-")
        library = Path(cls.folder.name) / "libamdhip64.so.7"
        source = TESTS / "hip/libamdhip64.c"
        flags = ["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, "-o", str(library), str(source), "-lpthread"], check=True)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.folder.cleanup()

    def run_on(self, target: str, program: str, *words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ, LD_LIBRARY_PATH=self.folder.name, AMDEXEC_PYTHON=sys.executable, AMDEXEC_TARGET=target)
        command = [str(self.gpulower.with_name(program)), *words]
        return subprocess.run(command, cwd=ROOT, env=environment, input=text, capture_output=True, text=True, check=False)

    def test_a_whole_program(self) -> None:
        source = (ROOT / "examples/app.mlir").read_text()
        self.assertIn("1000003", source)
        # For the target of the device itself, for a generic one, and for one that is named.
        for device, target in (("gfx942:sramecc+:xnack-", ""), ("gfx1100", "gfx11-generic"), ("gfx90a", "gfx90a")):
            words = ("--target", target) if target else ()
            done = self.run_on(device, "gpulower", "run", "-", *words, text=source.replace("1000003", "1003"))
            self.assertEqual((done.returncode, done.stderr), (0, ""), device)

    def test_a_result_that_is_wrong_is_seen(self) -> None:
        source = (ROOT / "examples/app.mlir").read_text().replace("1000003", "1003")
        wrong = source.replace("arith.addf %ax, %yi", "arith.subf %ax, %yi")
        self.assertNotEqual(source, wrong)
        done = self.run_on("gfx942", "gpulower", "run", "-", "--target", "gfx942", text=wrong)
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_code_for_another_chip(self) -> None:
        source = (ROOT / "examples/app.mlir").read_text()
        done = self.run_on("gfx1100", "gpulower", "run", "-", "--target", "gfx942", text=source)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("gfx1100", done.stderr)
        self.assertIn("gfx942", done.stderr)

    def test_a_store_outside_of_every_buffer(self) -> None:
        done = self.run_on("gfx942", "gpulower", "run", "-", "--target", "gfx942", text=OUTSIDE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("outside of every buffer", done.stderr)
        self.assertIn("hipErrorIllegalAddress", done.stderr)

    def test_sessions(self) -> None:
        for target in ("gfx942", "gfx1100"):
            done = self.run_on(target, "gpulower-checks", "session", "--hip", *SESSION)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for name in SESSION:
                self.assertRegex(done.stdout, rf"(?m)^ok +{name}")


if __name__ == "__main__":
    unittest.main()
