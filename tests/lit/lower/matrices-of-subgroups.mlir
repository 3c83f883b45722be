// RUN: rm -rf %t
// RUN: split-file %s %t
// RUN: gpulower compile %t/bytes.mlir --target sm_80 --emit ptx -o - | FileCheck %t/bytes.mlir
// RUN: gpulower compile %t/elements.mlir --target sm_80 --emit ptx -o - | FileCheck %t/elements.mlir
// RUN: not gpulower compile %t/refused.mlir --target sm_80 --emit ptx -o %t/out 2>&1 | FileCheck %t/refused.mlir
// RUN: not gpulower compile %t/bytes.mlir --target sm_70 --emit ptx -o %t/out 2>&1 | FileCheck %t/bytes.mlir --check-prefix=OLD
// RUN: test ! -e %t/out

// mlir-opt 22 translates a load of one register to LLVM IR that crashes LLVM, and ends in code that cannot be reached for
// the operations on elements below.

//--- bytes.mlir
gpu.module @kernels {
  // CHECK-LABEL: .entry m32n8k16
  gpu.func @m32n8k16(%a: memref<32x16xi8>, %b: memref<16x8xi8>, %c: memref<32x8xi32>) kernel {
    %0 = arith.constant 0 : index
    // CHECK: wmma.load.a.sync.aligned.row.m32n8k16.s8 {{.*}}{%r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}}
    // OLD: bytes.mlir:[[#@LINE+1]]:{{.*}}cannot lower gpu.subgroup_mma_load_matrix: matrices of type !gpu.mma_matrix<32x16xsi8, "AOp"> need sm_72 or later
    %x = gpu.subgroup_mma_load_matrix %a[%0, %0] {leadDimension = 16 : index} : memref<32x16xi8> -> !gpu.mma_matrix<32x16xsi8, "AOp">
    // CHECK: wmma.load.b.sync.aligned.row.m32n8k16.s8 {{.*}}{%r[[B:[0-9]+]]}
    %y = gpu.subgroup_mma_load_matrix %b[%0, %0] {leadDimension = 8 : index} : memref<16x8xi8> -> !gpu.mma_matrix<16x8xsi8, "BOp">
    %z = gpu.subgroup_mma_load_matrix %c[%0, %0] {leadDimension = 8 : index} : memref<32x8xi32> -> !gpu.mma_matrix<32x8xi32, "COp">
    // CHECK: wmma.mma.sync.aligned.row.row.m32n8k16.s32.s8.s8.s32
    // CHECK: {%r[[B]]}
    %d = gpu.subgroup_mma_compute %x, %y, %z : !gpu.mma_matrix<32x16xsi8, "AOp">, !gpu.mma_matrix<16x8xsi8, "BOp"> -> !gpu.mma_matrix<32x8xi32, "COp">
    gpu.subgroup_mma_store_matrix %d, %c[%0, %0] {leadDimension = 8 : index} : !gpu.mma_matrix<32x8xi32, "COp">, memref<32x8xi32>
    gpu.return
  }
  // CHECK-LABEL: .entry m8n32k16
  gpu.func @m8n32k16(%a: memref<8x16xi8>, %b: memref<16x32xi8>, %c: memref<8x32xi32>) kernel {
    %0 = arith.constant 0 : index
    // CHECK: wmma.load.a.sync.aligned.row.m8n32k16.u8 {{.*}}{%r{{[0-9]+}}}
    %x = gpu.subgroup_mma_load_matrix %a[%0, %0] {leadDimension = 16 : index} : memref<8x16xi8> -> !gpu.mma_matrix<8x16xui8, "AOp">
    %y = gpu.subgroup_mma_load_matrix %b[%0, %0] {leadDimension = 32 : index} : memref<16x32xi8> -> !gpu.mma_matrix<16x32xui8, "BOp">
    %z = gpu.subgroup_mma_load_matrix %c[%0, %0] {leadDimension = 32 : index} : memref<8x32xi32> -> !gpu.mma_matrix<8x32xi32, "COp">
    // CHECK: wmma.mma.sync.aligned.row.row.m8n32k16.s32.u8.u8.s32
    %d = gpu.subgroup_mma_compute %x, %y, %z : !gpu.mma_matrix<8x16xui8, "AOp">, !gpu.mma_matrix<16x32xui8, "BOp"> -> !gpu.mma_matrix<8x32xi32, "COp">
    gpu.subgroup_mma_store_matrix %d, %c[%0, %0] {leadDimension = 32 : index} : !gpu.mma_matrix<8x32xi32, "COp">, memref<8x32xi32>
    gpu.return
  }
}

