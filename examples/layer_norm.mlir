// layer_norm: y[r, j] = (x[r, j] - mean(r)) / sqrt(var(r) + eps) * gamma[j] + beta[j]
//
// The variance comes from a second look at the row, as the mean of
// (x - mean)^2: the one-pass form E[x^2] - E[x]^2 cancels badly in f32 when the
// mean is large.
//
// Launch: block (256, 1, 1), grid (rows, 1, 1).
// gpulower-targets: sm_80,sm_90,gfx90a,gfx942,gfx1100

gpu.module @layer_norm {
  gpu.func @layer_norm(%x: memref<?x?xf32>, %gamma: memref<?xf32>,
                       %beta: memref<?xf32>, %eps: f32,
                       %y: memref<?x?xf32>) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %cols = memref.dim %x, %c1 : memref<?x?xf32>
    %cols_i64 = arith.index_cast %cols : index to i64
    %count = arith.sitofp %cols_i64 : i64 to f32
    %row = gpu.block_id x
    %thread = gpu.thread_id x
    %threads = gpu.block_dim x

    %thread_sum = scf.for %j = %thread to %cols step %threads
        iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %s = arith.addf %acc, %v : f32
      scf.yield %s : f32
    }
    %sum = gpu.all_reduce add %thread_sum uniform {} : (f32) -> f32
    %mean = arith.divf %sum, %count : f32

    %thread_sq = scf.for %j = %thread to %cols step %threads
        iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %d = arith.subf %v, %mean : f32
      %s = math.fma %d, %d, %acc : f32
      scf.yield %s : f32
    }
    %sq = gpu.all_reduce add %thread_sq uniform {} : (f32) -> f32
    %var = arith.divf %sq, %count : f32
    %var_eps = arith.addf %var, %eps : f32
    %inv_std = math.rsqrt %var_eps : f32

    scf.for %j = %thread to %cols step %threads {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %g = memref.load %gamma[%j] : memref<?xf32>
      %b = memref.load %beta[%j] : memref<?xf32>
      %d = arith.subf %v, %mean : f32
      %normed = arith.mulf %d, %inv_std : f32
      %r = math.fma %normed, %g, %b : f32
      memref.store %r, %y[%row, %j] : memref<?x?xf32>
    }
    gpu.return
  }
}
