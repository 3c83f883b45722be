// A kernel in clusters of two blocks, on two streams that an event puts in order. main returns 0 if all is right.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @number(%p: memref<?xi32>) kernel {
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %c = gpu.cluster_id x
      %size = gpu.block_dim x
      %start = arith.muli %b, %size : index
      %i = arith.addi %start, %t : index
      %v = arith.index_cast %c : index to i32
      memref.store %v, %p[%i] : memref<?xi32>
      gpu.return
    }
  }
  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %eight = arith.constant 8 : index
    %threads = arith.constant 32 : index
    %pair = arith.constant 64 : index
    %n = arith.constant 256 : index
    %good = arith.constant 0 : i32
    %bad = arith.constant 1 : i32
    %h = memref.alloc(%n) : memref<?xi32>
    %d = gpu.alloc (%n) : memref<?xi32>
    %start = gpu.wait async
    %other = gpu.wait async
    %ran = gpu.launch_func async [%start, %other] @kernels::@number clusters in (%two, %one, %one)
        blocks in (%eight, %one, %one) threads in (%threads, %one, %one) args(%d : memref<?xi32>)
    %copied = gpu.memcpy async [%ran] %h, %d : memref<?xi32>, memref<?xi32>
    gpu.wait [%copied]
    gpu.dealloc %d : memref<?xi32>
    %status = scf.for %i = %zero to %n step %one iter_args(%so_far = %good) -> (i32) {
      %found = memref.load %h[%i] : memref<?xi32>
      %cluster = arith.divui %i, %pair : index
      %wanted = arith.index_cast %cluster : index to i32
      %same = arith.cmpi eq, %found, %wanted : i32
      %next = arith.select %same, %so_far, %bad : i32
      scf.yield %next : i32
    }
    return %status : i32
  }
}
