"""Launching on an NVIDIA GPU, with cupy and torch.

`pytest -m gpu` runs it. Where there is no pytest, and nothing that makes machine code of PTX:

    python test_gpu.py make kernels.pickle      # here: needs the package and NVIDIA's compiler
    python test_gpu.py run kernels.pickle       # there: needs the package, cupy, torch, numpy
"""

from __future__ import annotations

import pickle
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpulower
from gpulower import _driver

try:
    import pytest

    pytestmark = pytest.mark.gpu
except ImportError:
    pass

SAXPY = """
gpu.module @kernels {
  gpu.func @saxpy(%n: index, %a: f32, %x: memref<?xf32>, %y: memref<?xf32>) kernel {
    %block = gpu.block_id x
    %size = gpu.block_dim x
    %thread = gpu.thread_id x
    %base = arith.muli %block, %size : index
    %i = arith.addi %base, %thread : index
    %inside = arith.cmpi ult, %i, %n : index
    scf.if %inside {
      %xi = memref.load %x[%i] : memref<?xf32>
      %yi = memref.load %y[%i] : memref<?xf32>
      %ax = arith.mulf %a, %xi : f32
      %sum = arith.addf %ax, %yi : f32
      memref.store %sum, %y[%i] : memref<?xf32>
    }
    gpu.return
  }
}
"""

TRANSPOSE = """
gpu.module @kernels {
  gpu.func @transpose(%from: memref<?x?xELEMENT, strided<[?, ?], offset: ?>>, %to: memref<?x?xELEMENT>) kernel {
    %i = gpu.block_id x
    %j = gpu.thread_id x
    %v = memref.load %from[%i, %j] : memref<?x?xELEMENT, strided<[?, ?], offset: ?>>
    memref.store %v, %to[%j, %i] : memref<?x?xELEMENT>
    gpu.return
  }
}
"""

FIXED = """
gpu.module @kernels {
  gpu.func @fill(%to: memref<64xf32>, %value: f32) kernel {
    %i = gpu.thread_id x
    memref.store %value, %to[%i] : memref<64xf32>
    gpu.return
  }
}
"""

SHARED = """
gpu.module @kernels {
  gpu.func @reverse(%x: memref<128xf32>) kernel {
    %shared = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %zero = arith.constant 0 : index
    %last = arith.constant 127 : index
    %view = memref.view %shared[%zero][] : memref<?xi8, #gpu.address_space<workgroup>>
        to memref<128xf32, #gpu.address_space<workgroup>>
    %i = gpu.thread_id x
    %v = memref.load %x[%i] : memref<128xf32>
    memref.store %v, %view[%i] : memref<128xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %j = arith.subi %last, %i : index
    %w = memref.load %view[%j] : memref<128xf32, #gpu.address_space<workgroup>>
    memref.store %w, %x[%i] : memref<128xf32>
    gpu.return
  }
}
"""

LLVM = """
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define ptx_kernel void @scale(ptr addrspace(1) %x, float %by, i32 %n) {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %in = icmp ult i32 %t, %n
  br i1 %in, label %do, label %done
do:
  %p = getelementptr float, ptr addrspace(1) %x, i32 %t
  %v = load float, ptr addrspace(1) %p
  %w = fmul float %v, %by
  store float %w, ptr addrspace(1) %p
  br label %done
done:
  ret void
}
"""

#: What was compiled elsewhere, by what it was asked for.
MADE: dict[str, gpulower.Artifact] = {}


def compiled(source: str, target: Any = "sm_90", **options: Any) -> gpulower.Artifact:
    """A kernel, as it was carried here, or compiled now."""
    key = repr((source, target, sorted(options.items())))
    if key not in MADE:
        MADE[key] = gpulower.compile(source, target, **options)
    return MADE[key]


def everything() -> None:
    """All that the tests ask for."""
    compiled(SAXPY)
    compiled(SAXPY, ("sm_80", "sm_90"))
    compiled(SAXPY, emit="ptx")
    compiled(SAXPY, index_bitwidth=32)
    for element in ("f32", "bf16", "i64"):
        compiled(TRANSPOSE.replace("ELEMENT", element))
    compiled(FIXED, bare_pointers=True)
    compiled(FIXED)
    compiled(SHARED)
    compiled(LLVM)


def raises(kind: type[BaseException], words: str, call: Callable[[], object]) -> None:
    """A call is refused in these words."""
    said = "nothing"
    try:
        call()
    except kind as error:
        said = str(error)
    assert words in said, f"{said!r} does not say {words!r}"


