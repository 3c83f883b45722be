// matmul_nvgpu: C = A * B on NVIDIA's tensor cores, written with the nvgpu
// dialect: asynchronous copies, ldmatrix and mma.sync m16n8k16. A is M x K and B
// is K x N in f16, C is M x N in f32.
//
// Any M; K and N multiples of 8, with rows of A and B that start at a multiple of
// 16 bytes: one asynchronous copy moves 8 elements, and its source must be so
// aligned. Copies beyond an edge read nothing and fill in zeros.
//
// A block computes a 32 x 32 tile of C with four warps in a 2 x 2 square; a warp
// owns 16 x 16 elements, the results of two mma.sync side by side.
//
// Launch: block (128, 1, 1), grid (ceil(N / 32), ceil(M / 32), 1).
// gpulower-targets: sm_80,sm_90

// Rows padded to 48 and 80 bytes: the eight rows that ldmatrix reads at once
// then lie in different memory banks.
!a_tile = memref<32x24xf16, #gpu.address_space<workgroup>>
!b_tile = memref<16x40xf16, #gpu.address_space<workgroup>>

gpu.module @matmul_nvgpu {
  gpu.func @matmul_nvgpu(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<?x?xf32>)
      workgroup(%As: !a_tile {llvm.align = 16 : i64}, %Bs: !b_tile {llvm.align = 16 : i64}) kernel
      attributes {known_block_size = array<i32: 128, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c64 = arith.constant 64 : index
    %zeros = arith.constant dense<0.0> : vector<2x2xf32>
    %M = memref.dim %A, %c0 : memref<?x?xf16>
    %K = memref.dim %A, %c1 : memref<?x?xf16>
    %N = memref.dim %B, %c1 : memref<?x?xf16>
    %thread = gpu.thread_id x
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %row0 = arith.muli %by, %c32 : index
    %col0 = arith.muli %bx, %c32 : index

    // This warp's 16 x 16 part of the tile.
    %lane = arith.remui %thread, %c32 : index
    %warp = arith.divui %thread, %c32 : index
    %warp_y = arith.divui %warp, %c2 : index
    %warp_x = arith.remui %warp, %c2 : index
    %warp_row = arith.muli %warp_y, %c16 : index
    %warp_col = arith.muli %warp_x, %c16 : index

    // Threads 0 .. 63 copy the 64 pieces of 8 elements of A, 64 .. 127 those of B.
    %copies_a = arith.cmpi ult, %thread, %c64 : index
    %piece = arith.remui %thread, %c64 : index
    %a_r = arith.divui %piece, %c2 : index
    %a_q = arith.remui %piece, %c2 : index
    %a_c = arith.muli %a_q, %c8 : index
    %a_row = arith.addi %row0, %a_r : index
    %a_row_ok = arith.cmpi ult, %a_row, %M : index
    %b_r = arith.divui %piece, %c4 : index
    %b_q = arith.remui %piece, %c4 : index
    %b_c = arith.muli %b_q, %c8 : index
    %b_col = arith.addi %col0, %b_c : index
    %b_col_ok = arith.cmpi ult, %b_col, %N : index

    // Where each lane points ldmatrix to: a row of one of the 8 x 8 matrices.
    %lane_r = arith.remui %lane, %c16 : index
    %lane_q = arith.divui %lane, %c16 : index
    %lane_c = arith.muli %lane_q, %c8 : index
    %a_ld_row = arith.addi %warp_row, %lane_r : index
    %warp_col_8 = arith.addi %warp_col, %c8 : index

    %left, %right = scf.for %k0 = %c0 to %K step %c16
        iter_args(%l = %zeros, %r = %zeros) -> (vector<2x2xf32>, vector<2x2xf32>) {
      scf.if %copies_a {
        %col = arith.addi %k0, %a_c : index
        %col_ok = arith.cmpi ult, %col, %K : index
        %ok = arith.andi %a_row_ok, %col_ok : i1
        // Outside: copy 0 elements, from an address that is valid all the same.
        %count = arith.select %ok, %c8, %c0 : index
        %src_row = arith.select %ok, %a_row, %c0 : index
        %src_col = arith.select %ok, %col, %c0 : index
        %t = nvgpu.device_async_copy %A[%src_row, %src_col], %As[%a_r, %a_c], 8, %count {bypassL1}
            : memref<?x?xf16> to !a_tile
      } else {
        %row = arith.addi %k0, %b_r : index
        %row_ok = arith.cmpi ult, %row, %K : index
        %ok = arith.andi %row_ok, %b_col_ok : i1
        %count = arith.select %ok, %c8, %c0 : index
        %src_row = arith.select %ok, %row, %c0 : index
        %src_col = arith.select %ok, %b_col, %c0 : index
        %t = nvgpu.device_async_copy %B[%src_row, %src_col], %Bs[%b_r, %b_c], 8, %count {bypassL1}
            : memref<?x?xf16> to !b_tile
      }
      %group = nvgpu.device_async_create_group
      nvgpu.device_async_wait %group {numGroups = 0 : i32}
      gpu.barrier

      %a = nvgpu.ldmatrix %As[%a_ld_row, %lane_c] {numTiles = 4 : i32, transpose = false}
          : !a_tile -> vector<4x2xf16>
      // B lies in rows of K; mma.sync wants columns: transposed while loading.
      %b_left = nvgpu.ldmatrix %Bs[%lane_r, %warp_col] {numTiles = 2 : i32, transpose = true}
          : !b_tile -> vector<2x2xf16>
      %b_right = nvgpu.ldmatrix %Bs[%lane_r, %warp_col_8] {numTiles = 2 : i32, transpose = true}
          : !b_tile -> vector<2x2xf16>
      %l_next = nvgpu.mma.sync (%a, %b_left, %l) {mmaShape = [16, 8, 16]}
          : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      %r_next = nvgpu.mma.sync (%a, %b_right, %r) {mmaShape = [16, 8, 16]}
          : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
      gpu.barrier
      scf.yield %l_next, %r_next : vector<2x2xf32>, vector<2x2xf32>
    }

    // A lane holds two neighbouring columns in two rows, 8 rows apart. N is even,
    // so that both columns are inside or neither is.
    %frag_r = arith.divui %lane, %c4 : index
    %frag_q = arith.remui %lane, %c4 : index
    %frag_c = arith.muli %frag_q, %c2 : index
    %tile_row = arith.addi %warp_row, %frag_r : index
    %tile_col = arith.addi %warp_col, %frag_c : index
    %row_top = arith.addi %row0, %tile_row : index
    %row_bottom = arith.addi %row_top, %c8 : index
    %col_left = arith.addi %col0, %tile_col : index
    %col_right = arith.addi %col_left, %c8 : index
    %top_ok = arith.cmpi ult, %row_top, %M : index
    %bottom_ok = arith.cmpi ult, %row_bottom, %M : index
    %left_ok = arith.cmpi ult, %col_left, %N : index
    %right_ok = arith.cmpi ult, %col_right, %N : index
    %top_left_ok = arith.andi %top_ok, %left_ok : i1
    %top_right_ok = arith.andi %top_ok, %right_ok : i1
    %bottom_left_ok = arith.andi %bottom_ok, %left_ok : i1
    %bottom_right_ok = arith.andi %bottom_ok, %right_ok : i1
    scf.if %top_left_ok {
      %v = vector.extract %left[0] : vector<2xf32> from vector<2x2xf32>
      vector.store %v, %C[%row_top, %col_left] : memref<?x?xf32>, vector<2xf32>
    }
    scf.if %top_right_ok {
      %v = vector.extract %right[0] : vector<2xf32> from vector<2x2xf32>
      vector.store %v, %C[%row_top, %col_right] : memref<?x?xf32>, vector<2xf32>
    }
    scf.if %bottom_left_ok {
      %v = vector.extract %left[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %v, %C[%row_bottom, %col_left] : memref<?x?xf32>, vector<2xf32>
    }
    scf.if %bottom_right_ok {
      %v = vector.extract %right[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %v, %C[%row_bottom, %col_right] : memref<?x?xf32>, vector<2xf32>
    }
    gpu.return
  }
}
