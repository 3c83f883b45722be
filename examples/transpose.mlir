// transpose: out[j, i] = in[i, j]
//
// A block moves one 32 x 32 tile through shared memory, so that the reads and
// the writes both run along rows in global memory. The tile has 33 columns: with
// 32, the 32 elements of a tile column would lie in the same memory bank.
//
// Launch: block (32, 8, 1), grid (ceil(columns / 32), ceil(rows / 32), 1), with
// rows and columns those of the input.
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100

gpu.module @transpose {
  gpu.func @transpose(%in: memref<?x?xf32>, %out: memref<?x?xf32>)
      workgroup(%tile: memref<32x33xf32, #gpu.address_space<workgroup>>) kernel
      attributes {known_block_size = array<i32: 32, 8, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %rows = memref.dim %in, %c0 : memref<?x?xf32>
    %cols = memref.dim %in, %c1 : memref<?x?xf32>
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %row0 = arith.muli %by, %c32 : index
    %col0 = arith.muli %bx, %c32 : index

    // 8 rows of threads read 32 rows of the tile, in four steps.
    %in_col = arith.addi %col0, %tx : index
    %in_col_ok = arith.cmpi ult, %in_col, %cols : index
    scf.for %k = %ty to %c32 step %c8 {
      %in_row = arith.addi %row0, %k : index
      %in_row_ok = arith.cmpi ult, %in_row, %rows : index
      %ok = arith.andi %in_row_ok, %in_col_ok : i1
      scf.if %ok {
        %v = memref.load %in[%in_row, %in_col] : memref<?x?xf32>
        memref.store %v, %tile[%k, %tx] : memref<32x33xf32, #gpu.address_space<workgroup>>
      }
    }

    gpu.barrier

    // The same tile, read along its columns, is written along the output's rows.
    %out_col = arith.addi %row0, %tx : index
    %out_col_ok = arith.cmpi ult, %out_col, %rows : index
    scf.for %k = %ty to %c32 step %c8 {
      %out_row = arith.addi %col0, %k : index
      %out_row_ok = arith.cmpi ult, %out_row, %cols : index
      %ok = arith.andi %out_row_ok, %out_col_ok : i1
      scf.if %ok {
        %v = memref.load %tile[%tx, %k] : memref<32x33xf32, #gpu.address_space<workgroup>>
        memref.store %v, %out[%out_row, %out_col] : memref<?x?xf32>
      }
    }
    gpu.return
  }
}