def test_cupy() -> None:
    import cupy

    for artifact in (compiled(SAXPY), compiled(SAXPY, ("sm_80", "sm_90")), compiled(SAXPY, emit="ptx")):
        x, y = cupy.arange(1000, dtype=cupy.float32), cupy.ones(1000, cupy.float32)
        artifact["saxpy"](4, 256)(1000, 2.0, x, y)
        assert (y == 2 * cupy.arange(1000) + 1).all()


def test_torch() -> None:
    import torch

    x = torch.arange(1000, dtype=torch.float32, device="cuda", requires_grad=True)
    y = torch.ones(1000, device="cuda")
    compiled(SAXPY)["saxpy"]((4, 1, 1), (256,), torch.cuda.current_stream())(1000, 2.0, x, y)
    assert torch.equal(y, 2 * torch.arange(1000, device="cuda") + 1)


def test_32_bit_indices() -> None:
    import cupy

    x, y = cupy.arange(1000, dtype=cupy.float32), cupy.ones(1000, cupy.float32)
    compiled(SAXPY, index_bitwidth=32)["saxpy"](4, 256)(1000, 2.0, x, y)
    assert (y == 2 * cupy.arange(1000) + 1).all()


def test_strides_and_types() -> None:
    import cupy
    import torch

    kernel = compiled(TRANSPOSE.replace("ELEMENT", "f32"))["transpose"]
    base = cupy.arange(600, dtype=cupy.float32).reshape(20, 30)
    part, to = base[::2, 5:25:2], cupy.zeros((10, 10), cupy.float32)
    kernel(10, 10)(part, to)
    assert (to == part.T).all()
    # No type of numpy's: DLPack says what it is.
    half = torch.arange(64, device="cuda").to(torch.bfloat16).reshape(8, 8)
    turned = torch.zeros(8, 8, device="cuda", dtype=torch.bfloat16)
    compiled(TRANSPOSE.replace("ELEMENT", "bf16"))["transpose"](8, 8)(half, turned)
    assert torch.equal(turned, half.T)
    long = torch.arange(64, device="cuda").reshape(8, 8)
    turned = torch.zeros(8, 8, device="cuda", dtype=torch.int64)
    compiled(TRANSPOSE.replace("ELEMENT", "i64"))["transpose"](8, 8)(long.T, turned)
    assert torch.equal(turned, long)


def test_bare_pointers_and_numbers() -> None:
    import cupy

    for artifact in (compiled(FIXED), compiled(FIXED, bare_pointers=True)):
        x = cupy.zeros(64, cupy.float32)
        artifact["fill"](1, 64)(x, cupy.float32(7).item())
        assert (x == 7).all()


def test_dynamic_shared_memory() -> None:
    import cupy

    x = cupy.arange(128, dtype=cupy.float32)
    for shared in (512, 100 << 10):
        compiled(SHARED)["reverse"](1, 128, shared=shared)(x)
    assert (x == cupy.arange(128)).all()
    compiled(SHARED)["reverse"](1, 128, shared=512)(x)
    assert (x == cupy.arange(128)[::-1]).all()


def test_parameters_that_no_source_declares() -> None:
    import cupy

    x = cupy.arange(100, dtype=cupy.float32)
    kernel = compiled(LLVM)["scale"]
    kernel(1, 128)(x, 0.5, 100)
    assert (x == cupy.arange(100) / 2).all()
    raises(TypeError, "scale has 3 parameters, and was given 2", lambda: kernel(1, 128)(x, 0.5))


def test_streams_of_everybody() -> None:
    import cupy
    import torch

    kernel = compiled(SAXPY)["saxpy"]
    for stream in (cupy.cuda.Stream(non_blocking=True), torch.cuda.Stream(), None, 0):
        x, y = cupy.ones(1 << 20, cupy.float32), cupy.zeros(1 << 20, cupy.float32)
        cupy.cuda.Device().synchronize()
        for _ in range(50):
            kernel(4096, 256, stream)(1 << 20, 1.0, x, y)
        cupy.cuda.Device().synchronize()
        assert (y == 50).all()


def test_arrays_are_kept_alive() -> None:
    import torch

    kernel = compiled(SAXPY)["saxpy"]
    stream = torch.cuda.Stream()
    y = torch.zeros(1 << 20, device="cuda")
    torch.cuda.synchronize()
    for _ in range(100):
        # Memory that is given back at once would be overwritten by the next one of these.
        kernel(4096, 256, stream)(1 << 20, 1.0, _ones(stream), y)
    torch.cuda.synchronize()
    assert (y == 100).all()