//--- elements.mlir
!f32 = !gpu.mma_matrix<16x16xf32, "COp">
!f16 = !gpu.mma_matrix<16x16xf16, "COp">
!s32 = !gpu.mma_matrix<16x16xi32, "COp">
gpu.module @kernels {
  // CHECK-LABEL: .entry floats
  gpu.func @floats(%m: memref<16x16xf32>) kernel {
    %0 = arith.constant 0 : index
    %a = gpu.subgroup_mma_load_matrix %m[%0, %0] {leadDimension = 16 : index} : memref<16x16xf32> -> !f32
    // CHECK-COUNT-8: neg.f32
    %b = gpu.subgroup_mma_elementwise negatef %a : (!f32) -> !f32
    %c = gpu.subgroup_mma_elementwise mulf %a, %a : (!f32, !f32) -> !f32
    // CHECK-COUNT-8: sub{{.*}}.f32
    %d = gpu.subgroup_mma_elementwise subf %b, %c : (!f32, !f32) -> !f32
    gpu.subgroup_mma_store_matrix %d, %m[%0, %0] {leadDimension = 16 : index} : !f32, memref<16x16xf32>
    gpu.return
  }
  // CHECK-LABEL: .entry halves
  gpu.func @halves(%m: memref<16x16xf16>) kernel {
    %0 = arith.constant 0 : index
    %a = gpu.subgroup_mma_load_matrix %m[%0, %0] {leadDimension = 16 : index} : memref<16x16xf16> -> !f16
    %b = gpu.subgroup_mma_elementwise addf %a, %a : (!f16, !f16) -> !f16
    // CHECK-COUNT-4: max.NaN.f16x2
    %c = gpu.subgroup_mma_elementwise maxf %a, %b : (!f16, !f16) -> !f16
    gpu.subgroup_mma_store_matrix %c, %m[%0, %0] {leadDimension = 16 : index} : !f16, memref<16x16xf16>
    gpu.return
  }
  // CHECK-LABEL: .entry integers
  gpu.func @integers(%m: memref<16x16xi32>) kernel {
    %0 = arith.constant 0 : index
    %a = gpu.subgroup_mma_load_matrix %m[%0, %0] {leadDimension = 16 : index} : memref<16x16xi32> -> !s32
    // CHECK-COUNT-8: mul.lo.s32
    %b = gpu.subgroup_mma_elementwise muli %a, %a : (!s32, !s32) -> !s32
    // CHECK-COUNT-8: div.s32
    %c = gpu.subgroup_mma_elementwise divs %b, %a : (!s32, !s32) -> !s32
    %d = gpu.subgroup_mma_elementwise negates %c : (!s32) -> !s32
    gpu.subgroup_mma_store_matrix %d, %m[%0, %0] {leadDimension = 16 : index} : !s32, memref<16x16xi32>
    gpu.return
  }
}

//--- refused.mlir
gpu.module @kernels {
  gpu.func @k(%a: memref<16x16xi8>, %b: memref<16x16xf16>, %x: f32) kernel {
    %0 = arith.constant 0 : index
    %s = gpu.subgroup_mma_load_matrix %a[%0, %0] {leadDimension = 16 : index} : memref<16x16xi8> -> !gpu.mma_matrix<16x16xsi8, "AOp">
    %h = gpu.subgroup_mma_load_matrix %b[%0, %0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "COp">
    // CHECK: refused.mlir:[[#@LINE+1]]:{{.*}}cannot lower gpu.subgroup_mma_elementwise: the elements of !gpu.mma_matrix<16x16xsi8, "AOp"> are packed
    %1 = gpu.subgroup_mma_elementwise addi %s, %s : (!gpu.mma_matrix<16x16xsi8, "AOp">, !gpu.mma_matrix<16x16xsi8, "AOp">) -> !gpu.mma_matrix<16x16xsi8, "AOp">
    gpu.return
  }
}
