// The kernel table is filled for both vendors, for `bin` and `fatbin`, sorted by name; text formats have none.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942 format=bin" | FileCheck %s
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942 format=fatbin" | FileCheck %s
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942 format=isa" | FileCheck %s --check-prefix=TEXT
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942 format=bin" | mlir-opt | FileCheck %s

// CHECK: #gpu.object<#nvvm.target<
// CHECK-SAME: kernels = <[#gpu.kernel_metadata<"first", !llvm.func<void (f32, ptr, ptr, i64, i64, i64)>
// CHECK-SAME: metadata = {barriers = [[#]] : i64, code_bytes = [[#]] : i64, {{.*}}registers = [[#]] : i64, scratch_bytes = 0 : i64, shared_bytes = 128 : i64, spill_load_bytes = 0 : i64, spill_store_bytes = 0 : i64}>
// CHECK-SAME: #gpu.kernel_metadata<"second"
// CHECK-SAME: #gpu.object<#rocdl.target<
// CHECK-SAME: #gpu.kernel_metadata<"first", !llvm.func<void (f32, ptr, ptr, i64, i64, i64)>
// CHECK-SAME: group_segment_fixed_size = 128 : i64
// CHECK-SAME: vgpr_count = [[#]] : i64
// CHECK-SAME: wavefront_size = 64 : i64
// CHECK-SAME: #gpu.kernel_metadata<"second"
// TEXT-NOT: kernel_metadata
gpu.module @m {
  gpu.func @second() kernel {
    gpu.return
  }
  gpu.func @first(%x: f32, %out: memref<?xf32>) workgroup(%shared: memref<32xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i = gpu.thread_id x
    memref.store %x, %shared[%i] : memref<32xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %j = arith.subi %i, %c1 : index
    %0 = memref.load %shared[%j] : memref<32xf32, #gpu.address_space<workgroup>>
    memref.store %0, %out[%i] : memref<?xf32>
    gpu.return
  }
}
