// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-embed-offload{finish-with=clang-22,cuda-13.0 targets=sm_90 kind=cuda})' -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: mlir-translate --mlir-to-llvmir %t.mlir -o %t.ll
// RUN: clang-22 -c -O2 %t.ll -o %t.o
// RUN: llvm-readelf -SW %t.o | FileCheck %s --check-prefix=SECTIONS
// RUN: llvm-objdump --offloading %t.o | FileCheck %s --check-prefix=IMAGES

// Bytes of images and their section's flags cannot be said in the dialect: they are assembly.
// CHECK: module attributes {
// CHECK-SAME: llvm.module_asm = [".section .llvm.offloading,\22e\22,@0x6fff4c0b", ".p2align 3"
// CHECK-SAME: llvm.target_triple = "x86_64-unknown-linux-gnu"
// CHECK: llvm.func @main
// CHECK: llvm.call @__device_stub__fill__[[HASH:[0-9a-f]+]](
// CHECK: llvm.mlir.global weak constant @".offloading.entry.fill__[[HASH]]"
// CHECK-SAME: section = "llvm_offload_entries"
// CHECK: llvm.mlir.global appending @llvm.used
// CHECK-NOT: gpu.

// SECTIONS: .llvm.offloading LLVM_OFFLOADING {{.*}} E 0 0 8
// SECTIONS: llvm_offload_entries PROGBITS {{.*}} WAR 0 0 8
// IMAGES: kind            cubin
// IMAGES-NEXT: arch            sm_90
// IMAGES-NEXT: triple          nvptx64-nvidia-cuda
// IMAGES-NEXT: producer        cuda

// Serialized before, by whatever format it can be taken from; and as a program that registers itself.
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-attach-targets{targets=sm_80,sm_90},gpulower-serialize{format=offloading},gpulower-embed-offload{finish-with=clang-19,cuda-13.0})' | FileCheck %s --check-prefix=BEFORE
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-attach-targets{targets=sm_80,sm_90},gpulower-serialize,gpulower-embed-offload{finish-with=clang-19,cuda-13.0})' | FileCheck %s --check-prefix=BEFORE
// BEFORE: llvm.mlir.global weak constant @".omp_offloading.entry.fill"{{.*}} section = "cuda_offloading_entries"

// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-attach-targets{targets=gfx90a},gpulower-serialize,gpulower-embed-offload{self-registering=true})' | FileCheck %s --check-prefix=SELF
// SELF-DAG: llvm.func internal @".gpulower.register"
// SELF-DAG: @__hipRegisterFatBinary
// SELF-DAG: section = ".hip_fatbin"
// SELF-DAG: llvm.mlir.global_ctors ctors = [@".gpulower.register"], priorities = [101 : i32]

// For OpenMP, of either vendor or both.
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-embed-offload{finish-with=clang-22,cuda-13.0 targets=sm_100,gfx90a kind=openmp})' -o %t.omp.mlir
// RUN: FileCheck %s --check-prefix=OPENMP < %t.omp.mlir
// RUN: mlir-translate --mlir-to-llvmir %t.omp.mlir -o %t.omp.ll
// RUN: clang-22 -c -O2 %t.omp.ll -o %t.omp.o
// RUN: gpulower export --check %t.omp.o --with 22,23
// OPENMP-DAG: llvm.call @__tgt_target_kernel
// OPENMP-DAG: llvm.mlir.global weak constant @".offloading.entry.fill__{{.*}} section = "llvm_offload_entries"
// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpulower-attach-targets{targets=sm_100},gpulower-serialize,gpulower-embed-offload{finish-with=clang-22,cuda-13.0 kind=openmp})' 2>&1 | FileCheck %s --check-prefix=COMPILED
// COMPILED: the module kernels was compiled before, and libomptarget hands over 8 bytes for each argument

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @fill(%value: f32, %out: memref<?xf32>) kernel {
      %i = gpu.global_id x
      memref.store %value, %out[%i] : memref<?xf32>
      gpu.return
    }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    %n = arith.constant 64 : index
    %value = arith.constant 1.0 : f32
    %device = gpu.alloc(%n) : memref<?xf32>
    gpu.launch_func @kernels::@fill blocks in (%one, %one, %one) threads in (%n, %one, %one)
      args(%value : f32, %device : memref<?xf32>)
    return
  }
}
