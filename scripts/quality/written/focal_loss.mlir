// block 256
// sizes n = x 0
gpu.module @focal_loss {
  gpu.func @focal_loss(%x: memref<?xf32>, %label: memref<?xi8>, %loss: memref<?xf32>, %total: memref<1xf32>, %alpha: f32) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %i0 = arith.constant 0 : i8
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %n = memref.dim %x, %c0 : memref<?xf32>
    %bx = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %gx = gpu.grid_dim x
    %base = arith.muli %bx, %wx : index
    %start = arith.addi %base, %tx : index
    %stride = arith.muli %gx, %wx : index
    %beta = arith.subf %one, %alpha : f32
    %sum = scf.for %i = %start to %n step %stride iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %l = memref.load %label[%i] : memref<?xi8>
      %yes = arith.cmpi ne, %l, %i0 : i8
      %neg = arith.negf %v : f32
      %en = math.exp %neg : f32
      %den = arith.addf %one, %en : f32
      %p = arith.divf %one, %den : f32
      %q = arith.subf %one, %p : f32
      %miss = arith.select %yes, %q, %p : f32
      %weight = arith.select %yes, %alpha, %beta : f32
      %av = math.absf %v : f32
      %nav = arith.negf %av : f32
      %ea = math.exp %nav : f32
      %lp = math.log1p %ea : f32
      %m = arith.maxnumf %v, %zero : f32
      %t = arith.select %yes, %v, %zero : f32
      %mt = arith.subf %m, %t : f32
      %bce = arith.addf %mt, %lp : f32
      %wm = arith.mulf %weight, %miss : f32
      %wmm = arith.mulf %wm, %miss : f32
      %f = arith.mulf %wmm, %bce : f32
      memref.store %f, %loss[%i] : memref<?xf32>
      %next = arith.addf %acc, %f : f32
      scf.yield %next : f32
    }
    %all = gpu.all_reduce add %sum uniform {} : (f32) -> f32
    %first = arith.cmpi eq, %tx, %c0 : index
    scf.if %first {
      %old = memref.atomic_rmw addf %all, %total[%c0] : (f32, memref<1xf32>) -> f32
    }
    gpu.return
  }
}
