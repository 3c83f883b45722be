"""Programs that load and launch by HIP's API, on a library of that name that stands on the executor.

GPULOWER names the program `gpulower`; `gpulower-checks` lies beside it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from .assembler import LLVM

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

ASSERTS = """
module attributes {gpu.container_module} {
gpu.module @kernels {
  gpu.func @check(%n: index, %yes: i1) kernel {
    %thread = gpu.thread_id x
    cf.assert %yes, "always holds"
    gpu.printf "before: %lld\\n", %thread : index
    %inside = arith.cmpi ult, %thread, %n : index
    cf.assert %inside, "100% of threads are inside"
    gpu.printf "after: %lld\\n", %thread : index
    gpu.return
  }
}
func.func @main() {
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %n = arith.constant N : index
  %yes = arith.constant 1 : i1
  gpu.launch_func @kernels::@check blocks in (%one, %one, %one) threads in (%three, %one, %one) args(%n : index, %yes : i1)
  return
}
}
"""

# What one launch allocates, the next one reads and frees.
HEAP = """
module attributes {gpu.container_module} {
gpu.module @kernels {
  llvm.func @malloc(i64) -> !llvm.ptr
  llvm.func @free(!llvm.ptr)
  gpu.func @keep(%places: memref<3xi64>) kernel {
    %thread = gpu.thread_id x
    %number = arith.index_cast %thread : index to i64
    %size = arith.constant SIZE : i64
    %memory = llvm.call @malloc(%size) : (i64) -> !llvm.ptr
    llvm.store %number, %memory : i64, !llvm.ptr
    %place = llvm.ptrtoint %memory : !llvm.ptr to i64
    memref.store %place, %places[%thread] : memref<3xi64>
    gpu.return
  }
  gpu.func @raise(%places: memref<3xi64>) kernel {
    %thread = gpu.thread_id x
    %ten = arith.constant 10 : i64
    %place = memref.load %places[%thread] : memref<3xi64>
    %memory = llvm.inttoptr %place : i64 to !llvm.ptr
    %kept = llvm.load %memory : !llvm.ptr -> i64
    %more = arith.addi %kept, %ten : i64
    llvm.store %more, %memory : i64, !llvm.ptr
    gpu.return
  }
  gpu.func @take(%places: memref<3xi64>) kernel {
    %thread = gpu.thread_id x
    %place = memref.load %places[%thread] : memref<3xi64>
    %memory = llvm.inttoptr %place : i64 to !llvm.ptr
    %kept = llvm.load %memory : !llvm.ptr -> i64
    gpu.printf "kept: %lld\\n", %kept : i64
    llvm.call @free(%memory) : (!llvm.ptr) -> ()
    gpu.return
  }
}
func.func @main() {
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %places = gpu.alloc () : memref<3xi64>
  gpu.launch_func @kernels::@keep blocks in (%one, %one, %one) threads in (%three, %one, %one) args(%places : memref<3xi64>)
  gpu.launch_func @kernels::@raise blocks in (%one, %one, %one) threads in (%three, %one, %one) args(%places : memref<3xi64>)
  gpu.launch_func @kernels::@take blocks in (%one, %one, %one) threads in (%three, %one, %one) args(%places : memref<3xi64>)
  MORE
  gpu.dealloc %places : memref<3xi64>
  return
}
}
"""

# A stream where an event is meant, as MLIR 22 lowers `async.yield` of a value and a token.
STREAM_FOR_AN_EVENT = """
module {
llvm.func @mgpuStreamCreate() -> !llvm.ptr
llvm.func @mgpuStreamWaitEvent(!llvm.ptr, !llvm.ptr)
llvm.func @mgpuEventSynchronize(!llvm.ptr)
llvm.func @mgpuEventDestroy(!llvm.ptr)
llvm.func @main() {
  %made = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
  %waits = llvm.call @mgpuStreamCreate() : () -> !llvm.ptr
  llvm.call @mgpuStreamWaitEvent(%waits, %made) : (!llvm.ptr, !llvm.ptr) -> ()
  llvm.call @mgpuEventDestroy(%made) : (!llvm.ptr) -> ()
  llvm.call @mgpuEventSynchronize(%made) : (!llvm.ptr) -> ()
  llvm.call @mgpuEventDestroy(%made) : (!llvm.ptr) -> ()
  llvm.return
}
}
"""

# Runs the command that it is given, and makes the last bit of each result another one.
LAUNCHER = """
import json, subprocess, sys
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True) as process:
    for line in process.stdout:
        answer = json.loads(line)
        for number, text in enumerate(answer.get("storages", [])):
            content = bytearray.fromhex(text)
            content[-4] ^= 1
            answer["storages"][number] = content.hex()
        print(json.dumps(answer), flush=True)
