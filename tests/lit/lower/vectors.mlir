// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit hsaco -o %t.hsaco
// RUN: %llvm/llvm-readelf --symbols %t.hsaco | FileCheck %s --check-prefix=HSACO

// HSACO-DAG: contracts.kd
// HSACO-DAG: masks.kd
// HSACO-DAG: reduces.kd
// HSACO-DAG: transfers.kd
gpu.module @kernels {
  // An alignment that is stated makes one access of four elements.
  // PTX-LABEL: .entry transfers(
  // PTX: ld{{.*}}.global.v4.b32
  gpu.func @transfers(%m: memref<?xf32>, %mm: memref<?x?xf32>, %i: index, %pad: f32)
      workgroup(%w: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %a = vector.load %m[%i] {alignment = 16 : i64} : memref<?xf32>, vector<4xf32>
    vector.store %a, %w[%i] : memref<64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    gpu.barrier
    %b = vector.transfer_read %w[%i], %pad : memref<64xf32, #gpu.address_space<workgroup>>, vector<4xf32>
    vector.transfer_write %b, %m[%i] : vector<4xf32>, memref<?xf32>
    %c = vector.transfer_read %mm[%i, %i], %pad : memref<?x?xf32>, vector<4x4xf32>
    vector.transfer_write %c, %mm[%i, %i] : vector<4x4xf32>, memref<?x?xf32>
    gpu.return
  }

  // PTX-LABEL: .entry masks(
  gpu.func @masks(%m: memref<?xf32>, %i: index, %n: index, %pad: f32) kernel {
    %mask = vector.create_mask %n : vector<4xi1>
    %a = vector.mask %mask { vector.transfer_read %m[%i], %pad : memref<?xf32>, vector<4xf32> } : vector<4xi1> -> vector<4xf32>
    %b = vector.maskedload %m[%i], %mask, %a : memref<?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
    vector.compressstore %m[%i], %mask, %b : memref<?xf32>, vector<4xi1>, vector<4xf32>
    gpu.return
  }

  // PTX-LABEL: .entry reduces(
  gpu.func @reduces(%m: memref<?xvector<4xf32>>, %v: memref<?xvector<4x4xf32>>, %i: index) kernel {
    %a = memref.load %v[%i] : memref<?xvector<4x4xf32>>
    %init = memref.load %m[%i] : memref<?xvector<4xf32>>
    %b = vector.multi_reduction <add>, %a, %init [1] : vector<4x4xf32> to vector<4xf32>
    %c, %d = vector.scan <mul>, %a, %b {inclusive = true, reduction_dim = 0} : vector<4x4xf32>, vector<4xf32>
    memref.store %d, %m[%i] : memref<?xvector<4xf32>>
    gpu.return
  }

  // PTX-LABEL: .entry contracts(
  // PTX: mul.rn.f32
  // PTX: add.rn.f32
  gpu.func @contracts(%v: memref<?xvector<4x4xf32>>, %i: index) kernel {
    %a = memref.load %v[%i] : memref<?xvector<4x4xf32>>
    %b = vector.contract {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %a, %a : vector<4x4xf32>, vector<4x4xf32> into vector<4x4xf32>
    memref.store %b, %v[%i] : memref<?xvector<4x4xf32>>
    gpu.return
  }
}
