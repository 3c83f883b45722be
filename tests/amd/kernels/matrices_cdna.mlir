// Matrices of subgroups of which MFMA alone has instructions.

gpu.module @matrices {
  gpu.func @mma_f32(%A: memref<16x8xf32>, %B: memref<8x16xf32>, %C: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %c = gpu.subgroup_mma_constant_matrix %zero : !gpu.mma_matrix<16x16xf32, "COp">
    %a = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 8 : index} : memref<16x8xf32> -> !gpu.mma_matrix<16x8xf32, "AOp">
    %b = gpu.subgroup_mma_load_matrix %B[%c0, %c0] {leadDimension = 16 : index} : memref<8x16xf32> -> !gpu.mma_matrix<8x16xf32, "BOp">
    %d = gpu.subgroup_mma_compute %a, %b, %c : !gpu.mma_matrix<16x8xf32, "AOp">, !gpu.mma_matrix<8x16xf32, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
    gpu.return
  }

  gpu.func @mma_f64(%A: memref<16x4xf64>, %B: memref<16x4xf64>, %C: memref<16x16xf64>) kernel {
    %c0 = arith.constant 0 : index
    %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf64> -> !gpu.mma_matrix<16x16xf64, "COp">
    %a = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 4 : index} : memref<16x4xf64> -> !gpu.mma_matrix<16x4xf64, "AOp">
    %b = gpu.subgroup_mma_load_matrix %B[%c0, %c0] {leadDimension = 4 : index, transpose} : memref<16x4xf64> -> !gpu.mma_matrix<4x16xf64, "BOp">
    %d = gpu.subgroup_mma_compute %a, %b, %c : !gpu.mma_matrix<16x4xf64, "AOp">, !gpu.mma_matrix<4x16xf64, "BOp"> -> !gpu.mma_matrix<16x16xf64, "COp">
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf64, "COp">, memref<16x16xf64>
    gpu.return
  }
}
