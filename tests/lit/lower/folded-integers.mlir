// Integer operations that MLIR's own canonicalization folds to something else (MLIR 22): a cast of an index to a narrow type and back is
// not the index; what two additions of constants say about overflow need not hold for one; nor what a truncation of a truncation says.

// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpu.module(gpulower-canonicalize))' | FileCheck %s --check-prefix=MLIR

gpu.module @m {
  // CHECK-LABEL: .entry narrow(
  // CHECK: {{and.b32|and.b64|cvt.u64.u8|ld.param.b8|cvt.u16.u8}}
  // MLIR-LABEL: gpu.func @narrow
  // MLIR: arith.index_castui %{{.*}} : index to i8
  // MLIR: arith.index_castui %{{.*}} : i8 to index
  gpu.func @narrow(%to: memref<?xindex>, %x: index) kernel {
    %zero = arith.constant 0 : index
    %byte = arith.index_castui %x : index to i8
    %back = arith.index_castui %byte : i8 to index
    memref.store %back, %to[%zero] : memref<?xindex>
    gpu.return
  }

  // MLIR-LABEL: gpu.func @signed
  // MLIR: arith.index_cast %{{.*}} : index to i32
  // MLIR: arith.index_cast %{{.*}} : i32 to index
  gpu.func @signed(%to: memref<?xindex>, %x: index) kernel {
    %zero = arith.constant 0 : index
    %word = arith.index_cast %x : index to i32
    %back = arith.index_cast %word : i32 to index
    memref.store %back, %to[%zero] : memref<?xindex>
    gpu.return
  }

  // Nothing is lost on the way.
  // MLIR-LABEL: gpu.func @wide
  // MLIR-NOT: index_cast
  // MLIR: gpu.return
  gpu.func @wide(%to: memref<?xi32>, %x: i32) kernel {
    %zero = arith.constant 0 : index
    %index = arith.index_cast %x : i32 to index
    %back = arith.index_cast %index : index to i32
    memref.store %back, %to[%zero] : memref<?xi32>
    gpu.return
  }

  // MLIR-LABEL: gpu.func @minus_plus
  // MLIR: arith.addi %{{.*}}, %c-2_i32 : i32
  gpu.func @minus_plus(%to: memref<?xi32>, %x: i32) kernel {
    %zero = arith.constant 0 : index
    %five = arith.constant 5 : i32
    %three = arith.constant 3 : i32
    %less = arith.subi %x, %five overflow<nuw> : i32
    %sum = arith.addi %less, %three overflow<nuw> : i32
    memref.store %sum, %to[%zero] : memref<?xi32>
    gpu.return
  }

  // MLIR-LABEL: gpu.func @plus_plus
  // MLIR: arith.addi %{{.*}}, %c8_i32 overflow<nsw, nuw> : i32
  gpu.func @plus_plus(%to: memref<?xi32>, %x: i32) kernel {
    %zero = arith.constant 0 : index
    %five = arith.constant 5 : i32
    %three = arith.constant 3 : i32
    %more = arith.addi %x, %five overflow<nsw, nuw> : i32
    %sum = arith.addi %more, %three overflow<nsw, nuw> : i32
    memref.store %sum, %to[%zero] : memref<?xi32>
    gpu.return
  }

  // MLIR-LABEL: gpu.func @twice
  // MLIR: arith.trunci %{{[a-z0-9_]+}} : i32 to i8
  gpu.func @twice(%to: memref<?xi8>, %x: i32) kernel {
    %zero = arith.constant 0 : index
    %half = arith.trunci %x : i32 to i16
    %byte = arith.trunci %half overflow<nuw> : i16 to i8
    memref.store %byte, %to[%zero] : memref<?xi8>
    gpu.return
  }
}
