// block 256
// sizes nnz = value 0
gpu.module @coo_spmv {
  gpu.func @coo_spmv(%row: memref<?xi32>, %column: memref<?xi32>, %value: memref<?xf32>, %x: memref<?xf32>, %y: memref<?xf32>) kernel attributes {BLOCK} {
    %c0 = arith.constant 0 : index
    %nnz = memref.dim %value, %c0 : memref<?xf32>
    %bx = gpu.block_id x
    %tx = gpu.thread_id x
    %wx = gpu.block_dim x
    %gx = gpu.grid_dim x
    %base = arith.muli %bx, %wx : index
    %start = arith.addi %base, %tx : index
    %stride = arith.muli %gx, %wx : index
    scf.for %k = %start to %nnz step %stride {
      %r = memref.load %row[%k] : memref<?xi32>
      %c = memref.load %column[%k] : memref<?xi32>
      %ri = arith.index_cast %r : i32 to index
      %ci = arith.index_cast %c : i32 to index
      %v = memref.load %value[%k] : memref<?xf32>
      %xv = memref.load %x[%ci] : memref<?xf32>
      %p = arith.mulf %v, %xv : f32
      %old = memref.atomic_rmw addf %p, %y[%ri] : (f32, memref<?xf32>) -> f32
    }
    gpu.return
  }
}
