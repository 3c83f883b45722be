// softmax: y[r, :] = exp(x[r, :] - max) / sum(exp(x[r, :] - max)), for each row r.
//
// One block works on one row, however long: a thread visits every 256th column
// and gpu.all_reduce joins the 256 partial results. Subtracting the maximum
// first keeps exp from overflowing.
//
// Launch: block (256, 1, 1), grid (rows, 1, 1).
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100

gpu.module @softmax {
  gpu.func @softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %minus_inf = arith.constant 0xFF800000 : f32
    %cols = memref.dim %x, %c1 : memref<?x?xf32>
    %row = gpu.block_id x
    %thread = gpu.thread_id x
    %threads = gpu.block_dim x

    // The largest element. A thread without a column keeps -inf, which is
    // neutral for max.
    %thread_max = scf.for %j = %thread to %cols step %threads
        iter_args(%acc = %minus_inf) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %m = arith.maximumf %acc, %v : f32
      scf.yield %m : f32
    }
    %max = gpu.all_reduce maximumf %thread_max uniform {} : (f32) -> f32

    // The sum of the exponentials. They are kept in y, so that exp is computed
    // only once for each element.
    %thread_sum = scf.for %j = %thread to %cols step %threads
        iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %shifted = arith.subf %v, %max : f32
      %e = math.exp %shifted : f32
      memref.store %e, %y[%row, %j] : memref<?x?xf32>
      %s = arith.addf %acc, %e : f32
      scf.yield %s : f32
    }
    %sum = gpu.all_reduce add %thread_sum uniform {} : (f32) -> f32
    %scale = arith.divf %one, %sum : f32

    // Each thread reads back only what it wrote itself: no barrier is needed.
    scf.for %j = %thread to %cols step %threads {
      %e = memref.load %y[%row, %j] : memref<?x?xf32>
      %r = arith.mulf %e, %scale : f32
      memref.store %r, %y[%row, %j] : memref<?x?xf32>
    }
    gpu.return
  }
}
