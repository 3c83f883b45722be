// What kernels may do with vectors, their host's code may, too: masked transfers in any order, places that are not known when compiling.

// RUN: gpulower export %s --target sm_90 --emit ll --finish-with clang-22,cuda-12.4 -o %t.ll
// RUN: FileCheck %s < %t.ll

module attributes {gpu.container_module} {
  gpu.module @k { gpu.func @nothing() kernel { gpu.return } }

  // The mask has the order of memory, [d0][d2]; the vector that of its map. The second row of the mask is for d0 = 1.
  // CHECK-LABEL: define void @column(
  // CHECK: extractvalue [2 x <2 x i1>] %{{[0-9]+}}, 0
  func.func @column(%m: memref<?x?x?xf32>, %o: memref<2x2xf32>, %mask: vector<2x2xi1>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %padding = arith.constant 7.0 : f32
    %x = vector.transfer_read %m[%zero, %zero, %zero], %padding, %mask
        {in_bounds = [true, true], permutation_map = affine_map<(d0, d1, d2) -> (d2, d0)>} : memref<?x?x?xf32>, vector<2x2xf32>
    vector.transfer_write %x, %o[%zero, %zero] {in_bounds = [true, true]} : vector<2x2xf32>, memref<2x2xf32>
    gpu.launch_func @k::@nothing blocks in (%one, %one, %one) threads in (%one, %one, %one)
    return
  }

  // CHECK-LABEL: define void @row(
  // CHECK: select i1 %{{[0-9]+}}, <4 x float>
  func.func @row(%v: memref<2x4xf32>, %r: vector<4xf32>, %i: index) {
    %zero = arith.constant 0 : index
    %x = vector.load %v[%zero, %zero] : memref<2x4xf32>, vector<2x4xf32>
    %y = vector.insert %r, %x[%i] : vector<4xf32> into vector<2x4xf32>
    vector.store %y, %v[%zero, %zero] : memref<2x4xf32>, vector<2x4xf32>
    return
  }
}
