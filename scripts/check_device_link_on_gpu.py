#!/usr/bin/env python3
"""Do linked kernels compute what they should? Run on a machine with an NVIDIA GPU, Python, numpy and cupy.

Where the compiler is:

    gpulower compile examples/device_link/joined.mlir --device-link --target sm_90 -o link/joined.cubin
    gpulower link examples/device_link/kernels.ptx examples/device_link/functions.ptx --target sm_90 -o link/linked.cubin

Where the GPU is:

    python3 scripts/check_device_link_on_gpu.py link
"""

import os
import sys

import cupy as cp
import numpy as np

THREADS = 256


def on_device(host):
    return host, cp.asarray(host)


def random_floats():
    return on_device(np.random.default_rng().standard_normal(THREADS).astype(np.float32))


def random_integers():
    return on_device(np.random.default_rng().integers(0, 1 << 20, THREADS, dtype=np.uint32))


def check(name, found, expected):
    right = np.allclose(cp.asnumpy(found), expected, rtol=1e-6)
    print(f"{name:60} {'ok' if right else 'WRONG'}")
    return right


def joined(path):
    """A kernel of one gpu.module with a function and a table of another: 3 * x + 20."""
    host, data = random_floats()
    kernel = cp.RawModule(path=path).get_function("apply")
    pointer = np.uint64(data.data.ptr)
    kernel((1,), (THREADS,), (pointer, pointer, np.int64(0), np.int64(THREADS), np.int64(1)))
    return check("modules joined before optimisation", data, 3 * host + 20)


def linked(path):
    """Kernels of one PTX file with a function and a variable of another: 3 * x + offset."""
    module = cp.RawModule(path=path)
    apply, set_offset = module.get_function("apply"), module.get_function("set_offset")
    host, data = random_integers()
    apply((1,), (THREADS,), (data, np.uint32(THREADS)))
    right = check("a function of another file, the variable as it starts", data, 3 * host + 7)
    host, data = random_integers()
    set_offset((1,), (1,), (np.uint32(1000),))
    apply((1,), (THREADS,), (data, np.uint32(THREADS)))
    return check("the variable, which another kernel has changed", data, 3 * host + 1000) and right


def main():
    folder = sys.argv[1]
    results = [joined(os.path.join(folder, "joined.cubin")), linked(os.path.join(folder, "linked.cubin"))]
    sys.exit(0 if all(results) else 1)


main()
