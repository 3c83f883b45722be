// RUN: rm -rf %t
// RUN: split-file %s %t
// RUN: gpulower compile %S/../../amd/kernels/matrices.mlir --target gfx90a --emit asm -o - | FileCheck %s --check-prefixes=MFMA,BYTES16
// RUN: gpulower compile %S/../../amd/kernels/matrices.mlir --target gfx942 --emit asm -o - | FileCheck %s --check-prefixes=MFMA,BYTES32
// RUN: gpulower compile %S/../../amd/kernels/matrices.mlir --target gfx950 --emit asm -o - | FileCheck %s --check-prefixes=MFMA,BYTES32
// RUN: gpulower compile %S/../../amd/kernels/matrices.mlir --target gfx1100,gfx1150,gfx1201,gfx11-generic,gfx12-generic --emit asm -o %t/rdna/
// RUN: FileCheck %s --check-prefix=WMMA < %t/rdna/matrices.gfx1100.s
// RUN: FileCheck %s --check-prefix=WMMA < %t/rdna/matrices.gfx1201.s
// RUN: not gpulower compile %t/refused.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %s --check-prefix=REFUSED
// RUN: not gpulower compile %t/unsigned.mlir --target gfx942 --emit asm -o %t/out 2>&1 | FileCheck %s --check-prefix=UNSIGNED
// RUN: not gpulower compile %t/one.mlir --target gfx1100 --wave-size 64 --emit asm -o %t/out 2>&1 | FileCheck %s --check-prefix=WAVE64
// RUN: not gpulower compile %t/one.mlir --target gfx1030 --emit asm -o %t/out 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not gpulower compile %t/double.mlir --target gfx1201 --emit asm -o %t/out 2>&1 | FileCheck %s --check-prefix=DOUBLE

// MLIR 22 has no conversion of `gpu.subgroup_mma_*` for AMD. What the kernels compute is in tests/amd.

// MFMA-LABEL: mma_f16:
// MFMA: v_mfma_f32_16x16x16{{_?}}f16
// MFMA-LABEL: mma_si8:
// BYTES16: v_mfma_i32_16x16x16{{_?}}i8
// BYTES32: v_mfma_i32_16x16x32{{_?}}i8
// WMMA-LABEL: mma_f16:
// WMMA: v_wmma_f32_16x16x16_f16
// WMMA-LABEL: mma_si8:
// WMMA: v_wmma_i32_16x16x16_iu8

// REFUSED: refused.mlir:5:{{.*}}cannot lower gpu.subgroup_mma_load_matrix: its memory has elements of f32, and the matrix those of f16 (and 2 more diagnostics)
// UNSIGNED: unsigned.mlir:4:{{.*}}cannot lower gpu.subgroup_mma_load_matrix: no matrices of type !gpu.mma_matrix<16x16xui8, "AOp">: gfx942 multiplies 16x16x16 of f16
// WAVE64: one.mlir:4:{{.*}}gfx1100 multiplies matrices in waves of 32 lanes; leave out wave-size=64
// NONE: one.mlir:4:{{.*}}gfx1030 has no instructions for them that are known here
// DOUBLE: double.mlir:4:{{.*}}gfx1201 multiplies 16x16x16 of f16 into f16 or f32, and 16x16x16 of si8 or ui8 into i32

//--- refused.mlir
gpu.module @kernels {
  gpu.func @k(%f: memref<16x16xf32>, %h: memref<16x16xf16>) kernel {
    %0 = arith.constant 0 : index
    %m = gpu.subgroup_mma_load_matrix %h[%0, %0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
    %c = gpu.subgroup_mma_load_matrix %f[%0, %0] {leadDimension = 16 : index} : memref<16x16xf32> -> !gpu.mma_matrix<16x16xf16, "COp">
    %d = gpu.subgroup_mma_elementwise addi %c, %c : (!gpu.mma_matrix<16x16xf16, "COp">, !gpu.mma_matrix<16x16xf16, "COp">) -> !gpu.mma_matrix<16x16xf16, "COp">
    %e = gpu.subgroup_mma_elementwise extf %m : (!gpu.mma_matrix<16x16xf16, "AOp">) -> !gpu.mma_matrix<16x16xf32, "COp">
    gpu.subgroup_mma_store_matrix %d, %h[%0, %0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf16, "COp">, memref<16x16xf16>
    gpu.subgroup_mma_store_matrix %e, %f[%0, %0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
    gpu.return
  }
}

//--- unsigned.mlir
gpu.module @kernels {
  gpu.func @k(%b: memref<16x16xi8>, %i: memref<16x16xi32>) kernel {
    %0 = arith.constant 0 : index
    %a = gpu.subgroup_mma_load_matrix %b[%0, %0] {leadDimension = 16 : index} : memref<16x16xi8> -> !gpu.mma_matrix<16x16xui8, "AOp">
    %t = gpu.subgroup_mma_load_matrix %b[%0, %0] {leadDimension = 16 : index} : memref<16x16xi8> -> !gpu.mma_matrix<16x16xui8, "BOp">
    %c = gpu.subgroup_mma_load_matrix %i[%0, %0] {leadDimension = 16 : index} : memref<16x16xi32> -> !gpu.mma_matrix<16x16xi32, "COp">
    %d = gpu.subgroup_mma_compute %a, %t, %c : !gpu.mma_matrix<16x16xui8, "AOp">, !gpu.mma_matrix<16x16xui8, "BOp"> -> !gpu.mma_matrix<16x16xi32, "COp">
    gpu.subgroup_mma_store_matrix %d, %i[%0, %0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xi32, "COp">, memref<16x16xi32>
    gpu.return
  }
}

//--- one.mlir
gpu.module @kernels {
  gpu.func @k(%h: memref<16x16xf16>) kernel {
    %0 = arith.constant 0 : index
    %m = gpu.subgroup_mma_load_matrix %h[%0, %0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "COp">
    gpu.subgroup_mma_store_matrix %m, %h[%0, %0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf16, "COp">, memref<16x16xf16>
    gpu.return
  }
}

//--- double.mlir
gpu.module @kernels {
  gpu.func @k(%h: memref<16x16xf64>) kernel {
    %0 = arith.constant 0 : index
    %m = gpu.subgroup_mma_load_matrix %h[%0, %0] {leadDimension = 16 : index} : memref<16x16xf64> -> !gpu.mma_matrix<16x16xf64, "COp">
    gpu.subgroup_mma_store_matrix %m, %h[%0, %0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf64, "COp">, memref<16x16xf64>
    gpu.return
  }
}
