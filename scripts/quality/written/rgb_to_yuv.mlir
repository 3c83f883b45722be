// block 256
// sizes n = rgb 0
gpu.module @rgb_to_yuv {
  gpu.func @rgb_to_yuv(%rgb: memref<?x3xi8>, %luma: memref<?xi8>, %cb: memref<?xi8>, %cr: memref<?xi8>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %yr = arith.constant 66 : i32
    %yg = arith.constant 129 : i32
    %yb = arith.constant 25 : i32
    %ur = arith.constant -38 : i32
    %ug = arith.constant -74 : i32
    %ub = arith.constant 112 : i32
    %vg = arith.constant -94 : i32
    %vb = arith.constant -18 : i32
    %half = arith.constant 128 : i32
    %eight = arith.constant 8 : i32
    %sixteen = arith.constant 16 : i32
    %nd = memref.dim %rgb, %c0 : memref<?x3xi8>
    %n = arith.index_cast %nd : index to i64
    %bxi = gpu.block_id x
    %txi = gpu.thread_id x
    %wxi = gpu.block_dim x
    %gxi = gpu.grid_dim x
    %bx = arith.index_cast %bxi : index to i64
    %tx = arith.index_cast %txi : index to i64
    %wx = arith.index_cast %wxi : index to i64
    %gx = arith.index_cast %gxi : index to i64
    %base = arith.muli %bx, %wx overflow<nsw> : i64
    %start = arith.addi %base, %tx overflow<nsw> : i64
    %stride = arith.muli %gx, %wx overflow<nsw> : i64
    scf.for %p = %start to %n step %stride : i64 {
      %i = arith.index_cast %p : i64 to index
      %lr = memref.load %rgb[%i, %c0] : memref<?x3xi8>
      %lg = memref.load %rgb[%i, %c1] : memref<?x3xi8>
      %lb = memref.load %rgb[%i, %c2] : memref<?x3xi8>
      %r = arith.extui %lr : i8 to i32
      %g = arith.extui %lg : i8 to i32
      %b = arith.extui %lb : i8 to i32
      %y0 = arith.muli %r, %yr : i32
      %y1 = arith.muli %g, %yg : i32
      %y2 = arith.muli %b, %yb : i32
      %y3 = arith.addi %y0, %y1 : i32
      %y4 = arith.addi %y3, %y2 : i32
      %y5 = arith.addi %y4, %half : i32
      %y6 = arith.shrsi %y5, %eight : i32
      %y7 = arith.addi %y6, %sixteen : i32
      %u0 = arith.muli %r, %ur : i32
      %u1 = arith.muli %g, %ug : i32
      %u2 = arith.muli %b, %ub : i32
      %u3 = arith.addi %u0, %u1 : i32
      %u4 = arith.addi %u3, %u2 : i32
      %u5 = arith.addi %u4, %half : i32
      %u6 = arith.shrsi %u5, %eight : i32
      %u7 = arith.addi %u6, %half : i32
      %v0 = arith.muli %r, %ub : i32
      %v1 = arith.muli %g, %vg : i32
      %v2 = arith.muli %b, %vb : i32
      %v3 = arith.addi %v0, %v1 : i32
      %v4 = arith.addi %v3, %v2 : i32
      %v5 = arith.addi %v4, %half : i32
      %v6 = arith.shrsi %v5, %eight : i32
      %v7 = arith.addi %v6, %half : i32
      %yo = arith.trunci %y7 : i32 to i8
      %uo = arith.trunci %u7 : i32 to i8
      %vo = arith.trunci %v7 : i32 to i8
      memref.store %yo, %luma[%i] : memref<?xi8>
      memref.store %uo, %cb[%i] : memref<?xi8>
      memref.store %vo, %cr[%i] : memref<?xi8>
    }
    gpu.return
  }
}
