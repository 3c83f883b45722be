// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit hsaco -o %t.hsaco
// RUN: %llvm/llvm-readelf --symbols %t.hsaco | FileCheck %s --check-prefix=HSACO

// Operands of fewer bits than the sum: MLIR widens those of a product of two matrices alone.
// HSACO-DAG: batch.kd
// HSACO-DAG: masked.kd
// HSACO-DAG: doubles.kd
#a = affine_map<(n, i, j, k) -> (n, i, k)>
#b = affine_map<(n, i, j, k) -> (n, k, j)>
#c = affine_map<(n, i, j, k) -> (n, i, j)>
#all = affine_map<(i) -> (i)>
#none = affine_map<(i) -> ()>
gpu.module @kernels {
  // PTX-LABEL: .entry batch(
  // PTX: cvt.f32.f16
  gpu.func @batch(%x: memref<?xvector<2x2x4xf16>>, %y: memref<?xvector<2x4x2xf16>>, %z: memref<?xvector<2x2x2xf32>>, %i: index) kernel {
    %a = memref.load %x[%i] : memref<?xvector<2x2x4xf16>>
    %b = memref.load %y[%i] : memref<?xvector<2x4x2xf16>>
    %c = memref.load %z[%i] : memref<?xvector<2x2x2xf32>>
    %d = vector.contract {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "parallel", "reduction"], kind = #vector.kind<add>}
        %a, %b, %c : vector<2x2x4xf16>, vector<2x4x2xf16> into vector<2x2x2xf32>
    memref.store %d, %z[%i] : memref<?xvector<2x2x2xf32>>
    gpu.return
  }

  // PTX-LABEL: .entry masked(
  // PTX: cvt.s32.s8
  gpu.func @masked(%x: memref<?xvector<4xi8>>, %z: memref<?xi32>, %i: index, %n: index) kernel {
    %a = memref.load %x[%i] : memref<?xvector<4xi8>>
    %c = memref.load %z[%i] : memref<?xi32>
    %mask = vector.create_mask %n : vector<4xi1>
    %d = vector.mask %mask {
      vector.contract {indexing_maps = [#all, #all, #none], iterator_types = ["reduction"], kind = #vector.kind<add>} %a, %a, %c
          : vector<4xi8>, vector<4xi8> into i32
    } : vector<4xi1> -> i32
    memref.store %d, %z[%i] : memref<?xi32>
    gpu.return
  }

  // PTX-LABEL: .entry doubles(
  // PTX: mul.rn.f64
  gpu.func @doubles(%x: memref<?xvector<4xbf16>>, %y: memref<?xvector<4xbf16>>, %z: memref<?xf64>, %i: index) kernel {
    %a = memref.load %x[%i] : memref<?xvector<4xbf16>>
    %b = memref.load %y[%i] : memref<?xvector<4xbf16>>
    %c = memref.load %z[%i] : memref<?xf64>
    %d = vector.contract {indexing_maps = [#all, #all, #none], iterator_types = ["reduction"], kind = #vector.kind<add>} %a, %b, %c
        : vector<4xbf16>, vector<4xbf16> into f64
    memref.store %d, %z[%i] : memref<?xf64>
    gpu.return
  }
}
