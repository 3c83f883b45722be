"""Triton through its own extension points, without a GPU: `sizes.py`, `amd.py` and `on_gpu.py` have the whole of it."""

import json
import os
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).parent

ONE = """
import json
from common import compiled
from kernels import CASES
case = next(case for case in CASES if case.name == "matmul_fp8")
kernel = compiled(case, "sm_90")
print(json.dumps([sorted(kernel.asm), kernel.metadata._asdict().get("gpulower")]))
"""


ONCE = """
import json
from concurrent.futures import ThreadPoolExecutor
from common import compiled
from kernels import CASES
from triton import knobs
knobs.compilation.always_compile = True
case = next(case for case in CASES if case.name == "gelu")
def forms(target):
    asm = compiled(case, target).asm
    return [asm["llir"], (asm.get("cubin") or asm["hsaco"]).hex()]
alone = {target: forms(target) for target in ("sm_90", "gfx942")}
with ThreadPoolExecutor(4) as threads:
    together = list(threads.map(forms, list(alone) * 4))
same = together == list(alone.values()) * 4
print(json.dumps([same, alone]))
"""


NAMED = """
import json
from common import compiled
from gpulower_triton import stages
from kernels import CASES
from triton import knobs
knobs.compilation.always_compile = True
case = next(case for case in CASES if case.name == "matmul")
asm = compiled(case, "sm_90").asm
named, with_names = stages.with_names(asm["llir"]), stages.with_names
stages.with_names = lambda source: source
without = compiled(case, "sm_90").asm
large = "{ " + ", ".join(["i32"] * 8) + " }"
flags = f"select nnan i1 %c, {large} %a, {large} %b"
packed, said = f"@p = global <{large}> zeroinitializer", f'@s = constant [50 x i8] c"{large}"\\n@t = global {large} undef'
print(json.dumps([
    asm["ptx"] == without["ptx"], len(asm["llir"]) / len(named), with_names(packed) == packed, with_names(said) == said,
    with_names(flags) == flags, with_names(f"@a = global {large} undef")
]))
"""


TOO_MANY = """
import dataclasses
from common import compiled
from kernels import CASES
from triton.runtime.errors import OutOfResources
case = next(case for case in CASES if case.name == "vector_add")
for target, warps in (("sm_90", 64), ("gfx942", 32), ("gfx1100", 64)):
    try:
        compiled(dataclasses.replace(case, warps=warps), target)
    except OutOfResources as error:
        print(target, error.name, error.required, error.limit)
compiled(dataclasses.replace(case, warps=32), "sm_90")
"""


class Triton(unittest.TestCase):
    """Its kernels, finished by gpulower."""

    def run_python(self, *arguments: str, who: str = "gpulower", where: Path = HERE, **more: str) -> str:
        """What a program prints in which Triton finds the backend by its entry point."""
        folder = tempfile.mkdtemp()
        self.addCleanup(lambda: subprocess.run(["rm", "-r", folder], check=True))
        environment = {**os.environ, "TRITON_CODEGEN": who, "TRITON_CACHE_DIR": folder, "GPULOWER_CACHE": "off", **more}
        made = subprocess.run([sys.executable, *arguments], cwd=where, env=environment, capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        return made.stdout

    def test_nothing_but_the_environment_says_so(self) -> None:
        """A program of Triton's compiles by gpulower, and ptxas is not started."""
        with tempfile.TemporaryDirectory() as folder:
            started, ptxas = Path(folder, "started"), Path(folder, "ptxas")
            version = "Cuda compilation tools, release 12.8, V12.8.93"
            ptxas.write_text(f"#!/bin/sh\necho \"$@\" >> {started}\necho '{version}'\n")
            ptxas.chmod(ptxas.stat().st_mode | stat.S_IXUSR)
            forms, report = json.loads(self.run_python("-c", ONE, TRITON_PTXAS_PATH=str(ptxas)))
            self.assertFalse(started.exists(), started.exists() and started.read_text())
        self.assertEqual(forms, ["cubin", "llir", "ptx", "source", "ttgir", "ttir"])
        self.assertIn("nvptxcompiler", report["cubin"]["tool"])
        self.assertEqual(report["cubin"]["spills"], 0)
        _, report = json.loads(self.run_python("-c", ONE, who="triton"))
        self.assertIsNone(report)

    def test_kernels_are_optimised_once(self) -> None:
        """By gpulower for sm_90, by Triton for AMD, whatever other threads compile; by Triton where the environment says how."""
        same, forms = json.loads(self.run_python("-c", ONCE))
        self.assertTrue(same)
        self.assertIn("call float @__nv_erff(", forms["sm_90"][0])
        self.assertNotIn("call float @__ocml_erf_f32(", forms["gfx942"][0])
        _, own = json.loads(self.run_python("-c", ONCE, DISABLE_LLVM_OPT="disable-lsr"))
        self.assertNotIn("call float @__nv_erff(", own["sm_90"][0])

    def test_large_structures_have_names(self) -> None:
        """Which changes nothing but the time that reading takes; packed ones, texts, and what has flags stay."""
        same, shorter, packed, said, flags, named = json.loads(self.run_python("-c", NAMED))
        self.assertTrue(same and packed and said and flags)
        self.assertGreater(shorter, 2)
        self.assertEqual(named, f"%gpulower.structure.0 = type {{ {', '.join(['i32'] * 8)} }}\n@a = global %gpulower.structure.0 undef")

    def test_too_many_warps_do_not_fit(self) -> None:
        """Which Triton's tuner passes over."""
        lines = self.run_python("-c", TOO_MANY).splitlines()
        self.assertEqual(lines, [f"{target} threads 2048 1024" for target in ("sm_90", "gfx942", "gfx1100")])

    def test_what_the_documentation_shows(self) -> None:
        """The program in docs/howto/llvm-ir.md leaves LLVM IR that gpulower compiles."""
        page = (HERE.parents[1] / "docs/howto/llvm-ir.md").read_text()
        program = page.split("```python,no_run\n")[1].split("```")[0]
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "add.py").write_text(program)
            self.run_python("add.py", who="triton", where=Path(folder))
            self.assertIn("define ptx_kernel void @add(", Path(folder, "add.ll").read_text())
            gpulower = Path(os.environ["GPULOWER_OPT"]).with_name("gpulower")
            command = [str(gpulower), "compile", "add.ll", "--target", "sm_90", "--input-optimized", "--no-cache"]
            subprocess.run(command, cwd=folder, check=True)

    def test_code_is_not_larger(self) -> None:
        """Kernels that once were, on four chips."""
        self.run_python("sizes.py", "sm_90,sm_100,gfx942,gfx1100", "normal_numbers", "softmax", "layer_norm", who="triton")
        self.run_python("sizes.py", "sm_90", "attention", "math_functions", "silu_tiles", who="triton")

    def test_code_objects_compute(self) -> None:
        """Kernels for two chips of AMD's, executed."""
        names = ("vector_add", "matmul", "dropout", "layer_norm", "layer_norm_backward", "attention_causal", "sorted_rows")
        names += ("attention_backward", "matmul_fp32", "silu_tiles")
        self.run_python("amd.py", "gfx942,gfx1100", *names)


if __name__ == "__main__":
    unittest.main()
