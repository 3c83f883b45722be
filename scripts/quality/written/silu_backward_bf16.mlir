// block 256
// sizes n = x 0
gpu.module @silu_backward_bf16 {
  gpu.func @silu_backward_bf16(%x: memref<?xbf16>, %dy: memref<?xbf16>, %dx: memref<?xbf16>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1.0 : f32
    %nd = memref.dim %x, %c0 : memref<?xbf16>
    %n = arith.index_cast %nd : index to i32
    %bxi = gpu.block_id x
    %txi = gpu.thread_id x
    %wxi = gpu.block_dim x
    %gxi = gpu.grid_dim x
    %bx = arith.index_cast %bxi : index to i32
    %tx = arith.index_cast %txi : index to i32
    %wx = arith.index_cast %wxi : index to i32
    %gx = arith.index_cast %gxi : index to i32
    %base = arith.muli %bx, %wx : i32
    %start = arith.addi %base, %tx : i32
    %stride = arith.muli %gx, %wx : i32
    scf.for %i = %start to %n step %stride : i32 {
      %at = arith.index_cast %i : i32 to index
      %a = memref.load %x[%at] : memref<?xbf16>
      %g = memref.load %dy[%at] : memref<?xbf16>
      %v = arith.extf %a : bf16 to f32
      %d = arith.extf %g : bf16 to f32
      %neg = arith.negf %v : f32
      %e = math.exp %neg : f32
      %den = arith.addf %one, %e : f32
      %s = arith.divf %one, %den : f32
      %r = arith.subf %one, %s : f32
      %vr = arith.mulf %v, %r : f32
      %o = arith.addf %one, %vr : f32
      %ds = arith.mulf %d, %s : f32
      %out = arith.mulf %ds, %o : f32
      %on = arith.truncf %out : f32 to bf16
      memref.store %on, %dx[%at] : memref<?xbf16>
    }
    gpu.return
  }
}
