// block 128
// sizes cols = y 1
gpu.module @softmax_backward_f16 {
  gpu.func @softmax_backward_f16(%y: memref<?x?xf16>, %dy: memref<?x?xf16>, %dx: memref<?x?xf16>) kernel attributes {BLOCK} {
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %cols = memref.dim %y, %c1 : memref<?x?xf16>
    %row = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %sum = scf.for %j = %tx to %cols step %wx iter_args(%acc = %zero) -> (f32) {
      %a = memref.load %y[%row, %j] : memref<?x?xf16>
      %b = memref.load %dy[%row, %j] : memref<?x?xf16>
      %aw = arith.extf %a : f16 to f32
      %bw = arith.extf %b : f16 to f32
      %m = arith.mulf %aw, %bw : f32
      %next = arith.addf %acc, %m : f32
      scf.yield %next : f32
    }
    %dot = gpu.all_reduce add %sum uniform {} : (f32) -> f32
    scf.for %j = %tx to %cols step %wx {
      %a = memref.load %y[%row, %j] : memref<?x?xf16>
      %b = memref.load %dy[%row, %j] : memref<?x?xf16>
      %aw = arith.extf %a : f16 to f32
      %bw = arith.extf %b : f16 to f32
      %d = arith.subf %bw, %dot : f32
      %m = arith.mulf %aw, %d : f32
      %r = arith.truncf %m : f32 to f16
      memref.store %r, %dx[%row, %j] : memref<?x?xf16>
    }
    gpu.return
  }
}
