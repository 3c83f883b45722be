// RUN: gpulower compile %s --target gfx950 --emit llvm -o - | FileCheck %s

// A copy of 16 bytes for each lane goes from global memory into that of the workgroup.
// CHECK: @tile = private addrspace(3) global [1024 x half] undef, align 16
module {
  gpu.module @kernels {
    memref.global "private" @tile : memref<1024xf16, 3>
    gpu.func @copy(%from: memref<1024xf16, 1>, %to: memref<1024xf16, 1>) kernel {
      %zero = arith.constant 0 : index
      %tile = memref.get_global @tile : memref<1024xf16, 3>
      %t = gpu.thread_id x
      amdgpu.gather_to_lds %from[%t], %tile[%zero] : vector<8xf16>, memref<1024xf16, 1>, memref<1024xf16, 3>
      gpu.barrier
      %v = memref.load %tile[%t] : memref<1024xf16, 3>
      memref.store %v, %to[%t] : memref<1024xf16, 1>
      gpu.return
    }
  }
}
