// RUN: split-file %s %t
// RUN: gpulower compile %t/mfma.mlir --target gfx942 --emit asm -o - | FileCheck %t/mfma.mlir
// RUN: gpulower compile %t/wmma-gfx11.mlir --target gfx1100 --emit asm -o - | FileCheck %t/wmma-gfx11.mlir
// RUN: gpulower compile %t/wmma-gfx12.mlir --target gfx1200 --emit asm -o - | FileCheck %t/wmma-gfx12.mlir
// RUN: gpulower compile %t/wmma.mlir --target sm_80 --emit ptx -o - | FileCheck %t/wmma.mlir
// RUN: gpulower compile %t/mma.mlir --target sm_80 --emit ptx -o - | FileCheck %t/mma.mlir
// RUN: gpulower compile %t/wgmma.mlir --target sm_90a --emit ptx -o - | FileCheck %t/wgmma.mlir

// The matrix instructions of each generation.

//--- mfma.mlir
gpu.module @kernels {
  // CHECK: v_mfma_f32_16x16x4_f32
  gpu.func @mfma(%a: f32, %c: vector<4xf32>, %m: memref<?xvector<4xf32>>) kernel {
    %t = gpu.thread_id x
    %d = amdgpu.mfma 16x16x4 %a * %a + %c blgp = none : f32, f32, vector<4xf32>
    memref.store %d, %m[%t] : memref<?xvector<4xf32>>
    gpu.return
  }
}

//--- wmma-gfx11.mlir
gpu.module @kernels {
  // CHECK: v_wmma_f32_16x16x16_f16
  gpu.func @wmma(%a: vector<16xf16>, %c: vector<8xf32>, %m: memref<?xvector<8xf32>>) kernel {
    %t = gpu.thread_id x
    %d = amdgpu.wmma 16x16x16 %a * %a + %c : vector<16xf16>, vector<16xf16>, vector<8xf32>
    memref.store %d, %m[%t] : memref<?xvector<8xf32>>
    gpu.return
  }
}

//--- wmma-gfx12.mlir
gpu.module @kernels {
  // CHECK: v_wmma_f32_16x16x16_f16
  gpu.func @wmma(%a: vector<8xf16>, %c: vector<8xf32>, %m: memref<?xvector<8xf32>>) kernel {
    %t = gpu.thread_id x
    %d = amdgpu.wmma 16x16x16 %a * %a + %c : vector<8xf16>, vector<8xf16>, vector<8xf32>
    memref.store %d, %m[%t] : memref<?xvector<8xf32>>
    gpu.return
  }
}

//--- wmma.mlir
gpu.module @kernels {
  // The accumulator goes through the loop.
  // CHECK: wmma.load.a.sync
  // CHECK: wmma.mma.sync
  // CHECK: wmma.store.d.sync
  gpu.func @wmma(%a: memref<16x16xf16>, %c: memref<16x16xf32>, %zero: f32, %n: index) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %init = gpu.subgroup_mma_constant_matrix %zero : !gpu.mma_matrix<16x16xf32, "COp">
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (!gpu.mma_matrix<16x16xf32, "COp">) {
      %A = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "AOp">
      %B = gpu.subgroup_mma_load_matrix %a[%c0, %c0] {leadDimension = 16 : index} : memref<16x16xf16> -> !gpu.mma_matrix<16x16xf16, "BOp">
      %next = gpu.subgroup_mma_compute %A, %B, %acc : !gpu.mma_matrix<16x16xf16, "AOp">, !gpu.mma_matrix<16x16xf16, "BOp"> -> !gpu.mma_matrix<16x16xf32, "COp">
      scf.yield %next : !gpu.mma_matrix<16x16xf32, "COp">
    }
    gpu.subgroup_mma_store_matrix %sum, %c[%c0, %c0] {leadDimension = 16 : index} : !gpu.mma_matrix<16x16xf32, "COp">, memref<16x16xf32>
    gpu.return
  }
}

//--- mma.mlir
gpu.module @kernels {
  // CHECK: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
  gpu.func @mma(%a: vector<4x2xf16>, %b: vector<2x2xf16>, %c: vector<2x2xf32>, %m: memref<?xvector<2x2xf32>>) kernel {
    %t = gpu.thread_id x
    %d = nvgpu.mma.sync(%a, %b, %c) {mmaShape = [16, 8, 16]} : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
    memref.store %d, %m[%t] : memref<?xvector<2x2xf32>>
    gpu.return
  }
}

//--- wgmma.mlir
!map_a = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
!map_b = !nvgpu.tensormap.descriptor<tensor = memref<64x64xf16, 3>, swizzle = swizzle_128b, l2promo = none, oob = zero, interleave = none>
gpu.module @kernels {
  // CHECK: wgmma.fence.sync.aligned
  // CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
  // CHECK: wgmma.commit_group.sync.aligned
  // CHECK: wgmma.wait_group.sync.aligned
  gpu.func @wgmma(%map_a: !map_a, %map_b: !map_b, %c: memref<64x64xf32>)
      workgroup(%a: memref<64x64xf16, #gpu.address_space<workgroup>>, %b: memref<64x64xf16, #gpu.address_space<workgroup>>) kernel {
    %da = nvgpu.warpgroup.generate.descriptor %a, %map_a : memref<64x64xf16, #gpu.address_space<workgroup>>, !map_a -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>
    %db = nvgpu.warpgroup.generate.descriptor %b, %map_b : memref<64x64xf16, #gpu.address_space<workgroup>>, !map_b -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>
    %init = nvgpu.warpgroup.mma.init.accumulator -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
    %sum = nvgpu.warpgroup.mma %da, %db, %init {transposeB} : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
    nvgpu.warpgroup.mma.store %sum, %c : !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> to memref<64x64xf32>
    gpu.return
  }

  // The accumulator goes through the loop, as it does in every kernel that has more than one tile.
  // CHECK-LABEL: .entry loop(
  // CHECK: wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16
  // CHECK: bra
  gpu.func @loop(%map_a: !map_a, %map_b: !map_b, %c: memref<64x64xf32>, %n: index)
      workgroup(%a: memref<64x64xf16, #gpu.address_space<workgroup>>, %b: memref<64x64xf16, #gpu.address_space<workgroup>>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %init = nvgpu.warpgroup.mma.init.accumulator -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (!nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>) {
      %da = nvgpu.warpgroup.generate.descriptor %a, %map_a : memref<64x64xf16, #gpu.address_space<workgroup>>, !map_a -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>
      %db = nvgpu.warpgroup.generate.descriptor %b, %map_b : memref<64x64xf16, #gpu.address_space<workgroup>>, !map_b -> !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>
      %next = nvgpu.warpgroup.mma %da, %db, %acc {transposeB} : !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.descriptor<tensor = memref<64x64xf16, #gpu.address_space<workgroup>>>, !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> -> !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
      scf.yield %next : !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>>
    }
    nvgpu.warpgroup.mma.store %sum, %c : !nvgpu.warpgroup.accumulator<fragmented = vector<64x64xf32>> to memref<64x64xf32>
    gpu.return
  }
}
