// Matrices of subgroups, which become MFMA or WMMA. A subgroup computes one tile of 16 x 16.

gpu.module @matrices {
  // Two subgroups of a block compute tiles beside each other: C = A B, by rows of other lengths than the tiles'.
  gpu.func @mma_f16(%A: memref<32x48xf16>, %B: memref<48x32xf16>, %C: memref<32x32xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c48 = arith.constant 48 : index
    %block = gpu.block_id x
    %subgroup = gpu.subgroup_id : index
    %i = arith.muli %block, %c16 : index
    %j = arith.muli %subgroup, %c16 : index
    %zero = arith.constant 0.0 : f32
    %init = gpu.subgroup_mma_constant_matrix %zero : !gpu.mma_matrix<16x16xf32, "COp">
    %sum = scf.for %k = %c0 to %c48 step %c16 iter_args(%c = %init) -> (!gpu.mma_matrix<16x16xf32, "COp">) {
      %a = gpu.subgroup_mma_load_matrix %A[%i, %k] {leadDimension = 48 : index} : memref<32x48xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
      %b = gpu.subgroup_mma_load_matrix %B[%k, %j] {leadDimension = 32 : index} : memref<48x32xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
      %d = gpu.subgroup_mma_compute %a, %b, %c : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
      scf.yield %d : !gpu.mma_matrix<16x16xf32, "COp">
    }
    gpu.subgroup_mma_store_matrix %sum, %C[%i, %j] {leadDimension = 32 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<32x32xf32>
    gpu.return
  }

  // All three are transposed in memory, and the matrix that is added is read first.
  gpu.func @mma_transposed(%A: memref<16x20xf16>, %B: memref<16x24xf16>, %C: memref<16x18xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %a = gpu.subgroup_mma_load_matrix %A[%c0, %c2] {leadDimension = 20 : index, transpose} : memref<16x20xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
    %b = gpu.subgroup_mma_load_matrix %B[%c0, %c2] {leadDimension = 24 : index, transpose} : memref<16x24xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
    %c = gpu.subgroup_mma_load_matrix %C[%c0, %c2] {leadDimension = 18 : index, transpose} : memref<16x18xf32> -> !gpu.mma_matrix<16x16xf32, "COp">
    %d = gpu.subgroup_mma_compute %a, %b, %c {a_transpose, b_transpose} : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
    gpu.subgroup_mma_store_matrix %d, %C[%c0, %c2] {leadDimension = 18 : index, transpose} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x18xf32>
    gpu.return
  }

  // Through workgroup memory, with an accumulator of f16: D = max(2 (A B) - A, 0) in f16, then extended; and a function between.
  func.func @scaled(%m: !gpu.mma_matrix<16x16xf16, "COp">, %by: f16) -> !gpu.mma_matrix<16x16xf16, "COp"> {
    %s = gpu.subgroup_mma_constant_matrix %by : !gpu.mma_matrix<16x16xf16, "COp">
    %r = gpu.subgroup_mma_elementwise mulf %m, %s : (!gpu.mma_matrix<16x16xf16, "COp">, !gpu.mma_matrix<16x16xf16, "COp">) -> !gpu.mma_matrix<16x16xf16, "COp">
    return %r : !gpu.mma_matrix<16x16xf16, "COp">
  }
  gpu.func @mma_workgroup(%A: memref<16x16xf16>, %B: memref<16x16xf16>, %D: memref<16x16xf32>)
      workgroup(%sa: memref<16x24xf16, #gpu.address_space<workgroup>>, %sb: memref<16x24xf16, #gpu.address_space<workgroup>>,
                %sd: memref<16x16xf32, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c16 = arith.constant 16 : index
    %c256 = arith.constant 256 : index
    %t = gpu.thread_id x
    %n = gpu.block_dim x
    scf.for %e = %t to %c256 step %n {
      %r = arith.divui %e, %c16 : index
      %q = arith.remui %e, %c16 : index
      %x = memref.load %A[%r, %q] : memref<16x16xf16>
      %y = memref.load %B[%r, %q] : memref<16x16xf16>
      memref.store %x, %sa[%r, %q] : memref<16x24xf16, #gpu.address_space<workgroup>>
      memref.store %y, %sb[%r, %q] : memref<16x24xf16, #gpu.address_space<workgroup>>
    }
    gpu.barrier
    %zero = arith.constant 0.0 : f16
    %two = arith.constant 2.0 : f16
    %init = gpu.subgroup_mma_constant_matrix %zero : !gpu.mma_matrix<16x16xf16, "COp">
    %a = gpu.subgroup_mma_load_matrix %sa[%c0, %c0] {leadDimension = 24 : index} : memref<16x24xf16, #gpu.address_space<workgroup>> -> !gpu.mma_matrix<16x16xf16, "AOp">
    %b = gpu.subgroup_mma_load_matrix %sb[%c0, %c0] {leadDimension = 24 : index} : memref<16x24xf16, #gpu.address_space<workgroup>> -> !gpu.mma_matrix<16x16xf16, "BOp">
    %e = gpu.subgroup_mma_load_matrix %sa[%c0, %c0] {leadDimension = 24 : index} : memref<16x24xf16, #gpu.address_space<workgroup>> -> !gpu.mma_matrix<16x16xf16, "COp">
    %p = gpu.subgroup_mma_compute %a, %b, %init : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf16, "COp">
    %s = func.call @scaled(%p, %two) : (!gpu.mma_matrix<16x16xf16, "COp">, f16) -> !gpu.mma_matrix<16x16xf16, "COp">
    %u = gpu.subgroup_mma_elementwise subf %s, %e : (!gpu.mma_matrix<16x16xf16, "COp">, !gpu.mma_matrix<16x16xf16, "COp">) -> !gpu.mma_matrix<16x16xf16, "COp">
    %v = gpu.subgroup_mma_elementwise maxf %u, %init : (!gpu.mma_matrix<16x16xf16, "COp">, !gpu.mma_matrix<16x16xf16, "COp">) -> !gpu.mma_matrix<16x16xf16, "COp">
    %w = gpu.subgroup_mma_elementwise extf %v : (!gpu.mma_matrix<16x16xf16, "COp">) -> !gpu.mma_matrix<16x16xf32, "COp">
    gpu.subgroup_mma_store_matrix %w, %sd[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    scf.for %i = %t to %c256 step %n {
      %r = arith.divui %i, %c16 : index
      %q = arith.remui %i, %c16 : index
      %x = memref.load %sd[%r, %q] : memref<16x16xf32, #gpu.address_space<workgroup>>
      memref.store %x, %D[%r, %q] : memref<16x16xf32>
    }
    gpu.return
  }

  // 8-bit integers, the second factor transposed; what is stored is -(C + A B), element by element.
  gpu.func @mma_si8(%A: memref<16x16xi8>, %B: memref<16x16xi8>, %C: memref<16x16xi32>) kernel {
    %c0 = arith.constant 0 : index
    %a = gpu.subgroup_mma_load_matrix %A[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xi8> -> !gpu.mma_matrix<16x16xsi8, "AOp">
    %b = gpu.subgroup_mma_load_matrix %B[%c0, %c0] {leadDimension = 16 : index, transpose} : memref<16x16xi8> -> !gpu.mma_matrix<16x16xsi8, "BOp">
    %c = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xi32> -> !gpu.mma_matrix<16x16xi32, "COp">
    %d = gpu.subgroup_mma_compute %a, %b, %c : !gpu.mma_matrix<16x16xsi8, "AOp">, !gpu.mma_matrix<16x16xsi8, "BOp"> -> !gpu.mma_matrix<16x16xi32, "COp">
    %e = gpu.subgroup_mma_elementwise negates %d : (!gpu.mma_matrix<16x16xi32, "COp">) -> !gpu.mma_matrix<16x16xi32, "COp">
    gpu.subgroup_mma_store_matrix %e, %C[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xi32, "COp">, memref<16x16xi32>
    gpu.return
  }

  // Each lane doubles its elements one by one: how many it has is known from the size of the subgroup.
  gpu.func @mma_elements(%C: memref<16x16xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c256 = arith.constant 256 : index
    %n = gpu.block_dim x
    %count = arith.divui %c256, %n : index
    %m = gpu.subgroup_mma_load_matrix %C[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf32> -> !gpu.mma_matrix<16x16xf32, "COp">
    %r = scf.for %i = %c0 to %count step %c1 iter_args(%o = %m) -> (!gpu.mma_matrix<16x16xf32, "COp">) {
      %x = gpu.subgroup_mma_extract_thread_local %o[%i] : !gpu.mma_matrix<16x16xf32, "COp"> -> f32
      %y = arith.addf %x, %x : f32
      %p = gpu.subgroup_mma_insert_thread_local %y, %o[%i] : f32, !gpu.mma_matrix<16x16xf32, "COp"> -> !gpu.mma_matrix<16x16xf32, "COp">
      scf.yield %p : !gpu.mma_matrix<16x16xf32, "COp">
    }
    gpu.subgroup_mma_store_matrix %r, %C[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
    gpu.return
  }
}