"""

# What of `gpulower-checks session` is no matter of NVIDIA's.
SESSION = ("kernels one by one", "replaced under its name", "variables live on", "a variable by its address", "another module's variable")


class Programs(unittest.TestCase):
    gpulower: Path
    folder: tempfile.TemporaryDirectory[str]

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
        return self.run_words(target, str(self.gpulower.with_name(program)), *words, text=text)

    def run_words(self, target: str, *command: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ, LD_LIBRARY_PATH=self.folder.name, AMDEXEC_PYTHON=sys.executable, AMDEXEC_TARGET=target)
        return subprocess.run(command, cwd=ROOT, env=environment, input=text, capture_output=True, text=True, check=False)

    def test_a_whole_program(self) -> None:
        source = (ROOT / "examples/app.mlir").read_text()
        self.assertIn("1000003", source)
        # For the target of the device itself, for a generic one, and for one that is named.
        for device, target in (("gfx942:sramecc+:xnack-", ""), ("gfx1100", "gfx11-generic"), ("gfx90a", "gfx90a")):
            words = ("--target", target) if target else ()
            done = self.run_on(device, "gpulower", "run", "-", *words, text=source.replace("1000003", "1003"))
            self.assertEqual((done.returncode, done.stderr), (0, ""), device)

    def test_a_stream_where_an_event_is_meant(self) -> None:
        done = self.run_on("gfx942", "gpulower", "run", "-", text=STREAM_FOR_AN_EVENT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        wrong = STREAM_FOR_AN_EVENT.replace("@mgpuEventSynchronize(%made)", "@mgpuEventSynchronize(%never)").replace(
            "  %made", "  %never = llvm.mlir.zero : !llvm.ptr\n  %made", 1
        )
        done = self.run_on("gfx942", "gpulower", "run", "-", text=wrong)
        self.assertIn("mgpuEventSynchronize: 0x0 is no event that this program has", done.stderr)

    def test_what_is_compiled_is_said_when_asked_for(self) -> None:
        source = (ROOT / "examples/app.mlir").read_text().replace("1000003", "1003")
        done = self.run_on("gfx90a", "gpulower", "run", "-v", "-", "--target", "gfx90a", "--no-cache", text=source)
        self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)
        stages = re.findall(r"(?m)^# \w+ for gfx90a: ([\w-]+)$", done.stderr)
        self.assertEqual(len(stages), len(done.stderr.splitlines()), done.stderr)
        self.assertEqual((stages[0], stages[-1]), ("lower", "link-object"), done.stderr)

    def test_a_result_that_is_wrong_is_seen(self) -> None:
        source = (ROOT / "examples/app.mlir").read_text().replace("1000003", "1003")
        wrong = source.replace("arith.addf %ax, %yi", "arith.subf %ax, %yi")
        self.assertNotEqual(source, wrong)
        done = self.run_on("gfx942", "gpulower", "run", "-", "--target", "gfx942", text=wrong)
        self.assertEqual(done.returncode, 1, done.stderr)

    def test_exported_programs(self) -> None:
        """Object files with the images, which clang finishes or any linker, run as programs of their own."""
        source = (ROOT / "examples/app.mlir").read_text().replace("1000003", "1003")
        library = str(Path(self.folder.name) / "libamdhip64.so.7")
        forms = (
            (("--finish-with", "clang-22,rocm"), (str(LLVM / "clang"), "--offload-link")),
            (("--emit", "self"), ("cc",)),
        )
        for number, (words, link) in enumerate(forms):
            made, program = (str(Path(self.folder.name) / f"app{number}{end}") for end in (".o", ""))
            done = self.run_on("gfx942", "gpulower", "export", "-", "--target", "gfx942,gfx1100", *words, "-o", made, text=source)
            self.assertEqual(done.returncode, 0, done.stderr)
            subprocess.run([*link, made, library, "-o", program], check=True)
            for target in ("gfx942", "gfx1100"):
                done = self.run_words(target, program)
                self.assertEqual((done.returncode, done.stderr), (0, ""), f"{words} on {target}")
            done = self.run_words("gfx1201", program)
            self.assertEqual(done.returncode, 1)
            self.assertIn("hipErrorNoBinaryForGpu", done.stderr)

    def test_the_same_kernels_by_another(self) -> None:
        """`--with hip`: same bits; and a bit that differs is seen, behind a launcher that makes one."""
        words = [sys.executable, "-m", "checks", "--gpulower", str(self.gpulower), "--only", "saxpy", "app_turn_blocks", "--with"]
        for target in ("gfx942", "gfx1201"):
            done = self.run_words(target, *words, "hip")
            self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
            self.assertTrue(done.stdout.endswith("\n2 same bits\n"), done.stdout)
        launcher = Path(self.folder.name) / "launcher.py"
        launcher.write_text(LAUNCHER)
        done = self.run_words("gfx942", *words, f"{sys.executable} {launcher} hip")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertTrue(done.stdout.endswith("\n1 other bits, 1 wrong\n"), done.stdout)

    def test_code_for_another_chip(self) -> None:
        source = (ROOT / "examples/app.mlir").read_text()
        done = self.run_on("gfx1100", "gpulower", "run", "-", "--target", "gfx942", text=source)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("gfx1100", done.stderr)
        self.assertIn("gfx942", done.stderr)

    def test_the_heap_outlives_a_launch(self) -> None:
        again = "gpu.launch_func @kernels::@take blocks in (%one, %one, %one) threads in (%three, %one, %one) args(%places : memref<3xi64>)"
        for device in ("gfx942", "gfx1100", "gfx1201"):
            for size in ("16", "5000"):
                text = HEAP.replace("SIZE", size).replace("MORE", "")
                done = self.run_on(device, "gpulower", "run", "-", text=text)
                self.assertEqual((done.returncode, done.stderr), (0, ""), device)
                self.assertEqual(sorted(done.stdout.split("\n")), ["", "kept: 10", "kept: 11", "kept: 12"])
        done = self.run_on("gfx942", "gpulower", "run", "-", text=HEAP.replace("SIZE", "5000").replace("MORE", again))
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("outside of every buffer", done.stderr)

    def test_a_store_outside_of_every_buffer(self) -> None:
        done = self.run_on("gfx942", "gpulower", "run", "-", "--target", "gfx942", text=OUTSIDE)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("outside of every buffer", done.stderr)
        self.assertIn("hipErrorIllegalAddress", done.stderr)

    def test_printing_and_assertions(self) -> None:
        """By AMD's hostcall; a failed assertion says its place, its function and its text, and ends the kernel."""
        before, after = ("".join(f"{when}: {thread}\n" for thread in range(3)) for when in ("before", "after"))
        for target in ("gfx942", "gfx1100"):
            done = self.run_on(target, "gpulower", "run", "-", "--target", target, text=ASSERTS.replace("N :", "3 :"))
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, before + after, ""), target)
            done = self.run_on(target, "gpulower", "run", "-", "--target", target, text=ASSERTS.replace("N :", "2 :"))
            self.assertEqual((done.returncode, done.stdout), (1, before), target)
            self.assertRegex(done.stderr, r"(?m):9: check: Device-side assertion `100% of threads are inside' failed\.$")
            self.assertIn("hipErrorLaunchFailure", done.stderr)

    def test_sessions(self) -> None:
        for target in ("gfx942", "gfx1100"):
            done = self.run_on(target, "gpulower-checks", "session", "--hip", *SESSION)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            for name in SESSION:
                self.assertRegex(done.stdout, rf"(?m)^ok +{name}")


if __name__ == "__main__":
    unittest.main()
