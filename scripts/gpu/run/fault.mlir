// A kernel writes where there is no memory: the program is stopped when the launch is waited for.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @write(%p: memref<?xi32>, %i: index) kernel {
      %v = arith.constant 1 : i32
      memref.store %v, %p[%i] : memref<?xi32>
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %far = arith.constant 70368744177664 : index
    %m = gpu.alloc (%one) : memref<?xi32>
    gpu.launch_func @kernels::@write blocks in (%one, %one, %one) threads in (%one, %one, %one)
        args(%m : memref<?xi32>, %far : index)
    return
  }
}
