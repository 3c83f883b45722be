// block 128
// sizes n = length 0; most = data 1
gpu.module @crc32_rows {
  gpu.func @crc32_rows(%data: memref<?x?xi8>, %length: memref<?xi32>, %table: memref<256xi32>, %out: memref<?xi32>)
      workgroup(%mine: memref<256xi32, #gpu.address_space<workgroup>>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c256 = arith.constant 256 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i8 = arith.constant 8 : i32
    %i255 = arith.constant 255 : i32
    %ones = arith.constant -1 : i32
    %n = memref.dim %length, %c0 : memref<?xi32>
    %bx = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    scf.for %k = %tx to %c256 step %wx {
      %e = memref.load %table[%k] : memref<256xi32>
      memref.store %e, %mine[%k] : memref<256xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %base = arith.muli %bx, %wx : index
    %row = arith.addi %base, %tx : index
    %in = arith.cmpi slt, %row, %n : index
    scf.if %in {
      %len = memref.load %length[%row] : memref<?xi32>
      %crc = scf.for %k = %i0 to %len step %i1 iter_args(%c = %ones) -> (i32) : i32 {
        %ki = arith.index_cast %k : i32 to index
        %b = memref.load %data[%row, %ki] : memref<?x?xi8>
        %bw = arith.extui %b : i8 to i32
        %x = arith.xori %c, %bw : i32
        %low = arith.andi %x, %i255 : i32
        %at = arith.index_cast %low : i32 to index
        %t = memref.load %mine[%at] : memref<256xi32, #gpu.address_space<workgroup>>
        %s = arith.shrui %c, %i8 : i32
        %next = arith.xori %t, %s : i32
        scf.yield %next : i32
      }
      %r = arith.xori %crc, %ones : i32
      memref.store %r, %out[%row] : memref<?xi32>
    }
    gpu.return
  }
}
