// What is put where a certain value is, and nowhere else, is one compare-and-swap, in both orders of the choice.

// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
// RUN: gpulower compile %s --target sm_90 -O0 --emit ptx -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s --check-prefix=AMD

// CHECK-LABEL: .entry claim(
// CHECK-NOT: @%p
// CHECK: atom.{{.*}}cas.b64
// CHECK-NOT: @%p
// CHECK: atom.{{.*}}cas.b32
// CHECK-NOT: @%p
// CHECK: ret;

// AMD-LABEL: @claim(
// AMD: cmpxchg {{.*}} acq_rel acquire
// AMD: cmpxchg {{.*}} acq_rel acquire
// AMD: ret void

// What is put there depends on what is there.
// CHECK-LABEL: .entry multiply(
// CHECK: atom.{{.*}}cas.b32
// CHECK: bra
// AMD-LABEL: @multiply(
// AMD: cmpxchg
// AMD: br i1
gpu.module @m {
  gpu.func @claim(%table: memref<?xi64>, %state: memref<?xi32>, %key: i64, %out: memref<?xi64>) kernel {
    %free = arith.constant -1 : i64
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %i = gpu.thread_id x
    %old = memref.generic_atomic_rmw %table[%i] : memref<?xi64> {
    ^bb0(%current: i64):
      %is = arith.cmpi eq, %current, %free : i64
      %new = arith.select %is, %key, %current : i64
      memref.atomic_yield %new : i64
    }
    memref.store %old, %out[%i] : memref<?xi64>
    %before = memref.generic_atomic_rmw %state[%i] : memref<?xi32> {
    ^bb0(%current: i32):
      %is = arith.cmpi ne, %one, %current : i32
      %new = arith.select %is, %current, %two : i32
      memref.atomic_yield %new : i32
    }
    gpu.return
  }

  gpu.func @multiply(%state: memref<?xi32>) kernel {
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %i = gpu.thread_id x
    %before = memref.generic_atomic_rmw %state[%i] : memref<?xi32> {
    ^bb0(%current: i32):
      %is = arith.cmpi eq, %current, %one : i32
      %more = arith.muli %current, %three : i32
      %new = arith.select %is, %current, %more : i32
      memref.atomic_yield %new : i32
    }
    gpu.return
  }
}
