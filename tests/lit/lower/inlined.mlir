// RUN: gpulower compile %s --target sm_90 --interleave 1 --emit ptx -o - | FileCheck %s

// Functions that have no form of their own on a GPU are taken into the kernels that call them: reductions of workgroups have
// a buffer in the kernel, matrices of subgroups are registers. MLIR's conversion knows neither. In a loop, the reduction
// has its second barrier.

gpu.module @kernels {
  func.func @reduce(%a: f32) -> f32 {
    %b = gpu.all_reduce add %a uniform {} : (f32) -> f32
    return %b : f32
  }

  func.func @twice(%a: !gpu.mma_matrix<16x16xf16, "COp">) -> !gpu.mma_matrix<16x16xf16, "COp"> {
    %b = gpu.subgroup_mma_elementwise addf %a, %a : (!gpu.mma_matrix<16x16xf16, "COp">, !gpu.mma_matrix<16x16xf16, "COp">) -> !gpu.mma_matrix<16x16xf16, "COp">
    return %b : !gpu.mma_matrix<16x16xf16, "COp">
  }

  // CHECK-LABEL: .entry loops(
  // CHECK-NOT: call
  // CHECK-COUNT-2: bar.sync
  // CHECK-NOT: bar.sync
  // CHECK: ret;
  gpu.func @loops(%m: memref<?xf32>, %n: index) kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %i = %c0 to %n step %c1 {
      %a = memref.load %m[%t] : memref<?xf32>
      %b = func.call @reduce(%a) : (f32) -> f32
      memref.store %b, %m[%i] : memref<?xf32>
    }
    gpu.return
  }

  // CHECK-LABEL: .entry doubles(
  // CHECK: wmma.load.c
  // CHECK: add{{.*}}f16x2
  // CHECK: wmma.store.d
  gpu.func @doubles(%x: memref<16x16xf16>) kernel {
    %c0 = arith.constant 0 : index
    %q = gpu.subgroup_mma_load_matrix %x[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "COp">
    %r = func.call @twice(%q) : (!gpu.mma_matrix<16x16xf16, "COp">) -> !gpu.mma_matrix<16x16xf16, "COp">
    gpu.subgroup_mma_store_matrix %r, %x[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf16, "COp">, memref<16x16xf16>
    gpu.return
  }
}
