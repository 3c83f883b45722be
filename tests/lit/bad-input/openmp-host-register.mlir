// RUN: not gpulower export %s --kind openmp -t sm_90 --finish-with clang-16,cuda-13.0 -o %t.o 2>&1 | FileCheck %s
// CHECK: gpu.host_register cannot be exported for OpenMP: libomptarget has no function that lets kernels see memory of the host

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @nothing() kernel {
      gpu.return
    }
  }
  func.func @main() -> i32 {
    %one = arith.constant 1 : index
    %memory = memref.alloc() : memref<4xf32>
    %any = memref.cast %memory : memref<4xf32> to memref<*xf32>
    gpu.host_register %any : memref<*xf32>
    gpu.launch_func @kernels::@nothing blocks in (%one, %one, %one) threads in (%one, %one, %one)
    %zero = arith.constant 0 : i32
    return %zero : i32
  }
}
