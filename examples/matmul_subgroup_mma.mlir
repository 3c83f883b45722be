// matmul_subgroup_mma: C = A * B on the matrix units, written with the gpu
// dialect's own subgroup_mma operations; A is M x K and B is K x N in f16, C is
// M x N in f32, all of any size.
//
// A block computes a 32 x 32 tile of C with four subgroups of 32, each of which
// owns one 16 x 16 quarter. The matrices pass through shared memory: the
// operations need a leading dimension known at compile time and cannot be
// masked, while a shared tile has both a fixed width and room for zeros beyond
// the edges. The result leaves in the same way, element by element, with a
// bounds check.
//
// Launch: block (128, 1, 1), grid (ceil(N / 32), ceil(M / 32), 1).
// gpulower-targets: sm_80,sm_90

!a_tile = memref<32x16xf16, #gpu.address_space<workgroup>>
!b_tile = memref<16x32xf16, #gpu.address_space<workgroup>>
!c_tile = memref<32x32xf32, #gpu.address_space<workgroup>>
!a_frag = !gpu.mma_matrix<16x16xf16, "AOp">
!b_frag = !gpu.mma_matrix<16x16xf16, "BOp">
!c_frag = !gpu.mma_matrix<16x16xf32, "COp">

gpu.module @matmul_subgroup_mma {
  // The matrix loads want their addresses aligned to 32 bytes.
  gpu.func @matmul_subgroup_mma(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<?x?xf32>)
      workgroup(%As: !a_tile {llvm.align = 32 : i64}, %Bs: !b_tile {llvm.align = 32 : i64},
                %Cs: !c_tile {llvm.align = 32 : i64}) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %c512 = arith.constant 512 : index
    %c1024 = arith.constant 1024 : index
    %zero_f16 = arith.constant 0.0 : f16
    %zero_f32 = arith.constant 0.0 : f32
    %M = memref.dim %A, %c0 : memref<?x?xf16>
    %K = memref.dim %A, %c1 : memref<?x?xf16>
    %N = memref.dim %B, %c1 : memref<?x?xf16>
    %thread = gpu.thread_id x
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %row0 = arith.muli %by, %c32 : index
    %col0 = arith.muli %bx, %c32 : index

    // This subgroup's quarter of the tile.
    %subgroup = arith.divui %thread, %c32 : index
    %quarter_y = arith.divui %subgroup, %c2 : index
    %quarter_x = arith.remui %subgroup, %c2 : index
    %sub_row = arith.muli %quarter_y, %c16 : index
    %sub_col = arith.muli %quarter_x, %c16 : index

    %init = gpu.subgroup_mma_constant_matrix %zero_f32 : !c_frag
    %sum = scf.for %k0 = %c0 to %K step %c16 iter_args(%acc = %init) -> (!c_frag) {
      // 512 elements of each matrix for 128 threads.
      scf.for %e = %thread to %c512 step %c128 {
        %a_r = arith.divui %e, %c16 : index
        %a_c = arith.remui %e, %c16 : index
        %a_row = arith.addi %row0, %a_r : index
        %a_col = arith.addi %k0, %a_c : index
        %a_row_ok = arith.cmpi ult, %a_row, %M : index
        %a_col_ok = arith.cmpi ult, %a_col, %K : index
        %a_ok = arith.andi %a_row_ok, %a_col_ok : i1
        %a = scf.if %a_ok -> (f16) {
          %v = memref.load %A[%a_row, %a_col] : memref<?x?xf16>
          scf.yield %v : f16
        } else {
          scf.yield %zero_f16 : f16
        }
        memref.store %a, %As[%a_r, %a_c] : !a_tile

        %b_r = arith.divui %e, %c32 : index
        %b_c = arith.remui %e, %c32 : index
        %b_row = arith.addi %k0, %b_r : index
        %b_col = arith.addi %col0, %b_c : index
        %b_row_ok = arith.cmpi ult, %b_row, %K : index
        %b_col_ok = arith.cmpi ult, %b_col, %N : index
        %b_ok = arith.andi %b_row_ok, %b_col_ok : i1
        %b = scf.if %b_ok -> (f16) {
          %v = memref.load %B[%b_row, %b_col] : memref<?x?xf16>
          scf.yield %v : f16
        } else {
          scf.yield %zero_f16 : f16
        }
        memref.store %b, %Bs[%b_r, %b_c] : !b_tile
      }

      gpu.barrier
      %a_frag = gpu.subgroup_mma_load_matrix %As[%sub_row, %c0] {leadDimension = 16 : index}
          : !a_tile -> !a_frag
      %b_frag = gpu.subgroup_mma_load_matrix %Bs[%c0, %sub_col] {leadDimension = 32 : index}
          : !b_tile -> !b_frag
      %next = gpu.subgroup_mma_compute %a_frag, %b_frag, %acc : !a_frag, !b_frag -> !c_frag
      gpu.barrier
      scf.yield %next : !c_frag
    }

    gpu.subgroup_mma_store_matrix %sum, %Cs[%sub_row, %sub_col] {leadDimension = 32 : index}
        : !c_frag, !c_tile
    gpu.barrier
    scf.for %e = %thread to %c1024 step %c128 {
      %r = arith.divui %e, %c32 : index
      %c = arith.remui %e, %c32 : index
      %row = arith.addi %row0, %r : index
      %col = arith.addi %col0, %c : index
      %row_ok = arith.cmpi ult, %row, %M : index
      %col_ok = arith.cmpi ult, %col, %N : index
      %ok = arith.andi %row_ok, %col_ok : i1
      scf.if %ok {
        %v = memref.load %Cs[%r, %c] : !c_tile
        memref.store %v, %C[%row, %col] : memref<?x?xf32>
      }
    }
    gpu.return
  }
}
