// A block of 4096 threads, which no GPU has. A constant would be refused before anything runs.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @nothing() kernel { gpu.return }
  }
  func.func private @abs(i32) -> i32
  func.func @main() {
    %one = arith.constant 1 : index
    %negative = arith.constant -4096 : i32
    %number = func.call @abs(%negative) : (i32) -> i32
    %many = arith.index_cast %number : i32 to index
    gpu.launch_func @kernels::@nothing blocks in (%one, %one, %one) threads in (%many, %one, %one)
    return
  }
}
