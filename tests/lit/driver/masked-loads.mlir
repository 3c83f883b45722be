// A masked load with a constant mask: lanes that are not loaded keep the values that were given for them.

// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
// RUN: gpulower compile %s --target sm_90 -O0 --emit ptx -o - | FileCheck %s --check-prefix=O0

// CHECK-LABEL: .entry two_lanes(
// CHECK: add.s32 {{.*}}, 1867
// O0-LABEL: .entry two_lanes(
// O0: 1867
gpu.module @m {
  gpu.func @two_lanes(%to: memref<?xi32>, %from: memref<?xi16>) kernel {
    %zero = arith.constant 0 : index
    %mask = arith.constant dense<[true, false]> : vector<2xi1>
    %others = arith.constant dense<1867> : vector<2xi16>
    %lanes = vector.maskedload %from[%zero], %mask, %others {alignment = 4 : i64} : memref<?xi16>, vector<2xi1>, vector<2xi16> into vector<2xi16>
    %wide = arith.extui %lanes : vector<2xi16> to vector<2xi32>
    %sum = vector.reduction <add>, %wide : vector<2xi32> into i32
    memref.store %sum, %to[%zero] : memref<?xi32>
    gpu.return
  }
}
