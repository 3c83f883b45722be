// block 16 16
// sizes h = x 0; w = x 1
gpu.module @jacobi_tile {
  gpu.func @jacobi_tile(%x: memref<?x?xf64>, %b: memref<?x?xf64>, %y: memref<?x?xf64>)
      workgroup(%tile: memref<18x18xf64, #gpu.address_space<workgroup>>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c16 = arith.constant 16 : index
    %c18 = arith.constant 18 : index
    %c256 = arith.constant 256 : index
    %c324 = arith.constant 324 : index
    %quarter = arith.constant 0.25 : f64
    %zero = arith.constant 0.0 : f64
    %h = memref.dim %x, %c0 : memref<?x?xf64>
    %w = memref.dim %x, %c1 : memref<?x?xf64>
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %col0 = arith.muli %bx, %c16 : index
    %row0 = arith.muli %by, %c16 : index
    %ty16 = arith.muli %ty, %c16 : index
    %first = arith.addi %ty16, %tx : index
    scf.for %t = %first to %c324 step %c256 {
      %r = arith.divui %t, %c18 : index
      %c = arith.remui %t, %c18 : index
      %rr = arith.addi %row0, %r : index
      %cc = arith.addi %col0, %c : index
      %i = arith.subi %rr, %c1 : index
      %j = arith.subi %cc, %c1 : index
      %i0 = arith.cmpi sge, %i, %c0 : index
      %i1 = arith.cmpi slt, %i, %h : index
      %j0 = arith.cmpi sge, %j, %c0 : index
      %j1 = arith.cmpi slt, %j, %w : index
      %a = arith.andi %i0, %i1 : i1
      %d = arith.andi %j0, %j1 : i1
      %in = arith.andi %a, %d : i1
      %v = scf.if %in -> (f64) {
        %l = memref.load %x[%i, %j] : memref<?x?xf64>
        scf.yield %l : f64
      } else {
        scf.yield %zero : f64
      }
      memref.store %v, %tile[%r, %c] : memref<18x18xf64, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %i = arith.addi %row0, %ty : index
    %j = arith.addi %col0, %tx : index
    %ih = arith.cmpi slt, %i, %h : index
    %jw = arith.cmpi slt, %j, %w : index
    %in = arith.andi %ih, %jw : i1
    scf.if %in {
      %r1 = arith.addi %ty, %c1 : index
      %r2 = arith.addi %ty, %c2 : index
      %s1 = arith.addi %tx, %c1 : index
      %s2 = arith.addi %tx, %c2 : index
      %up = memref.load %tile[%ty, %s1] : memref<18x18xf64, #gpu.address_space<workgroup>>
      %down = memref.load %tile[%r2, %s1] : memref<18x18xf64, #gpu.address_space<workgroup>>
      %left = memref.load %tile[%r1, %tx] : memref<18x18xf64, #gpu.address_space<workgroup>>
      %right = memref.load %tile[%r1, %s2] : memref<18x18xf64, #gpu.address_space<workgroup>>
      %rhs = memref.load %b[%i, %j] : memref<?x?xf64>
      %p = arith.addf %up, %down : f64
      %q = arith.addf %p, %left : f64
      %s = arith.addf %q, %right : f64
      %t = arith.addf %s, %rhs : f64
      %v = arith.mulf %quarter, %t : f64
      memref.store %v, %y[%i, %j] : memref<?x?xf64>
    }
    gpu.return
  }
}
