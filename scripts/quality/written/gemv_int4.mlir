// block 128
// sizes m = w 0; words = w 1; groups = scale 1
gpu.module @gemv_int4 {
  gpu.func @gemv_int4(%w: memref<?x?xi32>, %scale: memref<?x?xf16>, %x: memref<?xf16>, %y: memref<?xf32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i4 = arith.constant 4 : i32
    %i8 = arith.constant 8 : i32
    %i15 = arith.constant 15 : i32
    %i16 = arith.constant 16 : i32
    %i32 = arith.constant 32 : i32
    %i2 = arith.constant 2 : i32
    %zero = arith.constant 0.0 : f32
    %md = memref.dim %w, %c0 : memref<?x?xi32>
    %wd = memref.dim %w, %c1 : memref<?x?xi32>
    %m = arith.index_cast %md : index to i32
    %words = arith.index_cast %wd : index to i32
    %bxi = gpu.block_id x
    %txi = gpu.thread_id x
    %wxi = gpu.block_dim x
    %bx = arith.index_cast %bxi : index to i32
    %tx = arith.index_cast %txi : index to i32
    %wx = arith.index_cast %wxi : index to i32
    %base = arith.muli %bx, %wx : i32
    %thread = arith.addi %base, %tx : i32
    %row = arith.divsi %thread, %i32 : i32
    %lane = arith.remsi %thread, %i32 : i32
    %in = arith.cmpi slt, %row, %m : i32
    scf.if %in {
      %r = arith.index_cast %row : i32 to index
      %sum = scf.for %k = %lane to %words step %i32 iter_args(%acc = %zero) -> (f32) : i32 {
        %ki = arith.index_cast %k : i32 to index
        %word = memref.load %w[%r, %ki] : memref<?x?xi32>
        %first = arith.muli %k, %i8 overflow<nsw> : i32
        %dot = scf.for %e = %i0 to %i8 step %i1 iter_args(%d = %zero) -> (f32) : i32 {
          %shift = arith.muli %e, %i4 overflow<nsw> : i32
          %s = arith.shrui %word, %shift : i32
          %q = arith.andi %s, %i15 : i32
          %qs = arith.subi %q, %i8 overflow<nsw> : i32
          %qf = arith.sitofp %qs : i32 to f32
          %at = arith.addi %first, %e overflow<nsw> : i32
          %ati = arith.index_cast %at : i32 to index
          %xv = memref.load %x[%ati] : memref<?xf16>
          %xf = arith.extf %xv : f16 to f32
          %p = arith.mulf %qf, %xf : f32
          %dn = arith.addf %d, %p : f32
          scf.yield %dn : f32
        }
        %group = arith.divsi %k, %i16 : i32
        %gi = arith.index_cast %group : i32 to index
        %sc = memref.load %scale[%r, %gi] : memref<?x?xf16>
        %scf = arith.extf %sc : f16 to f32
        %part = arith.mulf %dot, %scf : f32
        %next = arith.addf %acc, %part : f32
        scf.yield %next : f32
      }
      %whole:2 = scf.while (%offset = %i16, %v = %sum) : (i32, f32) -> (i32, f32) {
        %more = arith.cmpi sgt, %offset, %i0 : i32
        scf.condition(%more) %offset, %v : i32, f32
      } do {
      ^bb0(%offset: i32, %v: f32):
        %other, %valid = gpu.shuffle down %v, %offset, %i32 : f32
        %vn = arith.addf %v, %other : f32
        %on = arith.divsi %offset, %i2 : i32
        scf.yield %on, %vn : i32, f32
      }
      %leader = arith.cmpi eq, %lane, %i0 : i32
      scf.if %leader {
        memref.store %whole#1, %y[%r] : memref<?xf32>
      }
    }
    gpu.return
  }
}
