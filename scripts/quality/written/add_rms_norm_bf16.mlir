// block 256
// sizes cols = x 1
gpu.module @add_rms_norm_bf16 {
  gpu.func @add_rms_norm_bf16(%x: memref<?x?xbf16>, %residual: memref<?x?xbf16>, %gamma: memref<?xbf16>, %h: memref<?x?xbf16>, %y: memref<?x?xbf16>, %eps: f32)
      workgroup(%part: memref<8xf32, #gpu.address_space<workgroup>>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %i32_32 = arith.constant 32 : i32
    %o16 = arith.constant 16 : i32
    %o8 = arith.constant 8 : i32
    %o4 = arith.constant 4 : i32
    %o2 = arith.constant 2 : i32
    %o1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %cols = memref.dim %x, %c1 : memref<?x?xbf16>
    %row = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %squares = scf.for %j = %tx to %cols step %wx iter_args(%acc = %zero) -> (f32) {
      %a = memref.load %x[%row, %j] : memref<?x?xbf16>
      %b = memref.load %residual[%row, %j] : memref<?x?xbf16>
      %aw = arith.extf %a : bf16 to f32
      %bw = arith.extf %b : bf16 to f32
      %v = arith.addf %aw, %bw : f32
      %vn = arith.truncf %v : f32 to bf16
      memref.store %vn, %h[%row, %j] : memref<?x?xbf16>
      %vv = arith.mulf %v, %v : f32
      %next = arith.addf %acc, %vv : f32
      scf.yield %next : f32
    }
    %s16, %p16 = gpu.shuffle xor %squares, %o16, %i32_32 : f32
    %a16 = arith.addf %squares, %s16 : f32
    %s8, %p8 = gpu.shuffle xor %a16, %o8, %i32_32 : f32
    %a8 = arith.addf %a16, %s8 : f32
    %s4, %p4 = gpu.shuffle xor %a8, %o4, %i32_32 : f32
    %a4 = arith.addf %a8, %s4 : f32
    %s2, %p2 = gpu.shuffle xor %a4, %o2, %i32_32 : f32
    %a2 = arith.addf %a4, %s2 : f32
    %s1, %p1 = gpu.shuffle xor %a2, %o1, %i32_32 : f32
    %a1 = arith.addf %a2, %s1 : f32
    %lane = arith.remui %tx, %c32 : index
    %warp = arith.divui %tx, %c32 : index
    %leader = arith.cmpi eq, %lane, %c0 : index
    scf.if %leader {
      memref.store %a1, %part[%warp] : memref<8xf32, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %total = scf.for %k = %c0 to %c8 step %c1 iter_args(%acc = %zero) -> (f32) {
      %v = memref.load %part[%k] : memref<8xf32, #gpu.address_space<workgroup>>
      %next = arith.addf %acc, %v : f32
      scf.yield %next : f32
    }
    %ni = arith.index_cast %cols : index to i64
    %n = arith.sitofp %ni : i64 to f32
    %mean = arith.divf %total, %n : f32
    %me = arith.addf %mean, %eps : f32
    %scale = math.rsqrt %me : f32
    scf.for %j = %tx to %cols step %wx {
      %a = memref.load %h[%row, %j] : memref<?x?xbf16>
      %g = memref.load %gamma[%j] : memref<?xbf16>
      %aw = arith.extf %a : bf16 to f32
      %gw = arith.extf %g : bf16 to f32
      %m = arith.mulf %aw, %scale : f32
      %r = arith.mulf %m, %gw : f32
      %rn = arith.truncf %r : f32 to bf16
      memref.store %rn, %y[%row, %j] : memref<?x?xbf16>
    }
    gpu.return
  }
}
