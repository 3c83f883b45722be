// block 32 8
// sizes h = x 0; w = x 1; oh = y 0; ow = y 1
gpu.module @bicubic {
  func.func private @cubic(%t: f32) -> f32 {
    %one = arith.constant 1.0 : f32
    %two = arith.constant 2.0 : f32
    %zero = arith.constant 0.0 : f32
    %a15 = arith.constant 1.5 : f32
    %a25 = arith.constant 2.5 : f32
    %a05 = arith.constant -0.5 : f32
    %a4 = arith.constant 4.0 : f32
    %d = math.absf %t : f32
    %near = arith.cmpf olt, %d, %one : f32
    %r = scf.if %near -> (f32) {
      %p0 = arith.mulf %a15, %d : f32
      %p1 = arith.subf %p0, %a25 : f32
      %p2 = arith.mulf %p1, %d : f32
      %p3 = arith.mulf %p2, %d : f32
      %p4 = arith.addf %p3, %one : f32
      scf.yield %p4 : f32
    } else {
      %far = arith.cmpf olt, %d, %two : f32
      %q = scf.if %far -> (f32) {
        %p0 = arith.mulf %a05, %d : f32
        %p1 = arith.addf %p0, %a25 : f32
        %p2 = arith.mulf %p1, %d : f32
        %p3 = arith.subf %p2, %a4 : f32
        %p4 = arith.mulf %p3, %d : f32
        %p5 = arith.addf %p4, %two : f32
        scf.yield %p5 : f32
      } else {
        scf.yield %zero : f32
      }
      scf.yield %q : f32
    }
    return %r : f32
  }
  gpu.func @bicubic(%x: memref<?x?xf32>, %y: memref<?x?xf32>, %sy: f32, %sx: f32) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i3 = arith.constant 3 : i32
    %im1 = arith.constant -1 : i32
    %half = arith.constant 0.5 : f32
    %zero = arith.constant 0.0 : f32
    %hd = memref.dim %x, %c0 : memref<?x?xf32>
    %wd = memref.dim %x, %c1 : memref<?x?xf32>
    %oh = memref.dim %y, %c0 : memref<?x?xf32>
    %ow = memref.dim %y, %c1 : memref<?x?xf32>
    %h = arith.index_cast %hd : index to i32
    %w = arith.index_cast %wd : index to i32
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %wx = gpu.block_dim x
    %wy = gpu.block_dim y
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %ox = arith.muli %bx, %wx : index
    %oy = arith.muli %by, %wy : index
    %col = arith.addi %ox, %tx : index
    %row = arith.addi %oy, %ty : index
    %cw = arith.cmpi slt, %col, %ow : index
    %rh = arith.cmpi slt, %row, %oh : index
    %in = arith.andi %cw, %rh : i1
    scf.if %in {
      %coli = arith.index_cast %col : index to i32
      %rowi = arith.index_cast %row : index to i32
      %colf = arith.sitofp %coli : i32 to f32
      %rowf = arith.sitofp %rowi : i32 to f32
      %cx0 = arith.addf %colf, %half : f32
      %cx1 = arith.mulf %cx0, %sx : f32
      %cx = arith.subf %cx1, %half : f32
      %cy0 = arith.addf %rowf, %half : f32
      %cy1 = arith.mulf %cy0, %sy : f32
      %cy = arith.subf %cy1, %half : f32
      %flx = math.floor %cx : f32
      %fly = math.floor %cy : f32
      %x0 = arith.fptosi %flx : f32 to i32
      %y0 = arith.fptosi %fly : f32 to i32
      %fx = arith.subf %cx, %flx : f32
      %fy = arith.subf %cy, %fly : f32
      %hl = arith.subi %h, %i1 overflow<nsw> : i32
      %wl = arith.subi %w, %i1 overflow<nsw> : i32
      %sum = scf.for %m = %im1 to %i3 step %i1 iter_args(%s0 = %zero) -> (f32) : i32 {
        %mf = arith.sitofp %m : i32 to f32
        %dy = arith.subf %mf, %fy : f32
        %wgy = func.call @cubic(%dy) : (f32) -> f32
        %ym = arith.addi %y0, %m overflow<nsw> : i32
        %ya = arith.maxsi %ym, %i0 : i32
        %yc = arith.minsi %ya, %hl : i32
        %yi = arith.index_cast %yc : i32 to index
        %line = scf.for %n = %im1 to %i3 step %i1 iter_args(%s1 = %zero) -> (f32) : i32 {
          %nf = arith.sitofp %n : i32 to f32
          %dx = arith.subf %nf, %fx : f32
          %wgx = func.call @cubic(%dx) : (f32) -> f32
          %xn = arith.addi %x0, %n overflow<nsw> : i32
          %xa = arith.maxsi %xn, %i0 : i32
          %xc = arith.minsi %xa, %wl : i32
          %xi = arith.index_cast %xc : i32 to index
          %v = memref.load %x[%yi, %xi] : memref<?x?xf32>
          %p = arith.mulf %wgx, %v : f32
          %s2 = arith.addf %s1, %p : f32
          scf.yield %s2 : f32
        }
        %p = arith.mulf %wgy, %line : f32
        %s3 = arith.addf %s0, %p : f32
        scf.yield %s3 : f32
      }
      memref.store %sum, %y[%row, %col] : memref<?x?xf32>
    }
    gpu.return
  }
}
