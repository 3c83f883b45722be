// block 256
// sizes cols = p 1
gpu.module @kl_divergence {
  gpu.func @kl_divergence(%p: memref<?x?xf32>, %logq: memref<?x?xf32>, %out: memref<?xf32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %cols = memref.dim %p, %c1 : memref<?x?xf32>
    %row = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %sum = scf.for %j = %tx to %cols step %wx iter_args(%acc = %zero) -> (f32) {
      %t = memref.load %p[%row, %j] : memref<?x?xf32>
      %positive = arith.cmpf ogt, %t, %zero : f32
      %term = scf.if %positive -> (f32) {
        %lt = math.log %t : f32
        %lq = memref.load %logq[%row, %j] : memref<?x?xf32>
        %d = arith.subf %lt, %lq : f32
        %m = arith.mulf %t, %d : f32
        scf.yield %m : f32
      } else {
        scf.yield %zero : f32
      }
      %next = arith.addf %acc, %term : f32
      scf.yield %next : f32
    }
    %all = gpu.all_reduce add %sum uniform {} : (f32) -> f32
    %first = arith.cmpi eq, %tx, %c0 : index
    scf.if %first {
      memref.store %all, %out[%row] : memref<?xf32>
    }
    gpu.return
  }
}
