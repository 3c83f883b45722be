// What gpulower-serialize writes is an ordinary gpu.binary: upstream's passes lower the launches, and mlir-translate embeds
// the object.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=fatbin" \
// RUN:   | mlir-opt --gpu-to-llvm --convert-func-to-llvm --convert-arith-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefixes=CHECK,FATBIN
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=bin" \
// RUN:   | mlir-opt --gpu-to-llvm --convert-func-to-llvm --convert-arith-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefixes=CHECK,HSACO
// All of it in one process, and the second object chosen:
// RUN: sed 's/@kernels {/@kernels <#gpu.select_object<1>> {/' %s \
// RUN:   | gpulower-opt --gpulower-to-binary="targets=sm_80,gfx942 format=bin" --gpu-to-llvm --convert-func-to-llvm --convert-arith-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefixes=CHECK,HSACO
// PTX that the driver compiles:
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa" \
// RUN:   | mlir-opt --gpu-to-llvm --convert-func-to-llvm --convert-arith-to-llvm --reconcile-unrealized-casts \
// RUN:   | mlir-translate --mlir-to-llvmir | FileCheck %s --check-prefix=JIT

// FATBIN: @kernels_binary = internal constant [{{[0-9]+}} x i8] c"P\EDU\BA
// HSACO: @kernels_binary = internal constant [{{[0-9]+}} x i8] c"\7FELF\02\01\01@
// CHECK: call ptr @mgpuModuleGetFunction
// CHECK: call void @mgpuLaunchKernel
// CHECK: call ptr @mgpuModuleLoad(ptr @kernels_binary
// JIT: call ptr @mgpuModuleLoadJIT(ptr @kernels_binary, i32 3)
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k(%x: f32, %out: memref<4xf32>) kernel {
      %i = gpu.thread_id x
      memref.store %x, %out[%i] : memref<4xf32>
      gpu.return
    }
  }
  func.func @main(%x: f32, %out: memref<4xf32>) {
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    gpu.launch_func @kernels::@k blocks in (%c1, %c1, %c1) threads in (%c4, %c1, %c1) args(%x : f32, %out : memref<4xf32>)
    return
  }
}
