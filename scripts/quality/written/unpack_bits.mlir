// block 256
// sizes n = out 0
gpu.module @unpack_bits {
  gpu.func @unpack_bits(%packed: memref<?xi32>, %out: memref<?xi32>, %width: i64) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1 : i64
    %five = arith.constant 5 : i64
    %l31 = arith.constant 31 : i64
    %l32 = arith.constant 32 : i64
    %n = memref.dim %out, %c0 : memref<?xi32>
    %bx = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %gx = gpu.grid_dim x
    %base = arith.muli %bx, %wx : index
    %start = arith.addi %base, %tx : index
    %stride = arith.muli %gx, %wx : index
    %top = arith.shli %one, %width : i64
    %mask = arith.subi %top, %one : i64
    scf.for %i = %start to %n step %stride {
      %il = arith.index_cast %i : index to i64
      %bit = arith.muli %il, %width : i64
      %word = arith.shrui %bit, %five : i64
      %shift = arith.andi %bit, %l31 : i64
      %at = arith.index_cast %word : i64 to index
      %at1 = arith.addi %at, %c1 : index
      %lo = memref.load %packed[%at] : memref<?xi32>
      %hi = memref.load %packed[%at1] : memref<?xi32>
      %low = arith.extui %lo : i32 to i64
      %high = arith.extui %hi : i32 to i64
      %hs = arith.shli %high, %l32 : i64
      %both = arith.ori %hs, %low : i64
      %moved = arith.shrui %both, %shift : i64
      %v = arith.andi %moved, %mask : i64
      %r = arith.trunci %v : i64 to i32
      memref.store %r, %out[%i] : memref<?xi32>
    }
    gpu.return
  }
}
