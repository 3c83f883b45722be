// matmul_mfma: C = A * B on the matrix cores of AMD's CDNA accelerators, written
// with amdgpu.mfma; A is M x K and B is K x N in f16, C is M x N in f32, all of
// any size.
//
// One wave of 64 lanes computes a 16 x 16 tile of C with
// v_mfma_f32_16x16x16_f16. Lane l holds, with i = l mod 16 and q = l div 16,
//   of A: row i,    columns 4q .. 4q+3      of B: rows 4q .. 4q+3, column i
//   of C: rows 4q .. 4q+3, column i
// and loads its parts straight from global memory.
//
// Launch: block (64, 1, 1), grid (ceil(N / 16), ceil(M / 16), 1).
// gpulower-targets: gfx90a,gfx942

gpu.module @matmul_mfma {
  gpu.func @matmul_mfma(%A: memref<?x?xf16>, %B: memref<?x?xf16>, %C: memref<?x?xf32>) kernel
      attributes {known_block_size = array<i32: 64, 1, 1>} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c16 = arith.constant 16 : index
    %zero_f16 = arith.constant 0.0 : f16
    %zeros = arith.constant dense<0.0> : vector<4xf32>
    %M = memref.dim %A, %c0 : memref<?x?xf16>
    %K = memref.dim %A, %c1 : memref<?x?xf16>
    %N = memref.dim %B, %c1 : memref<?x?xf16>
    %lane = gpu.thread_id x
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %row0 = arith.muli %by, %c16 : index
    %col0 = arith.muli %bx, %c16 : index
    %i = arith.remui %lane, %c16 : index
    %q = arith.divui %lane, %c16 : index
    %q4 = arith.muli %q, %c4 : index

    // Lanes beyond the last row or column work on that row or column once more;
    // what they compute is not stored.
    %last_row = arith.subi %M, %c1 : index
    %last_col = arith.subi %N, %c1 : index
    %a_row_any = arith.addi %row0, %i : index
    %a_row = arith.minui %a_row_any, %last_row : index
    %col = arith.addi %col0, %i : index
    %b_col = arith.minui %col, %last_col : index

    %sum = scf.for %k0 = %c0 to %K step %c16 iter_args(%acc = %zeros) -> (vector<4xf32>) {
      %k = arith.addi %k0, %q4 : index
      // Beyond K a transfer reads the padding, zero, and touches no memory.
      %a = vector.transfer_read %A[%a_row, %k], %zero_f16 : memref<?x?xf16>, vector<4xf16>
      %b = vector.transfer_read %B[%k, %b_col], %zero_f16
          {permutation_map = affine_map<(d0, d1) -> (d0)>} : memref<?x?xf16>, vector<4xf16>
      %next = amdgpu.mfma 16x16x16 %a * %b + %acc blgp = none
          : vector<4xf16>, vector<4xf16>, vector<4xf32>
      scf.yield %next : vector<4xf32>
    }

    %col_ok = arith.cmpi ult, %col, %N : index
    %first_row = arith.addi %row0, %q4 : index
    scf.for %r = %c0 to %c4 step %c1 {
      %row = arith.addi %first_row, %r : index
      %row_ok = arith.cmpi ult, %row, %M : index
      %ok = arith.andi %row_ok, %col_ok : i1
      scf.if %ok {
        %v = vector.extract %sum[%r] : f32 from vector<4xf32>
        memref.store %v, %C[%row, %col] : memref<?x?xf32>
      }
    }
    gpu.return
  }
}
