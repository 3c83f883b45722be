"""The tensor compiler without a GPU: both graphs for sm_90 and gfx942; the AMD images executed, against numpy in float64."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import numpy as np
from amdexec import codeobject
from amdexec.arguments import Geometry
from amdexec.kernel import Buffer, execute, memref
from on_gpu import inputs_of, reference

PROGRAM = os.environ["GPULOWER_TENSOR"]
MODELS = ("mlp:16,32,32,16", "attention:32,32")


def program(*arguments: Any) -> str:
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def executed(folder: Path, inputs: dict[str, Any]) -> Any:
    """Runs all steps of a plan one after the other."""
    plan = json.loads((folder / "plan.json").read_text())
    values = [np.full(shape, np.nan, np.float16) for shape in plan["shapes"]]
    for value, name in enumerate(plan["inputs"]):
        values[value] = inputs[name]
    for step in plan["steps"]:
        code = codeobject.read(folder / step["file"], "gfx942")
        buffers, arguments = [], []
        for value, shape in step["arguments"]:
            array = values[value].reshape(shape)
            buffers.append(Buffer(f"value {value}", array, writable=bool(np.isnan(array).all())))
            arguments += memref(f"value {value}", array)
        outputs = execute(code, step["kernel"], Geometry(tuple(step["grid"]), tuple(step["block"])), buffers, arguments, seed=1).outputs
        for name, array in outputs.items():
            value = int(name.split()[1])
            values[value] = array.reshape(plan["shapes"][value])
    return values[-1]


class Tensor(unittest.TestCase):
    def test_amd_images_compute_what_numpy_computes(self) -> None:
        for model in MODELS:
            with self.subTest(model), tempfile.TemporaryDirectory() as name:
                program("compile", model, "gfx942", name)
                inputs = inputs_of(model)
                expected = reference(model, inputs)
                error = np.abs(executed(Path(name), inputs) - expected).max() / np.abs(expected).max()
                self.assertLess(error, 4e-3)

    def test_every_step_has_a_cubin(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            program("compile", "attention:64,64", "sm_90", name)
            files = [step["file"] for step in json.loads((Path(name) / "plan.json").read_text())["steps"]]
            self.assertEqual(len(files), 8)
            self.assertTrue(all((Path(name) / file).read_bytes().startswith(b"\x7fELF") for file in files))

    def test_sizes_that_no_tiles_divide_are_refused(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            arguments = [PROGRAM, "compile", "mlp:16,16,16,17", "gfx942", name]
            result = subprocess.run(arguments, check=False, capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("error: no tiles fit: sizes have to be multiples of 16", result.stderr)

    def test_the_exported_graph_is_a_function_of_c(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            file = Path(name) / "mlp.o"
            program("export", "mlp:64,64,64,64", "sm_80,sm_90", file)
            symbols = subprocess.run(["nm", file], check=True, capture_output=True, text=True).stdout
            self.assertRegex(symbols, r" T mlp\n")
            self.assertEqual(symbols.count("__device_stub__"), 2)


if __name__ == "__main__":
    unittest.main()
