// histogram: bins[v] += number of i with values[i] == v, for v in 0 .. 255.
//
// Values outside 0 .. 255 are not counted. `bins` is added to, not overwritten:
// clear it before the first launch.
//
// Each block counts in shared memory, where atomics are cheap, and adds its 256
// counts to global memory once, at its end.
//
// Launch: block (256, 1, 1), any grid.
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100

!counts = memref<256xi32, #gpu.address_space<workgroup>>

gpu.module @histogram {
  gpu.func @histogram(%values: memref<?xi32>, %bins: memref<256xi32>)
      workgroup(%local: !counts) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %limit = arith.constant 256 : i32
    %n = memref.dim %values, %c0 : memref<?xi32>
    %thread = gpu.thread_id x
    %first = gpu.global_id x
    %block = gpu.block_dim x
    %grid = gpu.grid_dim x
    %stride = arith.muli %block, %grid : index

    // One bin per thread: the block has as many threads as there are bins.
    memref.store %zero, %local[%thread] : !counts
    gpu.barrier

    scf.for %i = %first to %n step %stride {
      %v = memref.load %values[%i] : memref<?xi32>
      // Unsigned: a negative value is a large one, and left out as well.
      %ok = arith.cmpi ult, %v, %limit : i32
      scf.if %ok {
        %bin = arith.index_castui %v : i32 to index
        %old = memref.atomic_rmw addi %one, %local[%bin] : (i32, !counts) -> i32
      }
    }
    gpu.barrier

    %count = memref.load %local[%thread] : !counts
    %old = memref.atomic_rmw addi %count, %bins[%thread] : (i32, memref<256xi32>) -> i32
    gpu.return
  }
}
