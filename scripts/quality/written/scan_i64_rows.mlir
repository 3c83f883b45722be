// block 256
// sizes cols = x 1
gpu.module @scan_i64_rows {
  gpu.func @scan_i64_rows(%x: memref<?x?xi64>, %y: memref<?x?xi64>)
      workgroup(%part: memref<8xi64, #gpu.address_space<workgroup>>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %c31 = arith.constant 31 : index
    %i1 = arith.constant 1 : i32
    %i31 = arith.constant 31 : i32
    %i32 = arith.constant 32 : i32
    %zero = arith.constant 0 : i64
    %cols = memref.dim %x, %c1 : memref<?x?xi64>
    %row = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %lane = arith.remui %tx, %c32 : index
    %warp = arith.divui %tx, %c32 : index
    %lanei = arith.index_cast %lane : index to i32
    %last = arith.cmpi eq, %lane, %c31 : index
    %end = scf.for %base = %c0 to %cols step %wx iter_args(%carry = %zero) -> (i64) {
      %j = arith.addi %base, %tx : index
      %in = arith.cmpi slt, %j, %cols : index
      %v = scf.if %in -> (i64) {
        %l = memref.load %x[%row, %j] : memref<?x?xi64>
        scf.yield %l : i64
      } else {
        scf.yield %zero : i64
      }
      %scan:2 = scf.while (%step = %i1, %s = %v) : (i32, i64) -> (i32, i64) {
        %more = arith.cmpi slt, %step, %i32 : i32
        scf.condition(%more) %step, %s : i32, i64
      } do {
      ^bb0(%step: i32, %s: i64):
        %other, %valid = gpu.shuffle up %s, %step, %i32 : i64
        %has = arith.cmpi sge, %lanei, %step : i32
        %add = arith.select %has, %other, %zero : i64
        %sn = arith.addi %s, %add : i64
        %twice = arith.shli %step, %i1 : i32
        scf.yield %twice, %sn : i32, i64
      }
      scf.if %last {
        memref.store %scan#1, %part[%warp] : memref<8xi64, #gpu.address_space<workgroup>>
      }
      gpu.barrier
      %sums:2 = scf.for %k = %c0 to %c8 step %c1 iter_args(%before = %carry, %all = %carry) -> (i64, i64) {
        %p = memref.load %part[%k] : memref<8xi64, #gpu.address_space<workgroup>>
        %earlier = arith.cmpi slt, %k, %warp : index
        %add = arith.select %earlier, %p, %zero : i64
        %bn = arith.addi %before, %add : i64
        %an = arith.addi %all, %p : i64
        scf.yield %bn, %an : i64, i64
      }
      scf.if %in {
        %r = arith.addi %sums#0, %scan#1 : i64
        memref.store %r, %y[%row, %j] : memref<?x?xi64>
      }
      gpu.barrier
      scf.yield %sums#1 : i64
    }
    gpu.return
  }
}
