// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-host-to-llvm)' | FileCheck %s

// Alone, the conversion of host code leaves kernels as they are, and an insertion at an unknown place of an aggregate, over which MLIR
// 22's pattern crashes. (`gpulower-expand-host` takes it apart before.)

// CHECK-LABEL: gpu.func @kernel(
// CHECK: vector.insert %{{.*}}, %{{.*}} [%{{.*}}] : vector<4xf32> into vector<2x4xf32>
// CHECK: gpu.return
gpu.module @kernels {
  gpu.func @kernel(%x: vector<2x4xf32>, %row: vector<4xf32>, %i: index, %m: memref<2x4xf32>) kernel {
    %zero = arith.constant 0 : index
    %a = vector.insert %row, %x [%i] : vector<4xf32> into vector<2x4xf32>
    %last = vector.extract %a[1] : vector<4xf32> from vector<2x4xf32>
    vector.store %last, %m[%zero, %zero] : memref<2x4xf32>, vector<4xf32>
    gpu.return
  }
}

// CHECK-LABEL: llvm.func @host(
// CHECK: vector.insert
func.func @host(%x: vector<2x4xf32>, %row: vector<4xf32>, %i: index) -> vector<2x4xf32> {
  %a = vector.insert %row, %x [%i] : vector<4xf32> into vector<2x4xf32>
  return %a : vector<2x4xf32>
}
