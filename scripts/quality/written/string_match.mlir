// block 256
// sizes n = text 0; m = pattern 0
gpu.module @string_match {
  gpu.func @string_match(%text: memref<?xi8>, %pattern: memref<?xi8>, %length: memref<?xi8>, %total: memref<1xi32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %nd = memref.dim %text, %c0 : memref<?xi8>
    %md = memref.dim %pattern, %c0 : memref<?xi8>
    %n = arith.index_cast %nd : index to i32
    %m = arith.index_cast %md : index to i32
    %bxi = gpu.block_id x
    %txi = gpu.thread_id x
    %wxi = gpu.block_dim x
    %bx = arith.index_cast %bxi : index to i32
    %tx = arith.index_cast %txi : index to i32
    %wx = arith.index_cast %wxi : index to i32
    %base = arith.muli %bx, %wx overflow<nsw> : i32
    %i = arith.addi %base, %tx overflow<nsw> : i32
    %rest = arith.subi %n, %m overflow<nsw> : i32
    %in = arith.cmpi sle, %i, %rest : i32
    scf.if %in {
      %r:2 = scf.while (%k = %i0) : (i32) -> (i32, i1) {
        %inside = arith.cmpi slt, %k, %m : i32
        %same = scf.if %inside -> (i1) {
          %at = arith.addi %i, %k overflow<nsw> : i32
          %ati = arith.index_cast %at : i32 to index
          %ki = arith.index_cast %k : i32 to index
          %t = memref.load %text[%ati] : memref<?xi8>
          %p = memref.load %pattern[%ki] : memref<?xi8>
          %e = arith.cmpi eq, %t, %p : i8
          scf.yield %e : i1
        } else {
          scf.yield %inside : i1
        }
        scf.condition(%same) %k, %inside : i32, i1
      } do {
      ^bb0(%k: i32, %inside: i1):
        %kn = arith.addi %k, %i1 overflow<nsw> : i32
        scf.yield %kn : i32
      }
      %ii = arith.index_cast %i : i32 to index
      %lo = arith.trunci %r#0 : i32 to i8
      memref.store %lo, %length[%ii] : memref<?xi8>
      %whole = arith.cmpi eq, %r#0, %m : i32
      scf.if %whole {
        %old = memref.atomic_rmw addi %i1, %total[%c0] : (i32, memref<1xi32>) -> i32
      }
    }
    gpu.return
  }
}
