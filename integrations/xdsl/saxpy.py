"""saxpy, built with xDSL's dialects and compiled by gpulower; `run` launches it on cupy's arrays."""

import gpulower
from xdsl.builder import ImplicitBuilder
from xdsl.dialects import arith, gpu, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, ModuleOp, StringAttr, UnitAttr, f32
from xdsl.ir import Block, Region


def build() -> ModuleOp:
    """The module: y = a * x + y for the first n numbers."""
    vector = MemRefType(f32, [DYNAMIC_INDEX])
    parameters = [IndexType(), f32, vector, vector]
    body, inside = Block(arg_types=parameters), Block()
    x_axis = gpu.DimensionAttr(gpu.DimensionEnum.X)
    with ImplicitBuilder(body) as (n, a, x, y):
        base = arith.MuliOp(gpu.BlockIdOp(x_axis), gpu.BlockDimOp(x_axis))
        i = arith.AddiOp(base, gpu.ThreadIdOp(x_axis))
        with ImplicitBuilder(inside):
            product = arith.MulfOp(a, memref.LoadOp.get(x, [i]))
            memref.StoreOp.get(arith.AddfOp(product, memref.LoadOp.get(y, [i])), y, [i])
            scf.YieldOp()
        scf.IfOp(arith.CmpiOp(i, n, "ult"), [], Region(inside))
        gpu.ReturnOp([])
    function = gpu.FuncOp("saxpy", (parameters, []), Region(body), kernel=True)
    # xDSL has the mark of a kernel as MLIR 23 has it; MLIR 22, which gpulower has, knows it by this name.
    function.attributes["gpu.kernel"] = UnitAttr()
    return ModuleOp([gpu.ModuleOp(StringAttr("kernels"), Region(Block([function])))])


def run() -> None:
    """On this machine's GPU, beside what cupy computes."""
    import cupy

    n = 1_000_003
    x, y = cupy.random.random(n, cupy.float32), cupy.random.random(n, cupy.float32)
    expected = 2 * x + y
    kernel = gpulower.compile(build(), "native")["saxpy"]
    kernel(grid=-(-n // 256), block=256)(n, 2.0, x, y)
    assert cupy.allclose(y, expected)


if __name__ == "__main__":
    artifact = gpulower.compile(build(), "sm_90,gfx942")
    print(artifact)
