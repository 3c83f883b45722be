// RUN: not gpulower-opt --pass-pipeline='builtin.module(gpu.module(gpulower-func-to-llvm{index-bitwidth=0}))' %s 2>&1 | FileCheck %s --check-prefix=FUNC
// RUN: not gpulower-opt --pass-pipeline='builtin.module(gpu.module(gpulower-func-to-llvm{index-bitwidth=7}))' %s 2>&1 | FileCheck %s --check-prefix=FUNC
// RUN: not gpulower-opt --pass-pipeline='builtin.module(gpu.module(gpulower-interleave-loops{count=4294967295}))' %s 2>&1 | FileCheck %s --check-prefix=COUNT
// RUN: not gpulower-opt --pass-pipeline='builtin.module(gpu.module(gpulower-interleave-loops{index-bitwidth=7}))' %s 2>&1 | FileCheck %s --check-prefix=WIDTH
// RUN: not gpulower-opt --pass-pipeline='builtin.module(gpu.module(gpulower-expand-gpu{subgroup-size=0}))' %s 2>&1 | FileCheck %s --check-prefix=SUBGROUP

// Options of passes have the ranges of the command line: MLIR asserts on an index of no bits, and so many iterations at once
// take all memory.

// FUNC: gpulower-func-to-llvm: index-bitwidth is {{[07]}}; it is 32 or 64
// COUNT: gpulower-interleave-loops: count is 4294967295; it is 1, 2, 4 or 8
// WIDTH: gpulower-interleave-loops: index-bitwidth is 7; it is 32 or 64
// SUBGROUP: a subgroup has 32 or 64 lanes
gpu.module @kernels {
  gpu.func @k(%m: memref<64xf32>) kernel {
    %0 = arith.constant 0 : index
    %1 = arith.constant 1 : index
    %64 = arith.constant 64 : index
    scf.for %i = %0 to %64 step %1 {
      %v = memref.load %m[%i] : memref<64xf32>
      %w = arith.addf %v, %v : f32
      memref.store %w, %m[%i] : memref<64xf32>
    }
    gpu.return
  }
}
