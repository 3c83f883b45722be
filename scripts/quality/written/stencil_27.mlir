// block 32 4 2
// sizes d = x 0; h = x 1; w = x 2
gpu.module @stencil_27 {
  gpu.func @stencil_27(%x: memref<?x?x?xf32>, %weight: memref<3x3x3xf32>, %y: memref<?x?x?xf32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %cm1 = arith.constant -1 : index
    %zero = arith.constant 0.0 : f32
    %d = memref.dim %x, %c0 : memref<?x?x?xf32>
    %h = memref.dim %x, %c1 : memref<?x?x?xf32>
    %w = memref.dim %x, %c2 : memref<?x?x?xf32>
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %bz = gpu.block_id z
    %wx = gpu.block_dim x
    %wy = gpu.block_dim y
    %wz = gpu.block_dim z
    %tx = gpu.thread_id x
    %ty = gpu.thread_id y
    %tz = gpu.thread_id z
    %ox = arith.muli %bx, %wx : index
    %oy = arith.muli %by, %wy : index
    %oz = arith.muli %bz, %wz : index
    %j = arith.addi %ox, %tx : index
    %i = arith.addi %oy, %ty : index
    %k = arith.addi %oz, %tz : index
    %dl = arith.subi %d, %c1 : index
    %hl = arith.subi %h, %c1 : index
    %wl = arith.subi %w, %c1 : index
    %k0 = arith.cmpi sgt, %k, %c0 : index
    %k1 = arith.cmpi slt, %k, %dl : index
    %i0 = arith.cmpi sgt, %i, %c0 : index
    %i1 = arith.cmpi slt, %i, %hl : index
    %j0 = arith.cmpi sgt, %j, %c0 : index
    %j1 = arith.cmpi slt, %j, %wl : index
    %a = arith.andi %k0, %k1 : i1
    %b = arith.andi %i0, %i1 : i1
    %c = arith.andi %j0, %j1 : i1
    %ab = arith.andi %a, %b : i1
    %in = arith.andi %ab, %c : i1
    scf.if %in {
      %sum = scf.for %dk = %cm1 to %c2 step %c1 iter_args(%s0 = %zero) -> (f32) {
        %r0 = scf.for %di = %cm1 to %c2 step %c1 iter_args(%s1 = %s0) -> (f32) {
          %r1 = scf.for %dj = %cm1 to %c2 step %c1 iter_args(%s2 = %s1) -> (f32) {
            %kk = arith.addi %k, %dk : index
            %ii = arith.addi %i, %di : index
            %jj = arith.addi %j, %dj : index
            %wk = arith.addi %dk, %c1 : index
            %wi = arith.addi %di, %c1 : index
            %wj = arith.addi %dj, %c1 : index
            %v = memref.load %x[%kk, %ii, %jj] : memref<?x?x?xf32>
            %f = memref.load %weight[%wk, %wi, %wj] : memref<3x3x3xf32>
            %p = arith.mulf %v, %f : f32
            %n = arith.addf %s2, %p : f32
            scf.yield %n : f32
          }
          scf.yield %r1 : f32
        }
        scf.yield %r0 : f32
      }
      memref.store %sum, %y[%k, %i, %j] : memref<?x?x?xf32>
    }
    gpu.return
  }
}
