// A loop whose range is wider than half of what its type holds, between constants that only folding shows: MLIR's own
// canonicalization takes it for one without iterations.

// RUN: gpulower compile %s --target sm_90 --emit llvm -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --emit llvm --interleave=8 -o - | FileCheck %s

// CHECK: store i64 7,

gpu.module @wide {
  gpu.func @count(%a: memref<?xi64>) kernel {
    %low = arith.constant -6835 : i16
    %one = arith.constant 1 : i16
    %from = arith.addi %low, %one : i16
    %to = arith.constant 27303 : i16
    %step = arith.constant 5461 : i16
    %none = arith.constant 0 : i64
    %more = arith.constant 1 : i64
    %i = gpu.thread_id x
    %count = scf.for %at = %from to %to step %step iter_args(%n = %none) -> (i64) : i16 {
      %next = arith.addi %n, %more : i64
      scf.yield %next : i64
    }
    memref.store %count, %a[%i] : memref<?xi64>
    gpu.return
  }
}
