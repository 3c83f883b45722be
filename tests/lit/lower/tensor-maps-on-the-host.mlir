// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-expand-host,gpulower-host-to-llvm,reconcile-unrealized-casts,canonicalize)' | FileCheck %s

// A tensor map is made by the host: a call with the tensor, the element type, how the box lies in shared memory, and its sizes.
// Kernels get its address. The memory space in its type is the device's, and stays, where the host's other types lose theirs.

!map = !nvgpu.tensormap.descriptor<tensor = memref<32x64xf16, #gpu.address_space<workgroup>>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>

// CHECK-LABEL: llvm.func @main(
// CHECK-SAME: [[RANK:%arg[0-9]+]]: i64, [[TENSOR:%arg[0-9]+]]: !llvm.ptr
// CHECK-DAG: [[NONE:%[0-9]+]] = llvm.mlir.constant(0 : i32)
// CHECK-DAG: [[SWIZZLE:%[0-9]+]] = llvm.mlir.constant(3 : i32)
// CHECK-DAG: [[F16:%[0-9]+]] = llvm.mlir.constant(6 : i32)
// CHECK: [[MAP:%[0-9]+]] = llvm.call @mgpuTensorMapEncodeTiledMemref([[RANK]], [[TENSOR]], [[F16]], [[NONE]], [[SWIZZLE]], [[NONE]], [[NONE]], {{%[0-9]+}})
// CHECK: llvm.call @__device_stub__copy({{.*}}, [[MAP]])
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @copy(%m: !map) kernel {
      gpu.return
    }
  }
  func.func @main(%tensor: memref<*xf16>) {
    %one = arith.constant 1 : index
    %rows = arith.constant 32 : index
    %columns = arith.constant 64 : index
    %map = nvgpu.tma.create.descriptor %tensor box[%rows, %columns] : memref<*xf16> -> !map
    gpu.launch_func @kernels::@copy blocks in (%one, %one, %one) threads in (%one, %one, %one) args(%map : !map)
    return
  }
}
