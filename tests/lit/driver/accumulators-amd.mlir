// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s

// As upstream's lowering of linalg adds up: in memory. (driver/accumulators.ll has what is asked.)

// CHECK-LABEL: define amdgpu_kernel void @matvec(
// CHECK: .met:
gpu.module @sums {
  gpu.func @matvec(%a: memref<?x?xf32>, %x: memref<?xf32>, %y: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i = gpu.global_id x
    %m = memref.dim %a, %c0 : memref<?x?xf32>
    %n = memref.dim %a, %c1 : memref<?x?xf32>
    %inside = arith.cmpi ult, %i, %m : index
    scf.if %inside {
      scf.for %j = %c0 to %n step %c1 {
        %v = memref.load %a[%i, %j] : memref<?x?xf32>
        %w = memref.load %x[%j] : memref<?xf32>
        %old = memref.load %y[%i] : memref<?xf32>
        %p = arith.mulf %v, %w : f32
        %new = arith.addf %old, %p : f32
        memref.store %new, %y[%i] : memref<?xf32>
      }
    }
    gpu.return
  }
}
