// block 256
// sizes n = x 0
gpu.module @run_heads {
  gpu.func @run_heads(%x: memref<?xi16>, %head: memref<?xi8>, %count: memref<?xi32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i0 = arith.constant 0 : i32
    %true = arith.constant true
    %n = memref.dim %x, %c0 : memref<?xi16>
    %bx = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %base = arith.muli %bx, %wx : index
    %i = arith.addi %base, %tx : index
    %in = arith.cmpi slt, %i, %n : index
    %mine = scf.if %in -> (i32) {
      %zeroth = arith.cmpi eq, %i, %c0 : index
      %new = scf.if %zeroth -> (i1) {
        scf.yield %true : i1
      } else {
        %b = arith.subi %i, %c1 : index
        %v = memref.load %x[%i] : memref<?xi16>
        %w = memref.load %x[%b] : memref<?xi16>
        %d = arith.cmpi ne, %v, %w : i16
        scf.yield %d : i1
      }
      %flag = arith.extui %new : i1 to i8
      memref.store %flag, %head[%i] : memref<?xi8>
      %one = arith.extui %new : i1 to i32
      scf.yield %one : i32
    } else {
      scf.yield %i0 : i32
    }
    %all = gpu.all_reduce add %mine uniform {} : (i32) -> i32
    %first = arith.cmpi eq, %tx, %c0 : index
    scf.if %first {
      memref.store %all, %count[%bx] : memref<?xi32>
    }
    gpu.return
  }
}
