// block 16 16
// sizes h = x 0; w = x 1
gpu.module @bilateral {
  gpu.func @bilateral(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %radius: index, %space: f32, %range: f32) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %zero = arith.constant 0.0 : f32
    %h = memref.dim %x, %c0 : memref<?x?xf32>
    %w = memref.dim %x, %c1 : memref<?x?xf32>
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %wx = gpu.block_dim x
    %wy = gpu.block_dim y
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %ox = arith.muli %bx, %wx : index
    %oy = arith.muli %by, %wy : index
    %j = arith.addi %ox, %tx : index
    %i = arith.addi %oy, %ty : index
    %jw = arith.cmpi slt, %j, %w : index
    %ih = arith.cmpi slt, %i, %h : index
    %in = arith.andi %jw, %ih : i1
    scf.if %in {
      %centre = memref.load %x[%i, %j] : memref<?x?xf32>
      %hl = arith.subi %h, %c1 : index
      %wl = arith.subi %w, %c1 : index
      %lower = arith.subi %c0, %radius : index
      %upper = arith.addi %radius, %c1 : index
      %sums:2 = scf.for %p = %lower to %upper step %c1 iter_args(%n0 = %zero, %d0 = %zero) -> (f32, f32) {
        %ip = arith.addi %i, %p : index
        %ia = arith.maxsi %ip, %c0 : index
        %r = arith.minsi %ia, %hl : index
        %inner:2 = scf.for %q = %lower to %upper step %c1 iter_args(%n1 = %n0, %d1 = %d0) -> (f32, f32) {
          %jq = arith.addi %j, %q : index
          %ja = arith.maxsi %jq, %c0 : index
          %c = arith.minsi %ja, %wl : index
          %v = memref.load %x[%r, %c] : memref<?x?xf32>
          %diff = arith.subf %v, %centre : f32
          %pp = arith.muli %p, %p : index
          %qq = arith.muli %q, %q : index
          %far = arith.addi %pp, %qq : index
          %fari = arith.index_cast %far : index to i32
          %farf = arith.sitofp %fari : i32 to f32
          %a = arith.mulf %farf, %space : f32
          %dd = arith.mulf %diff, %diff : f32
          %b = arith.mulf %dd, %range : f32
          %ab = arith.addf %a, %b : f32
          %minus = arith.negf %ab : f32
          %weight = math.exp %minus : f32
          %wv = arith.mulf %weight, %v : f32
          %n2 = arith.addf %n1, %wv : f32
          %d2 = arith.addf %d1, %weight : f32
          scf.yield %n2, %d2 : f32, f32
        }
        scf.yield %inner#0, %inner#1 : f32, f32
      }
      %out = arith.divf %sums#0, %sums#1 : f32
      memref.store %out, %y[%i, %j] : memref<?x?xf32>
    }
    gpu.return
  }
}
