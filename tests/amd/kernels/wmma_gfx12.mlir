// C = A * B' of 16 x 16 in one matrix instruction of GFX12, whose layout of the elements this is.

gpu.module @wmma {
  gpu.func @wmma_f16(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %C: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %lane = gpu.thread_id x
    %place = arith.remui %lane, %c16 : index
    %half = arith.divui %lane, %c16 : index
    %c8 = arith.constant 8 : index
    %first = arith.muli %half, %c8 : index
    %a = vector.load %A[%place, %first] : memref<16x16xf16>, vector<8xf16>
    %b = vector.load %B[%place, %first] : memref<16x16xf16>, vector<8xf16>
    %zero = arith.constant dense<0.0> : vector<8xf32>
    %d = amdgpu.wmma 16x16x16 %a * %b + %zero : vector<8xf16>, vector<8xf16>, vector<8xf32>
    %k0 = arith.constant 0 : index
    %r0 = arith.addi %first, %k0 : index
    %d0 = vector.extract %d[0] : f32 from vector<8xf32>
    memref.store %d0, %C[%r0, %place] : memref<16x16xf32>
    %k1 = arith.constant 1 : index
    %r1 = arith.addi %first, %k1 : index
    %d1 = vector.extract %d[1] : f32 from vector<8xf32>
    memref.store %d1, %C[%r1, %place] : memref<16x16xf32>
    %k2 = arith.constant 2 : index
    %r2 = arith.addi %first, %k2 : index
    %d2 = vector.extract %d[2] : f32 from vector<8xf32>
    memref.store %d2, %C[%r2, %place] : memref<16x16xf32>
    %k3 = arith.constant 3 : index
    %r3 = arith.addi %first, %k3 : index
    %d3 = vector.extract %d[3] : f32 from vector<8xf32>
    memref.store %d3, %C[%r3, %place] : memref<16x16xf32>
    %k4 = arith.constant 4 : index
    %r4 = arith.addi %first, %k4 : index
    %d4 = vector.extract %d[4] : f32 from vector<8xf32>
    memref.store %d4, %C[%r4, %place] : memref<16x16xf32>
    %k5 = arith.constant 5 : index
    %r5 = arith.addi %first, %k5 : index
    %d5 = vector.extract %d[5] : f32 from vector<8xf32>
    memref.store %d5, %C[%r5, %place] : memref<16x16xf32>
    %k6 = arith.constant 6 : index
    %r6 = arith.addi %first, %k6 : index
    %d6 = vector.extract %d[6] : f32 from vector<8xf32>
    memref.store %d6, %C[%r6, %place] : memref<16x16xf32>
    %k7 = arith.constant 7 : index
    %r7 = arith.addi %first, %k7 : index
    %d7 = vector.extract %d[7] : f32 from vector<8xf32>
    memref.store %d7, %C[%r7, %place] : memref<16x16xf32>
    gpu.return
  }

  gpu.func @wmma_bf16(%A: memref<16x16xbf16>, %B: memref<16x16xbf16>, %C: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %lane = gpu.thread_id x
    %place = arith.remui %lane, %c16 : index
    %half = arith.divui %lane, %c16 : index
    %c8 = arith.constant 8 : index
    %first = arith.muli %half, %c8 : index
    %a = vector.load %A[%place, %first] : memref<16x16xbf16>, vector<8xbf16>
    %b = vector.load %B[%place, %first] : memref<16x16xbf16>, vector<8xbf16>
    %zero = arith.constant dense<0.0> : vector<8xf32>
    %d = amdgpu.wmma 16x16x16 %a * %b + %zero : vector<8xbf16>, vector<8xbf16>, vector<8xf32>
    %k0 = arith.constant 0 : index
    %r0 = arith.addi %first, %k0 : index
    %d0 = vector.extract %d[0] : f32 from vector<8xf32>
    memref.store %d0, %C[%r0, %place] : memref<16x16xf32>
    %k1 = arith.constant 1 : index
    %r1 = arith.addi %first, %k1 : index
    %d1 = vector.extract %d[1] : f32 from vector<8xf32>
    memref.store %d1, %C[%r1, %place] : memref<16x16xf32>
    %k2 = arith.constant 2 : index
    %r2 = arith.addi %first, %k2 : index
    %d2 = vector.extract %d[2] : f32 from vector<8xf32>
    memref.store %d2, %C[%r2, %place] : memref<16x16xf32>
    %k3 = arith.constant 3 : index
    %r3 = arith.addi %first, %k3 : index
    %d3 = vector.extract %d[3] : f32 from vector<8xf32>
    memref.store %d3, %C[%r3, %place] : memref<16x16xf32>
    %k4 = arith.constant 4 : index
    %r4 = arith.addi %first, %k4 : index
    %d4 = vector.extract %d[4] : f32 from vector<8xf32>
    memref.store %d4, %C[%r4, %place] : memref<16x16xf32>
    %k5 = arith.constant 5 : index
    %r5 = arith.addi %first, %k5 : index
    %d5 = vector.extract %d[5] : f32 from vector<8xf32>
    memref.store %d5, %C[%r5, %place] : memref<16x16xf32>
    %k6 = arith.constant 6 : index
    %r6 = arith.addi %first, %k6 : index
    %d6 = vector.extract %d[6] : f32 from vector<8xf32>
    memref.store %d6, %C[%r6, %place] : memref<16x16xf32>
    %k7 = arith.constant 7 : index
    %r7 = arith.addi %first, %k7 : index
    %d7 = vector.extract %d[7] : f32 from vector<8xf32>
    memref.store %d7, %C[%r7, %place] : memref<16x16xf32>
    gpu.return
  }
}
