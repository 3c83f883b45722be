// block 32 8
// sizes h = x 0; w = x 1
gpu.module @sobel_u8 {
  gpu.func @sobel_u8(%x: memref<?x?xi8>, %y: memref<?x?xi8>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %i1 = arith.constant 1 : i32
    %i255 = arith.constant 255 : i32
    %hd = memref.dim %x, %c0 : memref<?x?xi8>
    %wd = memref.dim %x, %c1 : memref<?x?xi8>
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
    %hl = arith.subi %hd, %c1 : index
    %wl = arith.subi %wd, %c1 : index
    %a0 = arith.cmpi sge, %i, %c1 : index
    %a1 = arith.cmpi slt, %i, %hl : index
    %a2 = arith.cmpi sge, %j, %c1 : index
    %a3 = arith.cmpi slt, %j, %wl : index
    %a4 = arith.andi %a0, %a1 : i1
    %a5 = arith.andi %a2, %a3 : i1
    %in = arith.andi %a4, %a5 : i1
    scf.if %in {
      %in1 = arith.subi %i, %c1 : index
      %ip1 = arith.addi %i, %c1 : index
      %jn1 = arith.subi %j, %c1 : index
      %jp1 = arith.addi %j, %c1 : index
      %l00 = memref.load %x[%in1, %jn1] : memref<?x?xi8>
      %l01 = memref.load %x[%in1, %j] : memref<?x?xi8>
      %l02 = memref.load %x[%in1, %jp1] : memref<?x?xi8>
      %l10 = memref.load %x[%i, %jn1] : memref<?x?xi8>
      %l12 = memref.load %x[%i, %jp1] : memref<?x?xi8>
      %l20 = memref.load %x[%ip1, %jn1] : memref<?x?xi8>
      %l21 = memref.load %x[%ip1, %j] : memref<?x?xi8>
      %l22 = memref.load %x[%ip1, %jp1] : memref<?x?xi8>
      %v00 = arith.extui %l00 : i8 to i32
      %v01 = arith.extui %l01 : i8 to i32
      %v02 = arith.extui %l02 : i8 to i32
      %v10 = arith.extui %l10 : i8 to i32
      %v12 = arith.extui %l12 : i8 to i32
      %v20 = arith.extui %l20 : i8 to i32
      %v21 = arith.extui %l21 : i8 to i32
      %v22 = arith.extui %l22 : i8 to i32
      %d10 = arith.shli %v10, %i1 : i32
      %d12 = arith.shli %v12, %i1 : i32
      %d01 = arith.shli %v01, %i1 : i32
      %d21 = arith.shli %v21, %i1 : i32
      %r0 = arith.addi %v02, %d12 : i32
      %r1 = arith.addi %r0, %v22 : i32
      %r2 = arith.subi %r1, %v00 : i32
      %r3 = arith.subi %r2, %d10 : i32
      %gx = arith.subi %r3, %v20 : i32
      %s0 = arith.addi %v20, %d21 : i32
      %s1 = arith.addi %s0, %v22 : i32
      %s2 = arith.subi %s1, %v00 : i32
      %s3 = arith.subi %s2, %d01 : i32
      %gy = arith.subi %s3, %v02 : i32
      %xx = arith.muli %gx, %gx : i32
      %yy = arith.muli %gy, %gy : i32
      %sum = arith.addi %xx, %yy : i32
      %sumf = arith.sitofp %sum : i32 to f32
      %root = math.sqrt %sumf : f32
      %rooti = arith.fptosi %root : f32 to i32
      %clip = arith.minsi %rooti, %i255 : i32
      %out = arith.trunci %clip : i32 to i8
      memref.store %out, %y[%i, %j] : memref<?x?xi8>
    }
    gpu.return
  }
}
