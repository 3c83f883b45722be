// matmul_tiled: C = A * B in f32; A is M x K, B is K x N, C is M x N, of any size.
//
// A block computes a 16 x 16 tile of C, one element per thread. It walks along
// K in steps of 16 and keeps the two tiles of A and B in shared memory, so that
// each element is read from global memory once per block, not 16 times.
// Elements outside the matrices are read as zero, which adds nothing to a sum.
//
// Launch: block (16, 16, 1), grid (ceil(N / 16), ceil(M / 16), 1).
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100

!tile = memref<16x16xf32, #gpu.address_space<workgroup>>

gpu.module @matmul_tiled {
  gpu.func @matmul_tiled(%A: memref<?x?xf32>, %B: memref<?x?xf32>, %C: memref<?x?xf32>)
      workgroup(%As: !tile, %Bs: !tile) kernel
      attributes {known_block_size = array<i32: 16, 16, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c16 = arith.constant 16 : index
    %zero = arith.constant 0.0 : f32
    %M = memref.dim %A, %c0 : memref<?x?xf32>
    %K = memref.dim %A, %c1 : memref<?x?xf32>
    %N = memref.dim %B, %c1 : memref<?x?xf32>
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %row = gpu.global_id y
    %col = gpu.global_id x
    %row_ok = arith.cmpi ult, %row, %M : index
    %col_ok = arith.cmpi ult, %col, %N : index

    %sum = scf.for %k0 = %c0 to %K step %c16 iter_args(%acc = %zero) -> (f32) {
      %a_col = arith.addi %k0, %tx : index
      %a_col_ok = arith.cmpi ult, %a_col, %K : index
      %a_ok = arith.andi %row_ok, %a_col_ok : i1
      %a = scf.if %a_ok -> (f32) {
        %v = memref.load %A[%row, %a_col] : memref<?x?xf32>
        scf.yield %v : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %a, %As[%ty, %tx] : !tile

      %b_row = arith.addi %k0, %ty : index
      %b_row_ok = arith.cmpi ult, %b_row, %K : index
      %b_ok = arith.andi %b_row_ok, %col_ok : i1
      %b = scf.if %b_ok -> (f32) {
        %v = memref.load %B[%b_row, %col] : memref<?x?xf32>
        scf.yield %v : f32
      } else {
        scf.yield %zero : f32
      }
      memref.store %b, %Bs[%ty, %tx] : !tile

      // The tiles are complete before anyone reads them ...
      gpu.barrier
      %next = affine.for %k = 0 to 16 iter_args(%s = %acc) -> (f32) {
        %x = memref.load %As[%ty, %k] : !tile
        %y = memref.load %Bs[%k, %tx] : !tile
        %t = math.fma %x, %y, %s : f32
        affine.yield %t : f32
      }
      // ... and read by everyone before the next step overwrites them.
      gpu.barrier
      scf.yield %next : f32
    }

    %ok = arith.andi %row_ok, %col_ok : i1
    scf.if %ok {
      memref.store %sum, %C[%row, %col] : memref<?x?xf32>
    }
    gpu.return
  }
}
