// RUN: not gpulower-opt --pass-pipeline='builtin.module(gpu.module(gpulower-expand-gpu{subgroup-size=0}))' %s 2>&1 | FileCheck %s --check-prefix=SUBGROUP

// Options of passes have the ranges of the command line; `options-refused.mlir` has those of the table.

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
