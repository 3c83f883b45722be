// RUN: not gpulower compile %s --target sm_90 --emit ptx -o %t 2>&1 | FileCheck %s

// Two floats behind the start of the buffer no copy of 16 bytes can begin.

gpu.module @kernels {
  gpu.func @copy(%m: memref<?xf32>) workgroup(%w: memref<256xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    // CHECK: not-aligned.mlir:[[@LINE+1]]:{{[0-9]+}}: error: link, module kernels, target sm_90: nvvm.cp.async.ca.shared.global.16 in copy uses the address 8 bytes behind the start of __wg_copy_0, and the hardware wants a multiple of 16: move it there, or leave space in front of it
    %one = nvgpu.device_async_copy %m[%c0], %w[%c2], 4 : memref<?xf32> to memref<256xf32, #gpu.address_space<workgroup>>
    %group = nvgpu.device_async_create_group %one
    nvgpu.device_async_wait %group {numGroups = 0 : i32}
    %t = gpu.thread_id x
    %v = memref.load %w[%t] : memref<256xf32, #gpu.address_space<workgroup>>
    memref.store %v, %m[%t] : memref<?xf32>
    gpu.return
  }
}
