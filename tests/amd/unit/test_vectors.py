"""Vectors read and written in parts, with masks and in any order: a few of the kernels that `checks.vectors` makes.

GPULOWER names the program `gpulower`.
"""

from __future__ import annotations

import os
import unittest

from checks import vectors


class Vectors(unittest.TestCase):
    def test_what_is_computed_is_what_numpy_says(self) -> None:
        for target, seeds in (("gfx942", range(1, 21)), ("gfx1100", range(21, 31))):
            for seed, verdict in vectors.check(os.environ["GPULOWER"], seeds, target, []):
                self.assertEqual(verdict, "same", f"seed {seed} on {target}\n{vectors.made(seed).text()}")


if __name__ == "__main__":
    unittest.main()
