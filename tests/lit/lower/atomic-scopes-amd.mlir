// Atomics that name neither ordering nor scope are of the device, or of the workgroup in its memory; what orders nothing where the
// old value is not used is relaxed.

// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx1100 --emit llvm -o - | FileCheck %s

// CHECK-LABEL: @used(
// CHECK: atomicrmw add ptr addrspace(1) {{.*}} syncscope("agent") acq_rel
// CHECK-LABEL: @unused(
// CHECK: atomicrmw add ptr addrspace(1) {{.*}} syncscope("agent") monotonic
// CHECK-LABEL: @of_the_workgroup(
// CHECK: atomicrmw add ptr addrspace(3) {{.*}} syncscope("workgroup") acq_rel
gpu.module @kernels {
  gpu.func @used(%v: i32, %m: memref<4xi32>, %out: memref<4xi32>) kernel {
    %0 = arith.constant 0 : index
    %old = memref.atomic_rmw addi %v, %m[%0] : (i32, memref<4xi32>) -> i32
    memref.store %old, %out[%0] : memref<4xi32>
    gpu.return
  }
  gpu.func @unused(%v: i32, %m: memref<4xi32>) kernel {
    %0 = arith.constant 0 : index
    %old = memref.atomic_rmw addi %v, %m[%0] : (i32, memref<4xi32>) -> i32
    gpu.return
  }
  gpu.func @of_the_workgroup(%v: i32, %out: memref<4xi32>)
      workgroup(%m: memref<4xi32, #gpu.address_space<workgroup>>) kernel {
    %0 = arith.constant 0 : index
    %old = memref.atomic_rmw addi %v, %m[%0] : (i32, memref<4xi32, #gpu.address_space<workgroup>>) -> i32
    memref.store %old, %out[%0] : memref<4xi32>
    gpu.return
  }
}
