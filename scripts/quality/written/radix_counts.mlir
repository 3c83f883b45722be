// block 256
// sizes n = keys 0; blocks = count 1
gpu.module @radix_counts {
  gpu.func @radix_counts(%keys: memref<?xi32>, %count: memref<16x?xi32>, %each: index, %shift: i32)
      workgroup(%part: memref<8x16xi32, #gpu.address_space<workgroup>>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %c128 = arith.constant 128 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i15 = arith.constant 15 : i32
    %n = memref.dim %keys, %c0 : memref<?xi32>
    %bx = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %warp = arith.divui %tx, %c32 : index
    %small = arith.cmpi slt, %tx, %c128 : index
    scf.if %small {
      %r = arith.divui %tx, %c16 : index
      %c = arith.remui %tx, %c16 : index
      memref.store %i0, %part[%r, %c] : memref<8x16xi32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %from = arith.muli %bx, %each : index
    %past = arith.addi %from, %each : index
    %to = arith.minsi %past, %n : index
    %start = arith.addi %from, %tx : index
    scf.for %i = %start to %to step %wx {
      %k = memref.load %keys[%i] : memref<?xi32>
      %s = arith.shrui %k, %shift : i32
      %d = arith.andi %s, %i15 : i32
      %at = arith.index_cast %d : i32 to index
      %old = memref.atomic_rmw addi %i1, %part[%warp, %at] : (i32, memref<8x16xi32, #gpu.address_space<workgroup>>) -> i32
    }
    gpu.barrier
    %few = arith.cmpi slt, %tx, %c16 : index
    scf.if %few {
      %sum = scf.for %w = %c0 to %c8 step %c1 iter_args(%acc = %i0) -> (i32) {
        %p = memref.load %part[%w, %tx] : memref<8x16xi32, #gpu.address_space<workgroup>>
        %next = arith.addi %acc, %p : i32
        scf.yield %next : i32
      }
      memref.store %sum, %count[%tx, %bx] : memref<16x?xi32>
    }
    gpu.return
  }
}
