// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

// The 25 numbers that a thread sorts are in registers. That the loop writes to one place again and again is no reason to make it
// twice: it is unrolled whole.

// CHECK-LABEL: .entry median(
// CHECK-NOT: .local
// CHECK: st.global
gpu.module @sorts {
  gpu.func @median(%x: memref<?xi32>, %y: memref<?xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c12 = arith.constant 12 : index
    %c13 = arith.constant 13 : index
    %c25 = arith.constant 25 : index
    %tx = gpu.thread_id x
    %own = memref.alloca() : memref<25xi32>
    scf.for %i = %c0 to %c25 step %c1 {
      %from = arith.addi %tx, %i : index
      %v = memref.load %x[%from] : memref<?xi32>
      memref.store %v, %own[%i] : memref<25xi32>
    }
    scf.for %a = %c0 to %c13 step %c1 {
      %next = arith.addi %a, %c1 : index
      scf.for %b = %next to %c25 step %c1 {
        %va = memref.load %own[%a] : memref<25xi32>
        %vb = memref.load %own[%b] : memref<25xi32>
        %low = arith.minsi %va, %vb : i32
        %high = arith.maxsi %va, %vb : i32
        memref.store %low, %own[%a] : memref<25xi32>
        memref.store %high, %own[%b] : memref<25xi32>
      }
    }
    %m = memref.load %own[%c12] : memref<25xi32>
    memref.store %m, %y[%tx] : memref<?xi32>
    gpu.return
  }
}
