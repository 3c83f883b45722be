// Registers host memory, lets a kernel write to it in place, and looks at it. main returns 0 if all is right.
// MLIR's own gpu-lower-to-nvvm-pipeline takes it too.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @count(%p: memref<?xi32>) kernel {
      %t = gpu.thread_id x
      %b = gpu.block_id x
      %size = gpu.block_dim x
      %start = arith.muli %b, %size : index
      %i = arith.addi %start, %t : index
      %v = arith.index_cast %i : index to i32
      memref.store %v, %p[%i] : memref<?xi32>
      gpu.return
    }
  }
  func.func @main() -> i32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %threads = arith.constant 128 : index
    %blocks = arith.constant 32 : index
    %n = arith.constant 4096 : index
    %good = arith.constant 0 : i32
    %bad = arith.constant 1 : i32
    %m = memref.alloc(%n) : memref<?xi32>
    %u = memref.cast %m : memref<?xi32> to memref<*xi32>
    gpu.host_register %u : memref<*xi32>
    gpu.launch_func @kernels::@count blocks in (%blocks, %one, %one) threads in (%threads, %one, %one) args(%m : memref<?xi32>)
    gpu.host_unregister %u : memref<*xi32>
    %status = scf.for %i = %zero to %n step %one iter_args(%so_far = %good) -> (i32) {
      %found = memref.load %m[%i] : memref<?xi32>
      %wanted = arith.index_cast %i : index to i32
      %same = arith.cmpi eq, %found, %wanted : i32
      %next = arith.select %same, %so_far, %bad : i32
      scf.yield %next : i32
    }
    memref.dealloc %m : memref<?xi32>
    return %status : i32
  }
}
