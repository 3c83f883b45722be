// block 256
// sizes cols = x 1
gpu.module @quantize_absmax {
  gpu.func @quantize_absmax(%x: memref<?x?xf32>, %q: memref<?x?xi8>, %scale: memref<?xf32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %tiny = arith.constant 1.0e-20 : f32
    %top = arith.constant 127.0 : f32
    %cols = memref.dim %x, %c1 : memref<?x?xf32>
    %row = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %mine = scf.for %j = %tx to %cols step %wx iter_args(%m = %zero) -> (f32) {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %a = math.absf %v : f32
      %n = arith.maxnumf %m, %a : f32
      scf.yield %n : f32
    }
    %most = gpu.all_reduce maxnumf %mine uniform {} : (f32) -> f32
    %safe = arith.maxnumf %most, %tiny : f32
    %inverse = arith.divf %top, %safe : f32
    %first = arith.cmpi eq, %tx, %c0 : index
    scf.if %first {
      %s = arith.divf %safe, %top : f32
      memref.store %s, %scale[%row] : memref<?xf32>
    }
    scf.for %j = %tx to %cols step %wx {
      %v = memref.load %x[%row, %j] : memref<?x?xf32>
      %m = arith.mulf %v, %inverse : f32
      %r = math.roundeven %m : f32
      %i = arith.fptosi %r : f32 to i32
      %b = arith.trunci %i : i32 to i8
      memref.store %b, %q[%row, %j] : memref<?x?xi8>
    }
    gpu.return
  }
}
