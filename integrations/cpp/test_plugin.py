"""The compiler in C++ through the plugin: its own optimizer driver, with gpulower's passes loaded into it.

BUILD is where CMake built the compiler, which has written blend.cubin and blend.gfx942.hsaco there; PLUGIN is gpulower's plugin.
"""

import os
import re
import subprocess
import unittest
from pathlib import Path

HERE = Path(__file__).parent
BUILD = Path(os.environ["BUILD"])


def serialized(source: Path, options: str) -> str:
    pipeline = f"builtin.module(elementwise-to-gpu, gpulower-to-binary{{{options}}})"
    command = [BUILD / "elementwise-opt", source, f"--load-pass-plugin={os.environ['PLUGIN']}", f"--pass-pipeline={pipeline}"]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stdout if result.returncode == 0 else result.stderr


def objects(text: str) -> list[bytes]:
    """The bytes of each #gpu.object, which MLIR writes as a string with hexadecimal escapes."""
    bodies = re.findall(r'bin = "((?:[^"\\]|\\.)*)"|, "((?:[^"\\]|\\.)*)">', text)
    escape = re.compile(rb'\\(?:([0-9A-F]{2})|(["\\]))')
    return [escape.sub(lambda m: bytes([int(m[1], 16)]) if m[1] else m[2], (a or b).encode()) for a, b in bodies]


class Plugin(unittest.TestCase):
    def test_bytes_are_those_of_the_library(self) -> None:
        for target, file in (("sm_90", "blend.cubin"), ("gfx942", "blend.hsaco")):
            with self.subTest(target):
                made = objects(serialized(HERE / "blend.mlir", f"targets={target} format=bin"))
                self.assertEqual(made, [(BUILD / file).read_bytes()])

    def test_an_error_names_the_place_in_the_dialects_file(self) -> None:
        said = serialized(HERE / "blend.mlir", "targets=sm_90 format=bin cuda=/nowhere")
        self.assertIn("blend.mlir:3:13: error: ", said)
        self.assertIn("/nowhere", said)


if __name__ == "__main__":
    unittest.main()