def _ones(stream: Any) -> Any:
    import torch

    with torch.cuda.stream(stream):
        return torch.ones(1 << 20, device="cuda")


def test_refusals() -> None:
    import cupy
    import numpy
    import torch

    launch = compiled(SAXPY)["saxpy"](4, 256)
    x, y = cupy.ones(1000, cupy.float32), cupy.ones(1000, cupy.float32)
    raises(TypeError, "saxpy takes 4 arguments, and not 3", lambda: launch(1000, 2.0, x))
    raises(
        TypeError,
        "argument 2: memref<?xf32> wants elements of f4, and the array has f8",
        lambda: launch(1000, 2.0, x.astype(cupy.float64), y),
    )
    raises(TypeError, "has 1 dimensions, and the array 2", lambda: launch(1000, 2.0, x.reshape(10, 100), y))
    raises(ValueError, "wants an array without gaps", lambda: launch(500, 2.0, x[::2], y))
    raises(TypeError, "not in device memory", lambda: launch(1000, 2.0, numpy.ones(1000, numpy.float32), y))
    raises(TypeError, "not in device memory", lambda: launch(1000, 2.0, torch.ones(1000), y))
    raises(TypeError, "index wants an integer", lambda: launch(1000.0, 2.0, x, y))
    raises(ValueError, "1024 threads in a block at most", lambda: compiled(SAXPY)["saxpy"](1, 2048)(1000, 2.0, x, y))
    assert (y == 1).all()


def test_cuda_core() -> None:
    try:
        from cuda.core import Device, LaunchConfig, launch
    except ImportError:
        try:
            from cuda.core.experimental import Device, LaunchConfig, launch
        except ImportError:
            print("  cuda.core is not here: not tried")
            return
    import cupy

    device = Device()
    device.set_current()
    stream = device.create_stream()
    x, y = cupy.arange(1000, dtype=cupy.float32), cupy.ones(1000, cupy.float32)
    cupy.cuda.Device().synchronize()
    kernel = compiled(LLVM).to_cuda_core().get_kernel("scale")
    launch(stream, LaunchConfig(grid=1, block=1024), kernel, x.data.ptr, _float(0.5), _int(1000))
    stream.sync()
    assert (x == cupy.arange(1000) / 2).all()
    # Our launch takes its stream.
    x = cupy.arange(1000, dtype=cupy.float32)
    cupy.cuda.Device().synchronize()
    compiled(SAXPY)["saxpy"](4, 256, stream)(1000, 2.0, x, y)
    stream.sync()
    assert (y == 2 * cupy.arange(1000) + 1).all()


def _float(value: float) -> Any:
    import ctypes

    return ctypes.c_float(value)


def _int(value: int) -> Any:
    import ctypes

    return ctypes.c_int32(value)


def test_cupys_own_launch() -> None:
    import cupy

    x = cupy.arange(100, dtype=cupy.float32)
    module = compiled(LLVM).to_cupy()
    module.get_function("scale")((1,), (128,), (x, cupy.float32(0.5), cupy.int32(100)))
    assert (x == cupy.arange(100) / 2).all()


def test_the_occupancy_is_the_drivers() -> None:
    artifacts = [compiled(SAXPY), compiled(SHARED), compiled(LLVM)]
    names = ["saxpy", "reverse", "scale"]
    for artifact, name in zip(artifacts, names):
        for threads in (32, 64, 96, 128, 256, 512, 1024):
            for shared in (0, 1000, 20000, 48 << 10):
                ours = artifact.kernel(name).occupancy(threads, shared)
                assert ours is not None
                drivers = artifact[name].active_blocks(threads, shared)
                assert ours.blocks == drivers, (name, threads, shared, ours, drivers)


def test_the_chip_that_is_here() -> None:
    cuda = _driver.driver()
    major, minor = cuda.capability(cuda.device())
    assert gpulower.compile(SAXPY, "native", emit="ptx").target.startswith(f"sm_{major}{minor}")


def main() -> int:
    """Without pytest."""
    action, path = sys.argv[1], Path(sys.argv[2])
    if action == "make":
        everything()
        path.write_bytes(pickle.dumps(MADE))
        return 0
    MADE.update(pickle.loads(path.read_bytes()))
    count = failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            count += 1
            try:
                test()
                print(f"ok     {name}")
            except Exception:
                failed += 1
                print(f"FAILED {name}\n{traceback.format_exc()}")
    print(f"{count - failed} of {count} checks are right")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
