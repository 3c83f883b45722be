// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

// Asynchronous copies, their tokens carried through a loop; barriers in memory; the tensor memory accelerator, whose
// descriptor a kernel takes by address.

!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64xf32, 3>, swizzle = none, l2promo = none, oob = zero, interleave = none>

gpu.module @kernels {
  // CHECK-LABEL: .entry pipelined(
  // CHECK: cp.async.ca.shared.global
  // CHECK: cp.async.commit_group
  // CHECK: cp.async.wait_group 1
  gpu.func @pipelined(%m: memref<?xf32>, %n: index)
      workgroup(%w: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %copy = nvgpu.device_async_copy %m[%c0], %w[%c0], 4 : memref<?xf32> to memref<64xf32, #gpu.address_space<workgroup>>
    %first = nvgpu.device_async_create_group %copy
    %last = scf.for %i = %c0 to %n step %c1 iter_args(%token = %first) -> !nvgpu.device.async.token {
      nvgpu.device_async_wait %token {numGroups = 1 : i32}
      %next = nvgpu.device_async_copy %m[%i], %w[%i], 4 : memref<?xf32> to memref<64xf32, #gpu.address_space<workgroup>>
      %group = nvgpu.device_async_create_group %next
      scf.yield %group : !nvgpu.device.async.token
    }
    gpu.return
  }

  // CHECK-LABEL: .entry tensor_map(
  // CHECK: mbarrier.init.shared.b64
  // CHECK: cp.async.bulk.tensor.1d.shared::cluster.global
  gpu.func @tensor_map(%map: !map) workgroup(%w: memref<64xf32, 3>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %barrier = nvgpu.mbarrier.create -> !barrier
    nvgpu.mbarrier.init %barrier[%c0], %c1 : !barrier
    nvgpu.tma.async.load %map[%c0], %barrier[%c0] to %w : !map, !barrier -> memref<64xf32, 3>
    gpu.return
  }
}
