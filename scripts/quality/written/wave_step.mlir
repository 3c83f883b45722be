// block 32 8
// sizes h = u 0; w = u 1
gpu.module @wave_step {
  gpu.func @wave_step(%u: memref<?x?xf32>, %before: memref<?x?xf32>, %velocity: memref<?x?xf32>, %after: memref<?x?xf32>, %dt: f32) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %two = arith.constant 2.0 : f32
    %centre = arith.constant -5.0 : f32
    %near = arith.constant 1.33333337 : f32
    %far = arith.constant -0.0833333358 : f32
    %hd = memref.dim %u, %c0 : memref<?x?xf32>
    %wd = memref.dim %u, %c1 : memref<?x?xf32>
    %h = arith.index_cast %hd : index to i32
    %w = arith.index_cast %wd : index to i32
    %bxi = gpu.block_id x
    %byi = gpu.block_id y
    %wxi = gpu.block_dim x
    %wyi = gpu.block_dim y
    %txi = gpu.thread_id x
    %tyi = gpu.thread_id y
    %bx = arith.index_cast %bxi : index to i32
    %by = arith.index_cast %byi : index to i32
    %wx = arith.index_cast %wxi : index to i32
    %wy = arith.index_cast %wyi : index to i32
    %tx = arith.index_cast %txi : index to i32
    %ty = arith.index_cast %tyi : index to i32
    %ox = arith.muli %bx, %wx overflow<nsw> : i32
    %oy = arith.muli %by, %wy overflow<nsw> : i32
    %j = arith.addi %ox, %tx overflow<nsw> : i32
    %i = arith.addi %oy, %ty overflow<nsw> : i32
    %hl = arith.subi %h, %i2 overflow<nsw> : i32
    %wl = arith.subi %w, %i2 overflow<nsw> : i32
    %a = arith.cmpi sge, %i, %i2 : i32
    %b = arith.cmpi slt, %i, %hl : i32
    %c = arith.cmpi sge, %j, %i2 : i32
    %d = arith.cmpi slt, %j, %wl : i32
    %ab = arith.andi %a, %b : i1
    %cd = arith.andi %c, %d : i1
    %in = arith.andi %ab, %cd : i1
    scf.if %in {
      %in1 = arith.subi %i, %i1 overflow<nsw> : i32
      %in2 = arith.subi %i, %i2 overflow<nsw> : i32
      %ip1 = arith.addi %i, %i1 overflow<nsw> : i32
      %ip2 = arith.addi %i, %i2 overflow<nsw> : i32
      %jn1 = arith.subi %j, %i1 overflow<nsw> : i32
      %jn2 = arith.subi %j, %i2 overflow<nsw> : i32
      %jp1 = arith.addi %j, %i1 overflow<nsw> : i32
      %jp2 = arith.addi %j, %i2 overflow<nsw> : i32
      %r = arith.index_cast %i : i32 to index
      %rn1 = arith.index_cast %in1 : i32 to index
      %rn2 = arith.index_cast %in2 : i32 to index
      %rp1 = arith.index_cast %ip1 : i32 to index
      %rp2 = arith.index_cast %ip2 : i32 to index
      %s = arith.index_cast %j : i32 to index
      %sn1 = arith.index_cast %jn1 : i32 to index
      %sn2 = arith.index_cast %jn2 : i32 to index
      %sp1 = arith.index_cast %jp1 : i32 to index
      %sp2 = arith.index_cast %jp2 : i32 to index
      %u0 = memref.load %u[%r, %s] : memref<?x?xf32>
      %ua = memref.load %u[%rn1, %s] : memref<?x?xf32>
      %ub = memref.load %u[%rp1, %s] : memref<?x?xf32>
      %uc = memref.load %u[%r, %sn1] : memref<?x?xf32>
      %ud = memref.load %u[%r, %sp1] : memref<?x?xf32>
      %ue = memref.load %u[%rn2, %s] : memref<?x?xf32>
      %uf = memref.load %u[%rp2, %s] : memref<?x?xf32>
      %ug = memref.load %u[%r, %sn2] : memref<?x?xf32>
      %uh = memref.load %u[%r, %sp2] : memref<?x?xf32>
      %n1 = arith.addf %ua, %ub : f32
      %n2 = arith.addf %n1, %uc : f32
      %n3 = arith.addf %n2, %ud : f32
      %f1 = arith.addf %ue, %uf : f32
      %f2 = arith.addf %f1, %ug : f32
      %f3 = arith.addf %f2, %uh : f32
      %l0 = arith.mulf %centre, %u0 : f32
      %l1 = arith.mulf %near, %n3 : f32
      %l2 = arith.mulf %far, %f3 : f32
      %l3 = arith.addf %l0, %l1 : f32
      %laplace = arith.addf %l3, %l2 : f32
      %v = memref.load %velocity[%r, %s] : memref<?x?xf32>
      %vt = arith.mulf %v, %dt : f32
      %vv = arith.mulf %vt, %vt : f32
      %old = memref.load %before[%r, %s] : memref<?x?xf32>
      %u2 = arith.mulf %two, %u0 : f32
      %m = arith.subf %u2, %old : f32
      %push = arith.mulf %vv, %laplace : f32
      %new = arith.addf %m, %push : f32
      memref.store %new, %after[%r, %s] : memref<?x?xf32>
    }
    gpu.return
  }
}
