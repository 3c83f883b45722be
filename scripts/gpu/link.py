#!/usr/bin/env python3
"""Do linked kernels compute what they should?

    gpulower compile examples/device_link/joined.mlir --device-link --target sm_90 -o link/joined.cubin
    gpulower link examples/device_link/kernels.ptx examples/device_link/functions.ptx --target sm_90 -o link/linked.cubin
    link.py run link

Needs numpy, cupy and a driver.
"""

from __future__ import annotations

import argparse

import harness

np = harness.need("numpy")
THREADS = 256


def run(chosen: argparse.Namespace) -> int:
    cp, checks, random = harness.gpu(), harness.Checks(width=54), np.random.default_rng()

    # A kernel of one gpu.module with a function and a table of another: 3 * x + 20.
    floats = random.standard_normal(THREADS).astype(np.float32)
    data = cp.asarray(floats)
    apply = cp.RawModule(path=str(chosen.folder / "joined.cubin")).get_function("apply")
    harness.launch(apply, (1,), (THREADS,), data)
    checks.check("modules joined before optimisation", np.allclose(cp.asnumpy(data), 3 * floats + 20, rtol=1e-6))

    # Kernels of one PTX file with a function and a variable of another: 3 * x + offset.
    module = cp.RawModule(path=str(chosen.folder / "linked.cubin"))

    def applied(what: str, offset: int) -> None:
        integers = random.integers(0, 1 << 20, THREADS, dtype=np.uint32)
        data = cp.asarray(integers)
        module.get_function("apply")((1,), (THREADS,), (data, np.uint32(THREADS)))
        checks.check(what, np.array_equal(cp.asnumpy(data), 3 * integers + offset))

    applied("a function of another file, the variable as it starts", 7)
    module.get_function("set_offset")((1,), (1,), (np.uint32(1000),))
    applied("the variable, which another kernel has changed", 1000)
    return checks.status()


harness.command_line(__doc__, run)
