// block 256
// sizes n = keys 0; words = bits 0
gpu.module @bloom_probe {
  gpu.func @bloom_probe(%keys: memref<?xi64>, %bits: memref<?xi32>, %found: memref<?xi8>, %hashes: i32) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i5 = arith.constant 5 : i32
    %i31 = arith.constant 31 : i32
    %l33 = arith.constant 33 : i64
    %l32 = arith.constant 32 : i64
    %m1 = arith.constant 0xff51afd7ed558ccd : i64
    %m2 = arith.constant 0xc4ceb9fe1a85ec53 : i64
    %true = arith.constant true
    %n = memref.dim %keys, %c0 : memref<?xi64>
    %wd = memref.dim %bits, %c0 : memref<?xi32>
    %words = arith.index_cast %wd : index to i32
    %limit = arith.shli %words, %i5 : i32
    %mask = arith.subi %limit, %i1 : i32
    %bx = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %gx = gpu.grid_dim x
    %base = arith.muli %bx, %wx : index
    %start = arith.addi %base, %tx : index
    %stride = arith.muli %gx, %wx : index
    scf.for %i = %start to %n step %stride {
      %k0 = memref.load %keys[%i] : memref<?xi64>
      %s0 = arith.shrui %k0, %l33 : i64
      %k1 = arith.xori %k0, %s0 : i64
      %k2 = arith.muli %k1, %m1 : i64
      %s1 = arith.shrui %k2, %l33 : i64
      %k3 = arith.xori %k2, %s1 : i64
      %k4 = arith.muli %k3, %m2 : i64
      %s2 = arith.shrui %k4, %l33 : i64
      %k5 = arith.xori %k4, %s2 : i64
      %h1 = arith.trunci %k5 : i64 to i32
      %up = arith.shrui %k5, %l32 : i64
      %h2a = arith.trunci %up : i64 to i32
      %h2 = arith.ori %h2a, %i1 : i32
      %r:3 = scf.while (%j = %i0, %h = %h1, %yes = %true) : (i32, i32, i1) -> (i32, i32, i1) {
        %more = arith.cmpi slt, %j, %hashes : i32
        %go = arith.andi %more, %yes : i1
        scf.condition(%go) %j, %h, %yes : i32, i32, i1
      } do {
      ^bb0(%j: i32, %h: i32, %yes: i1):
        %p = arith.andi %h, %mask : i32
        %w = arith.shrui %p, %i5 : i32
        %b = arith.andi %p, %i31 : i32
        %at = arith.index_castui %w : i32 to index
        %word = memref.load %bits[%at] : memref<?xi32>
        %moved = arith.shrui %word, %b : i32
        %bit = arith.trunci %moved : i32 to i1
        %hn = arith.addi %h, %h2 : i32
        %jn = arith.addi %j, %i1 : i32
        scf.yield %jn, %hn, %bit : i32, i32, i1
      }
      %out = arith.extui %r#2 : i1 to i8
      memref.store %out, %found[%i] : memref<?xi8>
    }
    gpu.return
  }
}
