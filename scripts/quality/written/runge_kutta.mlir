// block 128
// sizes n = x 0
gpu.module @runge_kutta {
  gpu.func @runge_kutta(%x: memref<?xf64>, %v: memref<?xf64>, %mu: memref<?xf64>, %dt: f64, %steps: index) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %one = arith.constant 1.0 : f64
    %two = arith.constant 2.0 : f64
    %half = arith.constant 0.5 : f64
    %six = arith.constant 6.0 : f64
    %n = memref.dim %x, %c0 : memref<?xf64>
    %bx = gpu.block_id x
    %wx = gpu.block_dim x
    %tx = gpu.thread_id x
    %base = arith.muli %bx, %wx : index
    %i = arith.addi %base, %tx : index
    %in = arith.cmpi slt, %i, %n : index
    scf.if %in {
      %m = memref.load %mu[%i] : memref<?xf64>
      %x0 = memref.load %x[%i] : memref<?xf64>
      %v0 = memref.load %v[%i] : memref<?xf64>
      %h2 = arith.mulf %half, %dt : f64
      %h6 = arith.divf %dt, %six : f64
      %end:2 = scf.for %s = %c0 to %steps step %c1 iter_args(%a = %x0, %b = %v0) -> (f64, f64) {
        %k1v = func.call @acceleration(%a, %b, %m) : (f64, f64, f64) -> f64
        %p1 = arith.mulf %h2, %b : f64
        %a2 = arith.addf %a, %p1 : f64
        %p2 = arith.mulf %h2, %k1v : f64
        %b2 = arith.addf %b, %p2 : f64
        %k2v = func.call @acceleration(%a2, %b2, %m) : (f64, f64, f64) -> f64
        %p3 = arith.mulf %h2, %b2 : f64
        %a3 = arith.addf %a, %p3 : f64
        %p4 = arith.mulf %h2, %k2v : f64
        %b3 = arith.addf %b, %p4 : f64
        %k3v = func.call @acceleration(%a3, %b3, %m) : (f64, f64, f64) -> f64
        %p5 = arith.mulf %dt, %b3 : f64
        %a4 = arith.addf %a, %p5 : f64
        %p6 = arith.mulf %dt, %k3v : f64
        %b4 = arith.addf %b, %p6 : f64
        %k4v = func.call @acceleration(%a4, %b4, %m) : (f64, f64, f64) -> f64
        %q1 = arith.addf %b2, %b3 : f64
        %q2 = arith.mulf %two, %q1 : f64
        %q3 = arith.addf %b, %q2 : f64
        %q4 = arith.addf %q3, %b4 : f64
        %q5 = arith.mulf %h6, %q4 : f64
        %an = arith.addf %a, %q5 : f64
        %r1 = arith.addf %k2v, %k3v : f64
        %r2 = arith.mulf %two, %r1 : f64
        %r3 = arith.addf %k1v, %r2 : f64
        %r4 = arith.addf %r3, %k4v : f64
        %r5 = arith.mulf %h6, %r4 : f64
        %bn = arith.addf %b, %r5 : f64
        scf.yield %an, %bn : f64, f64
      }
      memref.store %end#0, %x[%i] : memref<?xf64>
      memref.store %end#1, %v[%i] : memref<?xf64>
    }
    gpu.return
  }
  func.func @acceleration(%x: f64, %v: f64, %mu: f64) -> f64 {
    %one = arith.constant 1.0 : f64
    %xx = arith.mulf %x, %x : f64
    %d = arith.subf %one, %xx : f64
    %md = arith.mulf %mu, %d : f64
    %mdv = arith.mulf %md, %v : f64
    %r = arith.subf %mdv, %x : f64
    return %r : f64
  }
}
