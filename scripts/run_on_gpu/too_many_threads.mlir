// A block of 4096 threads, which no GPU has.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @nothing() kernel { gpu.return }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %many = arith.constant 4096 : index
    gpu.launch_func @kernels::@nothing blocks in (%one, %one, %one) threads in (%many, %one, %one)
    return
  }
}
