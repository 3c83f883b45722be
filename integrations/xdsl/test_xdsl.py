"""What xDSL prints is compiled, for both vendors."""

import unittest

import gpulower
import saxpy


class XDSL(unittest.TestCase):
    """A module built in Python."""

    def test_it_compiles_for_both_vendors(self) -> None:
        """The kernel, with the parameters that it was declared with."""
        for target in ("sm_90", "gfx942"):
            artifact = gpulower.Compiler(cache=False).compile(saxpy.build(), target)
            (kernel,) = artifact.kernels
            self.assertEqual(kernel.name, "saxpy")
            self.assertEqual(artifact.parameters["saxpy"], "(index, f32, memref<?xf32>, memref<?xf32>) -> ()")


if __name__ == "__main__":
    unittest.main()
