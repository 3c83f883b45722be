// Kernels of one name in modules that were compiled before: a program that registers itself has each module loaded on its
// own, and tells them apart by their stubs. Linked together they are one too many.

// RUN: rm -rf %t && mkdir %t
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_90 format=isa" -o %t/nvidia.mlir
// RUN: gpulower export %t/nvidia.mlir --target sm_90 --emit self -o %t/nvidia.o
// RUN: llvm-nm-22 %t/nvidia.o | FileCheck %s --check-prefix=STUBS
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=bin" -o %t/amd.mlir
// RUN: gpulower export %t/amd.mlir --target gfx942 --emit self -o %t/amd.o
// RUN: llvm-nm-22 %t/amd.o | FileCheck %s --check-prefixes=STUBS,HANDLES
// RUN: not gpulower export %t/nvidia.mlir --target sm_90 --finish-with clang-19,cuda-12.4 -o %t/x.o 2>&1 | FileCheck %s --check-prefix=LINKED

// STUBS-COUNT-2: __device_stub__k__{{[0-9a-f]+$}}
// HANDLES-COUNT-2: {{ k__[0-9a-f]+$}}
// LINKED: k is defined by the device modules a and b, which are linked into one program; {{.*}}export a program that registers itself
module attributes {gpu.container_module} {
  gpu.module @a {
    gpu.func @k(%p: memref<?xi32>) kernel {
      %i = gpu.thread_id x
      %v = arith.constant 1 : i32
      memref.store %v, %p[%i] : memref<?xi32>
      gpu.return
    }
  }
  gpu.module @b {
    gpu.func @k(%p: memref<?xi32>) kernel {
      %i = gpu.thread_id x
      %v = arith.constant 2 : i32
      memref.store %v, %p[%i] : memref<?xi32>
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %m = gpu.alloc (%one) : memref<?xi32>
    gpu.launch_func @a::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%m : memref<?xi32>)
    gpu.launch_func @b::@k blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%m : memref<?xi32>)
    return
  }
}
