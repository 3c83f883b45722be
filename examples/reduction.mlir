// reduction: out[0] += sum of x[i]
//
// Each thread sums every (grid * 256)th element, gpu.all_reduce joins a block's
// threads, and one atomic per block adds to the result. The order of the atomics
// is not fixed, so the last bits of the sum may differ from run to run.
// `out` is added to, not overwritten: clear it before the launch.
//
// Launch: block (256, 1, 1), any grid; a few blocks per multiprocessor serve best.
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100

gpu.module @reduction {
  gpu.func @reduction(%x: memref<?xf32>, %out: memref<1xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant 0.0 : f32
    %n = memref.dim %x, %c0 : memref<?xf32>
    %thread = gpu.thread_id x
    %first = gpu.global_id x
    %block = gpu.block_dim x
    %grid = gpu.grid_dim x
    %stride = arith.muli %block, %grid : index

    %thread_sum = scf.for %i = %first to %n step %stride iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %s = arith.addf %acc, %v : f32
      scf.yield %s : f32
    }
    // Outside any branch: every thread of the block takes part.
    %block_sum = gpu.all_reduce add %thread_sum uniform {} : (f32) -> f32

    %is_first = arith.cmpi eq, %thread, %c0 : index
    scf.if %is_first {
      %old = memref.atomic_rmw addf %block_sum, %out[%c0] : (f32, memref<1xf32>) -> f32
    }
    gpu.return
  }
}
