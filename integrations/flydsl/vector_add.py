"""A kernel of FlyDSL, whose last step is done by whatever `FLYDSL_COMPILE_LLVM_DIR` has as `bin/mlir-opt`."""

import flydsl.compiler as flyc
import flydsl.expr as fx


@flyc.kernel
def add_numbers(a: fx.Tensor, b: fx.Tensor, out: fx.Tensor, block: fx.Constexpr[int]):
    parts = []
    for tensor in (a, b, out):
        mine = fx.slice(fx.logical_divide(tensor, fx.make_layout(block, 1)), (None, fx.block_idx.x))
        parts.append(fx.slice(fx.logical_divide(mine, fx.make_layout(1, 1)), (None, fx.thread_idx.x)))
    copy = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    registers = [fx.make_rmem_tensor(1, fx.Float32) for _ in range(3)]
    fx.copy_atom_call(copy, parts[0], registers[0])
    fx.copy_atom_call(copy, parts[1], registers[1])
    fx.memref_store_vec(fx.arith.addf(fx.memref_load_vec(registers[0]), fx.memref_load_vec(registers[1])), registers[2])
    fx.copy_atom_call(copy, registers[2], parts[2])


@flyc.jit
def add(a: fx.Tensor, b: fx.Tensor, out: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
    add_numbers(a, b, out, 64).launch(grid=((n + 63) // 64, 1, 1), block=[64, 1, 1], stream=stream)
