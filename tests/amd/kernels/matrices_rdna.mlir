// Matrices of subgroups of which WMMA alone has instructions: unsigned integers.

gpu.module @matrices {
  gpu.func @mma_ui8(%A: memref<16x16xi8>, %B: memref<16x16xi8>, %C: memref<16x16xi32>) kernel {
    %c0 = arith.constant 0 : index
    %a = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 16 : index, transpose} : memref<16x16xi8> -> !gpu.mma_matrix<16x16xui8, "AOp">
    %b = gpu.subgroup_mma_load_matrix %B[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xi8> -> !gpu.mma_matrix<16x16xsi8, "BOp">
    %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 16 : index, transpose} : memref<16x16xi32> -> !gpu.mma_matrix<16x16xi32, "COp">
    %d = gpu.subgroup_mma_compute %a, %b, %c : !gpu.mma_matrix<16x16xui8, "AOp">, !gpu.mma_matrix<16x16xsi8, "BOp"> -> !gpu.mma_matrix<16x16xi32, "COp">
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c0] {leadDimension = 16 : index, transpose} : !gpu.mma_matrix<16x16xi32, "COp">, memref<16x16xi32>
    gpu.return
  }
}
