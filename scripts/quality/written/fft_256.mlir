// block 64
gpu.module @fft_256 {
  gpu.func @fft_256(%x: memref<?x256x2xf32>, %y: memref<?x256x2xf32>)
      workgroup(%re: memref<256xf32, #gpu.address_space<workgroup>>, %im: memref<256xf32, #gpu.address_space<workgroup>>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %c256 = arith.constant 256 : index
    %tau = arith.constant -6.28318548 : f32
    %batch = gpu.block_id x
    %t = gpu.thread_id x
    scf.for %i = %t to %c256 step %c64 {
      %a = memref.load %x[%batch, %i, %c0] : memref<?x256x2xf32>
      %b = memref.load %x[%batch, %i, %c1] : memref<?x256x2xf32>
      memref.store %a, %re[%i] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %b, %im[%i] : memref<256xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %t1 = arith.addi %t, %c64 : index
    %t2 = arith.addi %t1, %c64 : index
    %t3 = arith.addi %t2, %c64 : index
    %end = scf.while (%ns = %c1) : (index) -> (index) {
      %more = arith.cmpi slt, %ns, %c256 : index
      scf.condition(%more) %ns : index
    } do {
    ^bb0(%ns: index):
      %k = arith.remui %t, %ns : index
      %group = arith.divui %t, %ns : index
      %ki = arith.index_cast %k : index to i32
      %kf = arith.sitofp %ki : i32 to f32
      %ns4 = arith.muli %ns, %c4 : index
      %nsi = arith.index_cast %ns4 : index to i32
      %nsf = arith.sitofp %nsi : i32 to f32
      %kt = arith.mulf %tau, %kf : f32
      %angle = arith.divf %kt, %nsf : f32
      %w1r = math.cos %angle : f32
      %w1i = math.sin %angle : f32
      %q1 = arith.mulf %w1r, %w1r : f32
      %q2 = arith.mulf %w1i, %w1i : f32
      %w2r = arith.subf %q1, %q2 : f32
      %q3 = arith.mulf %w1r, %w1i : f32
      %w2i = arith.addf %q3, %q3 : f32
      %q4 = arith.mulf %w2r, %w1r : f32
      %q5 = arith.mulf %w2i, %w1i : f32
      %w3r = arith.subf %q4, %q5 : f32
      %q6 = arith.mulf %w2r, %w1i : f32
      %q7 = arith.mulf %w2i, %w1r : f32
      %w3i = arith.addf %q6, %q7 : f32
      %v0r = memref.load %re[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %v0i = memref.load %im[%t] : memref<256xf32, #gpu.address_space<workgroup>>
      %l1r = memref.load %re[%t1] : memref<256xf32, #gpu.address_space<workgroup>>
      %l1i = memref.load %im[%t1] : memref<256xf32, #gpu.address_space<workgroup>>
      %l2r = memref.load %re[%t2] : memref<256xf32, #gpu.address_space<workgroup>>
      %l2i = memref.load %im[%t2] : memref<256xf32, #gpu.address_space<workgroup>>
      %l3r = memref.load %re[%t3] : memref<256xf32, #gpu.address_space<workgroup>>
      %l3i = memref.load %im[%t3] : memref<256xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      %a1 = arith.mulf %l1r, %w1r : f32
      %b1 = arith.mulf %l1i, %w1i : f32
      %v1r = arith.subf %a1, %b1 : f32
      %d1 = arith.mulf %l1r, %w1i : f32
      %e1 = arith.mulf %l1i, %w1r : f32
      %v1i = arith.addf %d1, %e1 : f32
      %a2 = arith.mulf %l2r, %w2r : f32
      %b2 = arith.mulf %l2i, %w2i : f32
      %v2r = arith.subf %a2, %b2 : f32
      %d2 = arith.mulf %l2r, %w2i : f32
      %e2 = arith.mulf %l2i, %w2r : f32
      %v2i = arith.addf %d2, %e2 : f32
      %a3 = arith.mulf %l3r, %w3r : f32
      %b3 = arith.mulf %l3i, %w3i : f32
      %v3r = arith.subf %a3, %b3 : f32
      %d3 = arith.mulf %l3r, %w3i : f32
      %e3 = arith.mulf %l3i, %w3r : f32
      %v3i = arith.addf %d3, %e3 : f32
      %s0r = arith.addf %v0r, %v2r : f32
      %s0i = arith.addf %v0i, %v2i : f32
      %s1r = arith.subf %v0r, %v2r : f32
      %s1i = arith.subf %v0i, %v2i : f32
      %s2r = arith.addf %v1r, %v3r : f32
      %s2i = arith.addf %v1i, %v3i : f32
      %s3r = arith.subf %v1r, %v3r : f32
      %s3i = arith.subf %v1i, %v3i : f32
      %o0r = arith.addf %s0r, %s2r : f32
      %o0i = arith.addf %s0i, %s2i : f32
      %o1r = arith.addf %s1r, %s3i : f32
      %o1i = arith.subf %s1i, %s3r : f32
      %o2r = arith.subf %s0r, %s2r : f32
      %o2i = arith.subf %s0i, %s2i : f32
      %o3r = arith.subf %s1r, %s3i : f32
      %o3i = arith.addf %s1i, %s3r : f32
      %g = arith.muli %group, %ns4 : index
      %p0 = arith.addi %g, %k : index
      %p1 = arith.addi %p0, %ns : index
      %p2 = arith.addi %p1, %ns : index
      %p3 = arith.addi %p2, %ns : index
      memref.store %o0r, %re[%p0] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %o0i, %im[%p0] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %o1r, %re[%p1] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %o1i, %im[%p1] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %o2r, %re[%p2] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %o2i, %im[%p2] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %o3r, %re[%p3] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %o3i, %im[%p3] : memref<256xf32, #gpu.address_space<workgroup>>
      gpu.barrier
      scf.yield %ns4 : index
    }
    scf.for %i = %t to %c256 step %c64 {
      %a = memref.load %re[%i] : memref<256xf32, #gpu.address_space<workgroup>>
      %b = memref.load %im[%i] : memref<256xf32, #gpu.address_space<workgroup>>
      memref.store %a, %y[%batch, %i, %c0] : memref<?x256x2xf32>
      memref.store %b, %y[%batch, %i, %c1] : memref<?x256x2xf32>
    }
    gpu.return
  }
}
