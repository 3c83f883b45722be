// D = A * B in one matrix instruction of CDNA; the layouts are those of AMD's documentation of each instruction.

gpu.module @mfma {
  // 16 x 16 x 4 in f32: lane l holds A[l mod 16, l div 16], B[l div 16, l mod 16] and D[4 (l div 16) + e, l mod 16].
  gpu.func @mfma_f32(%A: memref<16x4xf32>, %B: memref<4x16xf32>, %D: memref<16x16xf32>) kernel {
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %lane = gpu.thread_id x
    %i = arith.remui %lane, %c16 : index
    %q = arith.divui %lane, %c16 : index
    %a = memref.load %A[%i, %q] : memref<16x4xf32>
    %b = memref.load %B[%q, %i] : memref<4x16xf32>
    %zero = arith.constant dense<0.0> : vector<4xf32>
    %d = amdgpu.mfma 16x16x4 %a * %b + %zero blgp = none : f32, f32, vector<4xf32>
    %first = arith.muli %q, %c4 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %r1 = arith.addi %first, %c1 : index
    %r2 = arith.addi %first, %c2 : index
    %r3 = arith.addi %first, %c3 : index
    %d0 = vector.extract %d[0] : f32 from vector<4xf32>
    %d1 = vector.extract %d[1] : f32 from vector<4xf32>
    %d2 = vector.extract %d[2] : f32 from vector<4xf32>
    %d3 = vector.extract %d[3] : f32 from vector<4xf32>
    memref.store %d0, %D[%first, %i] : memref<16x16xf32>
    memref.store %d1, %D[%r1, %i] : memref<16x16xf32>
    memref.store %d2, %D[%r2, %i] : memref<16x16xf32>
    memref.store %d3, %D[%r3, %i] : memref<16x16xf32>
    gpu.return
  }

  // 16 x 16 x 4 in f64: D[4 e + l div 16, l mod 16].
  gpu.func @mfma_f64(%A: memref<16x4xf64>, %B: memref<4x16xf64>, %D: memref<16x16xf64>) kernel {
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c12 = arith.constant 12 : index
    %c16 = arith.constant 16 : index
    %lane = gpu.thread_id x
    %i = arith.remui %lane, %c16 : index
    %q = arith.divui %lane, %c16 : index
    %a = memref.load %A[%i, %q] : memref<16x4xf64>
    %b = memref.load %B[%q, %i] : memref<4x16xf64>
    %zero = arith.constant dense<0.0> : vector<4xf64>
    %d = amdgpu.mfma 16x16x4 %a * %b + %zero blgp = none : f64, f64, vector<4xf64>
    %r1 = arith.addi %q, %c4 : index
    %r2 = arith.addi %q, %c8 : index
    %r3 = arith.addi %q, %c12 : index
    %d0 = vector.extract %d[0] : f64 from vector<4xf64>
    %d1 = vector.extract %d[1] : f64 from vector<4xf64>
    %d2 = vector.extract %d[2] : f64 from vector<4xf64>
    %d3 = vector.extract %d[3] : f64 from vector<4xf64>
    memref.store %d0, %D[%q, %i] : memref<16x16xf64>
    memref.store %d1, %D[%r1, %i] : memref<16x16xf64>
    memref.store %d2, %D[%r2, %i] : memref<16x16xf64>
    memref.store %d3, %D[%r3, %i] : memref<16x16xf64>
    gpu.return
  }
}
