// Loads and stores of several dimensions, and positions in vectors that are not known when compiling. MLIR 22 has no lowering for the
// first; of an insertion at such a position it makes an `llvm.insertvalue` at a meaningless one, or crashes.
//
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpu.module(gpulower-expand-gpu{amd=true chipset=gfx942 subgroup-size=64}))' \
// RUN:   | FileCheck %s
// RUN: gpulower compile %s --target sm_90 --emit ptx -o /dev/null
// RUN: gpulower compile %s --target gfx942 --emit hsaco -o %t.hsaco

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @rows(
  // CHECK: vector.transfer_read {{.*}} {in_bounds = [true, true]} : memref<?x8xf32>, vector<2x4xf32>
  // CHECK: vector.transfer_write {{.*}} {in_bounds = [true, true]} : vector<2x4xf32>, memref<?x8xf32>
  gpu.func @rows(%m: memref<?x8xf32>, %i: index) kernel {
    %x = vector.load %m[%i, %i] {alignment = 16 : i64} : memref<?x8xf32>, vector<2x4xf32>
    vector.store %x, %m[%i, %i] : memref<?x8xf32>, vector<2x4xf32>
    gpu.return
  }

  // CHECK-LABEL: gpu.func @places(
  // CHECK-NOT: vector.{{(extract|insert)}} {{.*}}[%
  // CHECK: gpu.return
  gpu.func @places(%m: memref<2x4xf32>, %v: memref<4xf32>, %i: index, %j: index) kernel {
    %zero = arith.constant 0 : index
    %x = vector.load %m[%zero, %zero] : memref<2x4xf32>, vector<2x4xf32>
    %row = vector.load %v[%zero] : memref<4xf32>, vector<4xf32>
    %a = vector.insert %row, %x [%i] : vector<4xf32> into vector<2x4xf32>
    %element = vector.extract %a[%j, 3] : f32 from vector<2x4xf32>
    %b = vector.insert %element, %a [%j, 2] : f32 into vector<2x4xf32>
    %c = vector.extract %b[%i] : vector<4xf32> from vector<2x4xf32>
    %d = vector.insert %c, %b [1] : vector<4xf32> into vector<2x4xf32>
    vector.store %d, %m[%zero, %zero] : memref<2x4xf32>, vector<2x4xf32>
    gpu.return
  }

  // An element that is asked for, or given, as a vector of one.
  // CHECK-LABEL: gpu.func @ones(
  // CHECK-NOT: vector.{{(extract|insert)}} {{.*}}[%
  // CHECK: vector.broadcast %{{.*}} : f32 to vector<1xf32>
  // CHECK: gpu.return
  gpu.func @ones(%m: memref<2x4xf32>, %v: memref<1xf32>, %i: index) kernel {
    %zero = arith.constant 0 : index
    %x = vector.load %m[%zero, %zero] : memref<2x4xf32>, vector<2x4xf32>
    %one = vector.extract %x[%i, 3] : vector<1xf32> from vector<2x4xf32>
    vector.store %one, %v[%zero] : memref<1xf32>, vector<1xf32>
    gpu.return
  }

  // The last position of an element stays as it is.
  // CHECK-LABEL: gpu.func @last(
  // CHECK: vector.extract %{{.*}}[1, %{{.*}}] : f32 from vector<2x4xf32>
  gpu.func @last(%m: memref<2x4xf32>, %v: memref<4xf32>, %i: index) kernel {
    %zero = arith.constant 0 : index
    %x = vector.load %m[%zero, %zero] : memref<2x4xf32>, vector<2x4xf32>
    %element = vector.extract %x[1, %i] : f32 from vector<2x4xf32>
    memref.store %element, %v[%i] : memref<4xf32>
    gpu.return
  }
}
