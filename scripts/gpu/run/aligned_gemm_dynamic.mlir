// The same with gpu.dynamic_shared_memory alone, as upstream's gemm_pred_f32_f16_f16_128x128x128.mlir has it.
!barrierType = !nvgpu.mbarrier.group<memorySpace = #gpu.address_space<workgroup>, num_barriers = 2>
!lhsTensorMap = !nvgpu.tensormap.descriptor<tensor = memref<128x64xf16, 3>, swizzle = swizzle_128b, l2promo=none, oob=zero, interleave=none>
!rhsTensorMap = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo=none, oob=zero, interleave=none>
memref.global "private" @accShmem : memref<0xf32, 3> {alignment = 16 : i64}
func.func @main() -> i32 {
  %shmemSize = arith.constant 65536 : i32
  %hc0 = arith.constant 0 : index
  %hc1 = arith.constant 1 : index
  %hc2 = arith.constant 2 : index
  %hc3 = arith.constant 3 : index
  %hc5 = arith.constant 5 : index
  %hc7 = arith.constant 7 : index
  %hc64 = arith.constant 64 : index
  %hc128 = arith.constant 128 : index
  %f0 = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<128x128xf16>
  %b = memref.alloc() : memref<128x128xf16>
  %d = memref.alloc() : memref<128x128xf32>
  // a[i][j] = (i + 3 j) % 7, b[i][j] = (2 i + j) % 5: all sums are small integers.
  scf.for %i = %hc0 to %hc128 step %hc1 {
    scf.for %j = %hc0 to %hc128 step %hc1 {
      %j3 = arith.muli %j, %hc3 : index
      %ai = arith.addi %i, %j3 : index
      %am = arith.remui %ai, %hc7 : index
      %a32 = arith.index_cast %am : index to i32
      %af = arith.sitofp %a32 : i32 to f16
      memref.store %af, %a[%i, %j] : memref<128x128xf16>
      %i2 = arith.muli %i, %hc2 : index
      %bi = arith.addi %i2, %j : index
      %bm = arith.remui %bi, %hc5 : index
      %b32 = arith.index_cast %bm : index to i32
      %bf = arith.sitofp %b32 : i32 to f16
      memref.store %bf, %b[%i, %j] : memref<128x128xf16>
      memref.store %f0, %d[%i, %j] : memref<128x128xf32>
    }
  }
  %token = gpu.wait async
  %ga:2 = gpu.alloc async [%token] () : memref<128x128xf16>
  %gb:2 = gpu.alloc async [%token] () : memref<128x128xf16>
  %matrixD:2 = gpu.alloc async [%token] () : memref<128x128xf32>
  %1 = gpu.memcpy async [%token] %ga, %a : memref<128x128xf16>, memref<128x128xf16>
  %2 = gpu.memcpy async [%token] %gb, %b : memref<128x128xf16>, memref<128x128xf16>
  gpu.wait [%1, %2]
  %castA = memref.cast %ga : memref<128x128xf16> to memref<*xf16>
  %castB = memref.cast %gb : memref<128x128xf16> to memref<*xf16>
  %descA = nvgpu.tma.create.descriptor %castA box[%hc128, %hc64] : memref<*xf16> -> !lhsTensorMap
  %descB = nvgpu.tma.create.descriptor %castB box[%hc64, %hc64] : memref<*xf16> -> !rhsTensorMap
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %hc1, %gy = %hc1, %gz = %hc1)
            threads(%tx, %ty, %tz) in (%sx = %hc128, %sy = %hc1, %sz = %hc1)
            dynamic_shared_memory_size %shmemSize
  {
    %c32768 = arith.constant 32768 : index
    %c64 = arith.constant 64 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c0 = arith.constant 0 : index
    %c128 = arith.constant 128 : index
    %c32 = arith.constant 32 : index
    %c16384 = arith.constant 16384 : index
    %c49152 = arith.constant 49152 : index
    %c57344 = arith.constant 57344 : index
    %c40960 = arith.constant 40960 : index
    %tidx = gpu.thread_id  x
    %dynsmem = gpu.dynamic_shared_memory : memref<?xi8, #gpu.address_space<workgroup>>
    %lhsShmem = memref.view %dynsmem[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<2x128x64xf16, #gpu.address_space<workgroup>>
    %rhsShmem = memref.view %dynsmem[%c32768][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<2x64x128xf16, #gpu.address_space<workgroup>>
    %barrier = nvgpu.mbarrier.create -> !barrierType
    %cnd = arith.cmpi eq, %tidx, %c0 : index
    scf.if %cnd {
      nvgpu.mbarrier.init %barrier[%c0], %c1 : !barrierType
      nvgpu.mbarrier.init %barrier[%c1], %c1 : !barrierType
    }
    gpu.barrier
    scf.if %cnd {
      %pipe = arith.constant 0 : index
      %lhsSlice = memref.view %dynsmem[%c0][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<128x64xf16, #gpu.address_space<workgroup>>
      %halfFirst = memref.view %dynsmem[%c32768][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64x64xf16, #gpu.address_space<workgroup>>
      %halfSecond = memref.view %dynsmem[%c40960][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64x64xf16, #gpu.address_space<workgroup>>
      nvgpu.mbarrier.arrive.expect_tx %barrier[%pipe], %c32768 : !barrierType        
      %dim = arith.muli %pipe, %c64 : index
      nvgpu.tma.async.load %descA[%dim, %c0], %barrier[%pipe] to %lhsSlice : !lhsTensorMap, !barrierType ->  memref<128x64xf16, #gpu.address_space<workgroup>>
      nvgpu.tma.async.load %descB[%c0, %dim], %barrier[%pipe] to %halfFirst : !rhsTensorMap, !barrierType -> memref<64x64xf16, #gpu.address_space<workgroup>>
      nvgpu.tma.async.load %descB[%c64, %dim], %barrier[%pipe] to %halfSecond : !rhsTensorMap, !barrierType -> memref<64x64xf16, #gpu.address_space<workgroup>>
    }
    scf.if %cnd {
      %pipe = arith.constant 1 : index
      %lhsSlice = memref.view %dynsmem[%c16384][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<128x64xf16, #gpu.address_space<workgroup>>
      %halfFirst = memref.view %dynsmem[%c49152][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64x64xf16, #gpu.address_space<workgroup>>
      %halfSecond = memref.view %dynsmem[%c57344][] : memref<?xi8, #gpu.address_space<workgroup>> to memref<64x64xf16, #gpu.address_space<workgroup>>
      nvgpu.mbarrier.arrive.expect_tx %barrier[%pipe], %c32768 : !barrierType        
      %dim = arith.muli %pipe, %c64 : index
      nvgpu.tma.async.load %descA[%dim, %c0], %barrier[%pipe] to %lhsSlice : !lhsTensorMap, !barrierType ->  memref<128x64xf16, #gpu.address_space<workgroup>>
      nvgpu.tma.async.load %descB[%c0, %dim], %barrier[%pipe] to %halfFirst : !rhsTensorMap, !barrierType -> memref<64x64xf16, #gpu.address_space<workgroup>>
      nvgpu.tma.async.load %descB[%c64, %dim], %barrier[%pipe] to %halfSecond : !rhsTensorMap, !barrierType -> memref<64x64xf16, #gpu.address_space<workgroup>>
    }
    %14 = nvgpu.warpgroup.mma.init.accumulator -> <fragmented = vector<128x128xf32>>
    %15 = scf.for %i = %c0 to %c2 step %c1 iter_args(%mc = %14) 
                    -> (!nvgpu.warpgroup.accumulator<fragmented = vector<128x128xf32>>)
    {
      %ticks = arith.constant 10000000 : index
      %phase_c0 = arith.constant 0 : i1
      nvgpu.mbarrier.try_wait.parity %barrier[%i], %phase_c0, %ticks : !barrierType
      %lhsSlice = memref.subview %lhsShmem [%i, 0, 0][1, 128, 64][1, 1, 1] : memref<2x128x64xf16, #gpu.address_space<workgroup>> to memref<128x64xf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>
      %rhsSlice = memref.subview %rhsShmem [%i, 0, 0][1, 64, 128][1, 1, 1] : memref<2x64x128xf16, #gpu.address_space<workgroup>> to memref<64x128xf16, strided<[128, 1], offset: ?>, #gpu.address_space<workgroup>>
      %dA = nvgpu.warpgroup.generate.descriptor %lhsSlice, %descA : memref<128x64xf16, strided<[64, 1], offset: ?>, #gpu.address_space<workgroup>>, !lhsTensorMap -> !nvgpu.warpgroup.descriptor<tensor=memref<128x64xf16, 3>>
      %dB = nvgpu.warpgroup.generate.descriptor %rhsSlice, %descB : memref<64x128xf16, strided<[128, 1], offset: ?>, #gpu.address_space<workgroup>>, !rhsTensorMap -> !nvgpu.warpgroup.descriptor<tensor=memref<64x128xf16, 3>>
      %md  = nvgpu.warpgroup.mma %dA, %dB, %mc {transposeB} : <tensor = memref<128x64xf16,3>>, <tensor = memref<64x128xf16,3>>, <fragmented = vector<128x128xf32>> -> <fragmented = vector<128x128xf32>>
      scf.yield %md : !nvgpu.warpgroup.accumulator<fragmented = vector<128x128xf32>>
    }
    nvvm.wgmma.wait.group.sync.aligned 0
    gpu.barrier
    %accShmem = memref.get_global @accShmem : memref<0xf32, 3>
    %accShmemPtr = memref.reinterpret_cast %accShmem to offset: [0], sizes: [128, 128], strides: [128, 1] : memref<0xf32, 3> to memref<128x128xf32, 3>
    nvgpu.warpgroup.mma.store %15, %accShmemPtr : <fragmented = vector<128x128xf32>> to memref<128x128xf32, 3>
    gpu.barrier
    %17 = arith.divui %tidx, %c32 : index
    %18 = arith.remui %tidx, %c32 : index
    scf.for %arg12 = %17 to %c128 step %c4 {
      %19 = arith.muli %18, %c4 : index
      %20 = vector.load %accShmemPtr[%arg12, %19] : memref<128x128xf32, 3>, vector<4xf32>
      vector.store %20, %matrixD[%arg12, %19] : memref<128x128xf32>, vector<4xf32>
    }
    gpu.terminator
  }
  %t2 = gpu.wait async
  %5 = gpu.memcpy async [%t2] %d, %matrixD : memref<128x128xf32>, memref<128x128xf32>
  gpu.wait [%5]
  %ic0 = arith.constant 0 : i32
  %ic1 = arith.constant 1 : i32
  %wrong = scf.for %i = %hc0 to %hc128 step %hc1 iter_args(%w0 = %ic0) -> (i32) {
    %w1 = scf.for %j = %hc0 to %hc128 step %hc1 iter_args(%w2 = %w0) -> (i32) {
      %sum = scf.for %k = %hc0 to %hc128 step %hc1 iter_args(%s = %f0) -> (f32) {
        %x = memref.load %a[%i, %k] : memref<128x128xf16>
        %y = memref.load %b[%k, %j] : memref<128x128xf16>
        %xf = arith.extf %x : f16 to f32
        %yf = arith.extf %y : f16 to f32
        %p = arith.mulf %xf, %yf : f32
        %n = arith.addf %s, %p : f32
        scf.yield %n : f32
      }
      %v = memref.load %d[%i, %j] : memref<128x128xf32>
      %bad = arith.cmpf une, %v, %sum : f32
      %inc = arith.select %bad, %ic1, %ic0 : i32
      %w3 = arith.addi %w2, %inc : i32
      scf.yield %w3 : i32
    }
    scf.yield %w1 : i32
  }
  vector.print str "wrong elements of 16384: "
  vector.print %wrong : i32
  %any = arith.cmpi ne, %wrong, %ic0 : i32
  %status = arith.extui %any : i1 to i32
  return %status : i32
}
