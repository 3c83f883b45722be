// block 128
// sizes n = mean 0
gpu.module @kepler {
  gpu.func @kepler(%mean: memref<?xf64>, %eccentricity: memref<?xf64>, %anomaly: memref<?xf64>, %steps: memref<?xi32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i50 = arith.constant 50 : i32
    %one = arith.constant 1.0 : f64
    %small = arith.constant 1.0e-10 : f64
    %n = memref.dim %mean, %c0 : memref<?xf64>
    %bx = gpu.block_id x
    %wx = gpu.block_dim x
    %tx = gpu.thread_id x
    %base = arith.muli %bx, %wx : index
    %i = arith.addi %base, %tx : index
    %in = arith.cmpi slt, %i, %n : index
    scf.if %in {
      %m = memref.load %mean[%i] : memref<?xf64>
      %e = memref.load %eccentricity[%i] : memref<?xf64>
      %r:2 = scf.while (%a = %m, %k = %i0) : (f64, i32) -> (f64, i32) {
        %s = math.sin %a : f64
        %c = math.cos %a : f64
        %es = arith.mulf %e, %s : f64
        %f0 = arith.subf %a, %es : f64
        %f = arith.subf %f0, %m : f64
        %ec = arith.mulf %e, %c : f64
        %g = arith.subf %one, %ec : f64
        %d = arith.divf %f, %g : f64
        %an = arith.subf %a, %d : f64
        %kn = arith.addi %k, %i1 : i32
        %ad = math.absf %d : f64
        %far = arith.cmpf ogt, %ad, %small : f64
        %few = arith.cmpi slt, %kn, %i50 : i32
        %more = arith.andi %far, %few : i1
        scf.condition(%more) %an, %kn : f64, i32
      } do {
      ^bb0(%a: f64, %k: i32):
        scf.yield %a, %k : f64, i32
      }
      memref.store %r#0, %anomaly[%i] : memref<?xf64>
      memref.store %r#1, %steps[%i] : memref<?xi32>
    }
    gpu.return
  }
}
