// What is stored does not depend on what was there, once it is folded: an exchange.

// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=AMD

// CHECK-LABEL: .entry folded(
// CHECK: atom.acq_rel.gpu.global.exch.b32
// AMD-LABEL: folded:
// AMD: global_atomic_swap
gpu.module @m {
  gpu.func @folded(%a: memref<?xi32>) kernel {
    %i = gpu.thread_id x
    %zero = arith.constant 0 : i32
    %old = memref.generic_atomic_rmw %a[%i] : memref<?xi32> {
    ^bb0(%current: i32):
      %new = arith.andi %current, %zero : i32
      memref.atomic_yield %new : i32
    }
    memref.store %old, %a[%i] : memref<?xi32>
    gpu.return
  }

  // Folded when the loop has become branches.
  // CHECK-LABEL: .entry folded_late(
  // CHECK: atom.acq_rel.gpu.global.exch.b32
  // AMD-LABEL: folded_late:
  // AMD: global_atomic_swap
  gpu.func @folded_late(%a: memref<?xi32>) kernel {
    %i = gpu.thread_id x
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %never = arith.constant false
    %end = scf.while (%count = %zero) : (i32) -> (i32) {
      %old = memref.generic_atomic_rmw %a[%i] : memref<?xi32> {
      ^bb0(%current: i32):
        %new = arith.minui %current, %count : i32
        memref.atomic_yield %new : i32
      }
      memref.store %old, %a[%i] : memref<?xi32>
      scf.condition(%never) %count : i32
    } do {
    ^bb0(%count: i32):
      %next = arith.addi %count, %one : i32
      scf.yield %next : i32
    }
    gpu.return
  }
}
