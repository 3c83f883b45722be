// What gpulower lowers and MLIR's own conversions do not, in four kernels with results that
// scripts/gpu/lowering.py knows. Launch: one block of 64 threads; 64 values in, 512 out.

gpu.module @k {
  gpu.func @reduce(%in: memref<?xf32>, %out: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c192 = arith.constant 192 : index
    %c256 = arith.constant 256 : index
    %c320 = arith.constant 320 : index
    %c384 = arith.constant 384 : index
    %v = memref.load %in[%t] : memref<?xf32>
    %a = gpu.subgroup_reduce add %v uniform : (f32) -> f32
    memref.store %a, %out[%t] : memref<?xf32>
    %i = arith.fptosi %v : f32 to i32
    %b = gpu.subgroup_reduce maxsi %i uniform : (i32) -> i32
    %bf = arith.sitofp %b : i32 to f32
    %t1 = arith.addi %t, %c64 : index
    memref.store %bf, %out[%t1] : memref<?xf32>
    %i8 = arith.trunci %i : i32 to i8
    %c = gpu.subgroup_reduce minsi %i8 uniform : (i8) -> i8
    %cf = arith.sitofp %c : i8 to f32
    %t2 = arith.addi %t, %c128 : index
    memref.store %cf, %out[%t2] : memref<?xf32>
    %d = arith.extf %v : f32 to f64
    %e = gpu.subgroup_reduce add %d uniform : (f64) -> f64
    %ef = arith.truncf %e : f64 to f32
    %t3 = arith.addi %t, %c192 : index
    memref.store %ef, %out[%t3] : memref<?xf32>
    %g = gpu.subgroup_reduce add %v cluster(size = 4) : (f32) -> f32
    %t4 = arith.addi %t, %c256 : index
    memref.store %g, %out[%t4] : memref<?xf32>
    %h = arith.truncf %v : f32 to f16
    %hr = gpu.subgroup_reduce maxnumf %h uniform : (f16) -> f16
    %hf = arith.extf %hr : f16 to f32
    %t5 = arith.addi %t, %c320 : index
    memref.store %hf, %out[%t5] : memref<?xf32>
    %h4 = vector.from_elements %h, %h, %h, %h : vector<4xf16>
    %h4r = gpu.subgroup_reduce add %h4 uniform : (vector<4xf16>) -> vector<4xf16>
    %h40 = vector.extract %h4r[3] : f16 from vector<4xf16>
    %h4f = arith.extf %h40 : f16 to f32
    %t6 = arith.addi %t, %c384 : index
    memref.store %h4f, %out[%t6] : memref<?xf32>
    gpu.return
  }
  gpu.func @moves(%in: memref<?xf32>, %out: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c192 = arith.constant 192 : index
    %c256 = arith.constant 256 : index
    %c320 = arith.constant 320 : index
    %c384 = arith.constant 384 : index
    %v = memref.load %in[%t] : memref<?xf32>
    %r, %valid = gpu.rotate %v, 3, 32 : f32
    memref.store %r, %out[%t] : memref<?xf32>
    %odd0 = arith.remui %t, %c2 : index
    %odd = arith.cmpi eq, %odd0, %c1 : index
    %t1 = arith.addi %t, %c64 : index
    scf.if %odd {
      %b = gpu.subgroup_broadcast %v, first_active_lane : f32
      memref.store %b, %out[%t1] : memref<?xf32>
    } else {
      memref.store %v, %out[%t1] : memref<?xf32>
    }
    %one = arith.constant 1 : i32
    %w32 = arith.constant 32 : i32
    %h = arith.truncf %v : f32 to f16
    %hs, %v2 = gpu.shuffle xor %h, %one, %w32 : f16
    %hf = arith.extf %hs : f16 to f32
    %t2 = arith.addi %t, %c128 : index
    memref.store %hf, %out[%t2] : memref<?xf32>
    %h3 = vector.from_elements %h, %h, %h : vector<3xf16>
    %hs3, %v3 = gpu.shuffle down %h3, %one, %w32 : vector<3xf16>
    %hs30 = vector.extract %hs3[2] : f16 from vector<3xf16>
    %hf3 = arith.extf %hs30 : f16 to f32
    %t3 = arith.addi %t, %c192 : index
    memref.store %hf3, %out[%t3] : memref<?xf32>
    %n = gpu.num_subgroups : index
    %id = gpu.subgroup_id : index
    %sz = gpu.subgroup_size : index
    %c100 = arith.constant 100 : index
    %c10000 = arith.constant 10000 : index
    %n1 = arith.muli %n, %c100 : index
    %sz1 = arith.muli %sz, %c10000 : index
    %s0 = arith.addi %n1, %id : index
    %s1 = arith.addi %s0, %sz1 : index
    %s2 = arith.index_cast %s1 : index to i32
    %s3 = arith.sitofp %s2 : i32 to f32
    %t4 = arith.addi %t, %c256 : index
    memref.store %s3, %out[%t4] : memref<?xf32>
    %lane = gpu.lane_id
    %l0 = gpu.warp_execute_on_lane_0(%lane)[32] -> (f32) {
      %x = memref.load %in[%t] : memref<?xf32>
      %y = arith.addf %x, %x : f32
      gpu.yield %y : f32
    }
    %t5 = arith.addi %t, %c320 : index
    memref.store %l0, %out[%t5] : memref<?xf32>
    %c5 = arith.constant 5 : i32
    %d = arith.extf %v : f32 to f64
    %bd = gpu.subgroup_broadcast %d, specific_lane %c5 : f64
    %bf = arith.truncf %bd : f64 to f32
    %t6 = arith.addi %t, %c384 : index
    memref.store %bf, %out[%t6] : memref<?xf32>
    gpu.return
  }
  gpu.func @math(%in: memref<?xf32>, %out: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c192 = arith.constant 192 : index
    %c256 = arith.constant 256 : index
    %c320 = arith.constant 320 : index
    %c384 = arith.constant 384 : index
    %v = memref.load %in[%t] : memref<?xf32>
    %lo = arith.constant -2.0 : f32
    %hi = arith.constant 3.5 : f32
    %a = math.clampf %v to [%lo, %hi] : f32
    memref.store %a, %out[%t] : memref<?xf32>
    %b = math.isnormal %v : f32
    %c = math.isinf %v : f32
    %b1 = arith.extui %b : i1 to i32
    %c1 = arith.extui %c : i1 to i32
    %two = arith.constant 2 : i32
    %c2 = arith.muli %c1, %two : i32
    %bc = arith.addi %b1, %c2 : i32
    %bcf = arith.sitofp %bc : i32 to f32
    %t1 = arith.addi %t, %c64 : index
    memref.store %bcf, %out[%t1] : memref<?xf32>
    %s, %k = math.sincos %v : f32
    %t2 = arith.addi %t, %c128 : index
    memref.store %s, %out[%t2] : memref<?xf32>
    %t3 = arith.addi %t, %c192 : index
    memref.store %k, %out[%t3] : memref<?xf32>
    // base = t/8 - 3, exponent = t mod 8 - 3
    %ti = arith.index_cast %t : index to i32
    %c8 = arith.constant 8 : i32
    %c3 = arith.constant 3 : i32
    %q = arith.divui %ti, %c8 : i32
    %base = arith.subi %q, %c3 : i32
    %m = arith.remui %ti, %c8 : i32
    %e = arith.subi %m, %c3 : i32
    %p = math.ipowi %base, %e : i32
    %pf = arith.sitofp %p : i32 to f32
    %t4 = arith.addi %t, %c256 : index
    memref.store %pf, %out[%t4] : memref<?xf32>
    %vb = vector.from_elements %base, %base : vector<2xi32>
    %ve = vector.from_elements %e, %m : vector<2xi32>
    %vp = math.ipowi %vb, %ve : vector<2xi32>
    %vp1 = vector.extract %vp[1] : i32 from vector<2xi32>
    %vpf = arith.sitofp %vp1 : i32 to f32
    %t5 = arith.addi %t, %c320 : index
    memref.store %vpf, %out[%t5] : memref<?xf32>
    %h = arith.truncf %v : f32 to f16
    %hn = math.isnormal %h : f16
    %hn1 = arith.uitofp %hn : i1 to f32
    %t6 = arith.addi %t, %c384 : index
    memref.store %hn1, %out[%t6] : memref<?xf32>
    gpu.return
  }
  gpu.func @memory(%in: memref<?xf32>, %out: memref<?xf32>) kernel {
    %t = gpu.thread_id x
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c63 = arith.constant 63 : index
    %c64 = arith.constant 64 : index
    %c65 = arith.constant 65 : index
    %c66 = arith.constant 66 : index
    %c128 = arith.constant 128 : index
    %buffer = memref.alloca() : memref<64xf32, #gpu.address_space<workgroup>>
    %v = memref.load %in[%t] : memref<?xf32>
    memref.store %v, %buffer[%t] : memref<64xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %o = arith.subi %c63, %t : index
    %r = memref.load %buffer[%o] : memref<64xf32, #gpu.address_space<workgroup>>
    memref.store %r, %out[%t] : memref<?xf32>
    // out[64] *= 2 for 10 threads, out[65] += 1 by hand, out[66] f16-ish skipped
    %two = arith.constant 2.0 : f32
    %one = arith.constant 1.0 : f32
    %c10 = arith.constant 10 : index
    %few = arith.cmpi ult, %t, %c10 : index
    scf.if %few {
      %x = memref.atomic_rmw mulf %two, %out[%c64] : (f32, memref<?xf32>) -> f32
    }
    %y = memref.generic_atomic_rmw %out[%c65] : memref<?xf32> {
    ^bb0(%old: f32):
      %new = arith.addf %old, %one : f32
      memref.atomic_yield %new : f32
    }
    // thread 0 copies a strided 4x4 part of in as 8x8 to out[128..]
    %first = arith.cmpi eq, %t, %c0 : index
    scf.if %first {
      %m8 = memref.reinterpret_cast %in to offset: [0], sizes: [8, 8], strides: [8, 1] : memref<?xf32> to memref<8x8xf32, strided<[8, 1]>>
      %part = memref.subview %m8[1, 2] [4, 4] [1, 1] : memref<8x8xf32, strided<[8, 1]>> to memref<4x4xf32, strided<[8, 1], offset: 10>>
      %dst = memref.reinterpret_cast %out to offset: [128], sizes: [4, 4], strides: [4, 1] : memref<?xf32> to memref<4x4xf32, strided<[4, 1], offset: 128>>
      memref.copy %part, %dst : memref<4x4xf32, strided<[8, 1], offset: 10>> to memref<4x4xf32, strided<[4, 1], offset: 128>>
    }
    // repeated workgroup reductions
    %c192 = arith.constant 192 : index
    %zero = arith.constant 0.0 : f32
    %c50 = arith.constant 50 : index
    %sum = scf.for %i = %c0 to %c50 step %c1 iter_args(%acc = %zero) -> (f32) {
      %ii = arith.index_cast %i : index to i32
      %if = arith.sitofp %ii : i32 to f32
      %vi = arith.addf %v, %if : f32
      %a = gpu.all_reduce add %vi uniform {} : (f32) -> f32
      %n = arith.addf %acc, %a : f32
      scf.yield %n : f32
    }
    %t192 = arith.addi %t, %c192 : index
    memref.store %sum, %out[%t192] : memref<?xf32>
    %h = arith.truncf %v : f32 to f16
    %hm = gpu.all_reduce maxnumf %h uniform {} : (f16) -> f16
    %hf = arith.extf %hm : f16 to f32
    %c256 = arith.constant 256 : index
    %t256 = arith.addi %t, %c256 : index
    memref.store %hf, %out[%t256] : memref<?xf32>
    gpu.return
  }
}
