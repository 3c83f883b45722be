// The last block finishes: each block leaves a part, and whoever counts last adds them up. Nothing but the ordering of the
// atomic operation makes the parts visible.

gpu.module @orderings {
  gpu.func @last_block(%counter: memref<1xi32>, %parts: memref<?xi32>, %out: memref<1xi32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %block = gpu.block_id x
    %blocks = gpu.grid_dim x
    %number = arith.index_cast %block : index to i32
    %part = arith.addi %number, %one : i32
    memref.store %part, %parts[%block] : memref<?xi32>
    %count = memref.atomic_rmw addi %one, %counter[%c0] : (i32, memref<1xi32>) -> i32
    %before = arith.index_cast %count : i32 to index
    %after = arith.addi %before, %c1 : index
    %last = arith.cmpi eq, %after, %blocks : index
    scf.if %last {
      %sum = scf.for %i = %c0 to %blocks step %c1 iter_args(%acc = %zero) -> (i32) {
        %v = memref.load %parts[%i] : memref<?xi32>
        %more = arith.addi %acc, %v : i32
        scf.yield %more : i32
      }
      memref.store %sum, %out[%c0] : memref<1xi32>
    }
    gpu.return
  }
}
