// Two tiles in workgroup memory behind a flag of one byte: copied by the tensor memory accelerator with 128-byte swizzle, read
// where the pattern says that each element is. All 2 * 64 * 64 elements are checked.
!barrier = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>>
!map = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
memref.global "private" @flags : memref<3xi8, 3>
memref.global "private" @left : memref<64x64xf16, 3>
memref.global "private" @right : memref<64x64xf16, 3>
func.func @main() -> i32 {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c1000 = arith.constant 1000 : index
  %zero = arith.constant 0.0 : f16
  %a = memref.alloc() : memref<64x128xf16>
  %d = memref.alloc() : memref<64x128xf16>
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c128 step %c1 {
      %r = arith.muli %i, %c128 : index
      %n = arith.addi %r, %j : index
      %m = arith.remui %n, %c1000 : index
      %m32 = arith.index_cast %m : index to i32
      %f = arith.sitofp %m32 : i32 to f16
      memref.store %f, %a[%i, %j] : memref<64x128xf16>
      memref.store %zero, %d[%i, %j] : memref<64x128xf16>
    }
  }
  %token = gpu.wait async
  %ga:2 = gpu.alloc async [%token] () : memref<64x128xf16>
  %gd:2 = gpu.alloc async [%token] () : memref<64x128xf16>
  %1 = gpu.memcpy async [%token] %ga, %a : memref<64x128xf16>, memref<64x128xf16>
  gpu.wait [%1]
  %cast = memref.cast %ga : memref<64x128xf16> to memref<*xf16>
  %map = nvgpu.tma.create.descriptor %cast box[%c64, %c64] : memref<*xf16> -> !map
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
             threads(%tx, %ty, %tz) in (%sx = %c64, %sy = %c1, %sz = %c1) {
    %bytes = arith.constant 16384 : index
    %ticks = arith.constant 10000000 : index
    %phase = arith.constant false
    %one = arith.constant 1 : i8
    %three = arith.constant 3 : index
    %flags = memref.get_global @flags : memref<3xi8, 3>
    %at = arith.remui %tx, %three : index
    memref.store %one, %flags[%at] : memref<3xi8, 3>
    %left = memref.get_global @left : memref<64x64xf16, 3>
    %right = memref.get_global @right : memref<64x64xf16, 3>
    %barrier = nvgpu.mbarrier.create -> !barrier
    %first = arith.cmpi eq, %tx, %c0 : index
    scf.if %first {
      nvgpu.mbarrier.init %barrier[%c0], %c1 : !barrier
    }
    gpu.barrier
    scf.if %first {
      nvgpu.mbarrier.arrive.expect_tx %barrier[%c0], %bytes : !barrier
      nvgpu.tma.async.load %map[%c0, %c0], %barrier[%c0] to %left : !map, !barrier -> memref<64x64xf16, 3>
      nvgpu.tma.async.load %map[%c64, %c0], %barrier[%c0] to %right : !map, !barrier -> memref<64x64xf16, 3>
    }
    nvgpu.mbarrier.try_wait.parity %barrier[%c0], %phase, %ticks : !barrier
    %row = arith.andi %tx, %c7 : index
    %flag = memref.load %flags[%at] : memref<3xi8, 3>
    %flagf = arith.sitofp %flag : i8 to f16
    scf.for %j = %c0 to %c64 step %c1 {
      %chunk = arith.divui %j, %c8 : index
      %in = arith.remui %j, %c8 : index
      %where = arith.xori %chunk, %row : index
      %start = arith.muli %where, %c8 : index
      %column = arith.addi %start, %in : index
      %l = memref.load %left[%tx, %column] : memref<64x64xf16, 3>
      %r = memref.load %right[%tx, %column] : memref<64x64xf16, 3>
      %lf = arith.mulf %l, %flagf : f16
      %rf = arith.mulf %r, %flagf : f16
      memref.store %lf, %gd[%tx, %j] : memref<64x128xf16>
      %j2 = arith.addi %j, %c64 : index
      memref.store %rf, %gd[%tx, %j2] : memref<64x128xf16>
    }
    gpu.terminator
  }
  %t2 = gpu.wait async
  %5 = gpu.memcpy async [%t2] %d, %gd : memref<64x128xf16>, memref<64x128xf16>
  gpu.wait [%5]
  %ic0 = arith.constant 0 : i32
  %ic1 = arith.constant 1 : i32
  %wrong = scf.for %i = %c0 to %c64 step %c1 iter_args(%w0 = %ic0) -> (i32) {
    %w1 = scf.for %j = %c0 to %c128 step %c1 iter_args(%w2 = %w0) -> (i32) {
      %x = memref.load %a[%i, %j] : memref<64x128xf16>
      %y = memref.load %d[%i, %j] : memref<64x128xf16>
      %bad = arith.cmpf une, %x, %y : f16
      %inc = arith.select %bad, %ic1, %ic0 : i32
      %w3 = arith.addi %w2, %inc : i32
      scf.yield %w3 : i32
    }
    scf.yield %w1 : i32
  }
  vector.print str "wrong elements of 8192: "
  vector.print %wrong : i32
  %any = arith.cmpi ne, %wrong, %ic0 : i32
  %status = arith.extui %any : i1 to i32
  return %status : i32
}
