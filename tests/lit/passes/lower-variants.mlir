// A module is lowered once for each group of targets for which lowering makes a difference, and all objects end in one
// binary, in the order of the targets.

// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_80,gfx942,sm_90,gfx1100 --gpulower-lower -o %t.mlir
// RUN: FileCheck %s --input-file %t.mlir --check-prefix=LOWERED
// RUN: gpulower-opt %t.mlir --gpulower-serialize=format=isa | FileCheck %s
// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_80,gfx942,sm_90,gfx1100 --gpulower-serialize=format=isa -o %t.direct
// RUN: gpulower-opt %t.mlir --gpulower-serialize=format=isa -o %t.staged
// RUN: cmp %t.direct %t.staged
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942,sm_90,gfx1100 format=isa" | FileCheck %s
// Agreement is one module, under its own name and without marks:
// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_80,sm_90 --gpulower-lower | FileCheck %s --check-prefix=ONE

// LOWERED: gpu.module @m [#nvvm.target<O = 3, chip = "sm_80">, #nvvm.target<O = 3, chip = "sm_90">] attributes {gpulower.target_positions = array<i64: 0, 2>}
// LOWERED: nvvm.read.ptx.sreg.tid.x
// LOWERED: gpu.module @m_variant_1 [#rocdl.target<O = 3, chip = "gfx942"{{.*}}>, #rocdl.target<O = 3, chip = "gfx1100"{{.*}}>] attributes {gpulower.target_positions = array<i64: 1, 3>, gpulower.variant_of = "m"
// LOWERED: rocdl.workitem.id.x
// LOWERED-NOT: gpu.func

// CHECK: gpu.binary @m {{ *}}[
// CHECK-SAME: .target sm_80
// CHECK-SAME: .amdgcn_target \22amdgcn-amd-amdhsa--gfx942\22
// CHECK-SAME: .target sm_90
// CHECK-SAME: .amdgcn_target \22amdgcn-amd-amdhsa--gfx1100\22
// CHECK-NOT: gpu.binary

// ONE: gpu.module @m [#nvvm.target<O = 3, chip = "sm_80">, #nvvm.target<O = 3, chip = "sm_90">] {
// ONE-NOT: gpu.module
// ONE-NOT: gpulower.
gpu.module @m {
  gpu.func @k(%x: i32, %out: memref<?xi32>) kernel {
    %i = gpu.thread_id x
    %width = arith.constant 32 : i32
    %offset = arith.constant 1 : i32
    %0, %valid = gpu.shuffle xor %x, %offset, %width : i32
    %size = gpu.subgroup_size : index
    %1 = arith.index_cast %size : index to i32
    %2 = arith.addi %0, %1 : i32
    memref.store %2, %out[%i] : memref<?xi32>
    gpu.return
  }
}
