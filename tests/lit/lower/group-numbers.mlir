// On AMD a number of a work group is extended without its sign: HIP's grids have fewer than 2^31 work groups in each direction.

// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=ASM

// CHECK: range(i32 0, 2147483647) i32 @llvm.amdgcn.workgroup.id.x()
// CHECK: range(i32 0, 4) i32 @llvm.amdgcn.workgroup.id.y()
// CHECK: zext nneg i32
// ASM-LABEL: ids:
// ASM-NOT: s_ashr_i32
// ASM: s_endpgm
gpu.module @kernels {
  gpu.func @ids(%to: memref<?x?xindex>) kernel {
    %x = gpu.block_id x
    %y = gpu.block_id y upper_bound 4
    memref.store %x, %to[%y, %x] : memref<?x?xindex>
    gpu.return
  }
}
