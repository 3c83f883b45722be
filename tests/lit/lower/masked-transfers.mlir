// A mask has the order of memory. MLIR 22 takes its first dimension for the vector's first: of the first kernel it makes a module that
// its verifier refuses, and where the sizes are the same, the elements of the mask are others (tests/amd executes such kernels).
//
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpu.module(gpulower-expand-gpu{amd=true chipset=gfx942 subgroup-size=64}))' \
// RUN:   | FileCheck %s
// RUN: gpulower compile %s --target sm_90 --emit ptx -o /dev/null
// RUN: gpulower compile %s --target gfx942 --emit hsaco -o %t.hsaco

#outer_and_inner = affine_map<(d0, d1, d2) -> (d0, d2)>
#turned = affine_map<(d0, d1, d2) -> (d2, d0)>
#repeated = affine_map<(d0, d1) -> (d1, 0, d0)>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @write(
  // CHECK: %[[MASK:.*]] = vector.shape_cast %{{.*}} : vector<2x3xi1> to vector<2x1x3xi1>
  // CHECK: vector.transfer_write {{.*}}, %[[MASK]] {in_bounds = [true, true, false]} : vector<2x1x3xf32>
  gpu.func @write(%m: memref<?x?x?xf32>, %v: memref<2x3xf32>, %i: index, %j: index) kernel {
    %zero = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %x = vector.transfer_read %v[%zero, %zero], %pad {in_bounds = [true, true]} : memref<2x3xf32>, vector<2x3xf32>
    %mask = vector.create_mask %i, %j : vector<2x3xi1>
    vector.transfer_write %x, %m[%i, %j, %i], %mask {in_bounds = [true, false], permutation_map = #outer_and_inner}
        : vector<2x3xf32>, memref<?x?x?xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @read(
  // CHECK: %[[MASK:.*]] = vector.shape_cast %{{.*}} : vector<3x2xi1> to vector<3x1x2xi1>
  // CHECK: %[[READ:.*]] = vector.transfer_read {{.*}}, %[[MASK]] {in_bounds = [false, true, true]} : memref<?x?x?xf32>, vector<3x1x2xf32>
  // CHECK: %[[IN_ORDER:.*]] = vector.shape_cast %[[READ]] : vector<3x1x2xf32> to vector<3x2xf32>
  // CHECK: vector.transpose %[[IN_ORDER]], [1, 0] : vector<3x2xf32> to vector<2x3xf32>
  gpu.func @read(%m: memref<?x?x?xf32>, %v: memref<2x3xf32>, %i: index, %j: index) kernel {
    %zero = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %mask = vector.create_mask %j, %i : vector<3x2xi1>
    %x = vector.transfer_read %m[%i, %j, %i], %pad, %mask {in_bounds = [true, false], permutation_map = #turned}
        : memref<?x?x?xf32>, vector<2x3xf32>
    vector.transfer_write %x, %v[%zero, %zero] {in_bounds = [true, true]} : vector<2x3xf32>, memref<2x3xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @repeats(
  // CHECK: %[[READ:.*]] = vector.transfer_read {{.*}} : memref<?x?xf32>, vector<3x2xf32>
  // CHECK: %[[TURNED:.*]] = vector.transpose %[[READ]], [1, 0]
  // CHECK: %[[ONE:.*]] = vector.shape_cast %[[TURNED]] : vector<2x3xf32> to vector<2x1x3xf32>
  // CHECK: vector.broadcast %[[ONE]] : vector<2x1x3xf32> to vector<2x4x3xf32>
  gpu.func @repeats(%m: memref<?x?xf32>, %v: memref<2x4x3xf32>, %i: index, %j: index) kernel {
    %zero = arith.constant 0 : index
    %pad = arith.constant 0.0 : f32
    %mask = vector.create_mask %j, %i : vector<3x2xi1>
    %x = vector.transfer_read %m[%i, %j], %pad, %mask {in_bounds = [false, true, false], permutation_map = #repeated}
        : memref<?x?xf32>, vector<2x4x3xf32>
    vector.store %x, %v[%zero, %zero, %zero] : memref<2x4x3xf32>, vector<2x4x3xf32>
    gpu.return
  }

  // One dimension needs nothing.
  // CHECK-LABEL: gpu.func @plain(
  // CHECK-NOT: shape_cast
  // CHECK: vector.transfer_write {{.*}} : vector<4xf32>, memref<?xf32>
  gpu.func @plain(%m: memref<?xf32>, %v: memref<4xf32>, %i: index) kernel {
    %zero = arith.constant 0 : index
    %mask = vector.create_mask %i : vector<4xi1>
    %x = vector.load %v[%zero] : memref<4xf32>, vector<4xf32>
    vector.transfer_write %x, %m[%i], %mask : vector<4xf32>, memref<?xf32>
    gpu.return
  }
}
