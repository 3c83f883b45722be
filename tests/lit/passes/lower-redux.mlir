// What a chip has decides: a reduction over a warp is one instruction from sm_80 on, and shuffles before.

// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_75,sm_80,sm_90 --gpulower-lower | FileCheck %s --check-prefix=LOWERED
// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_75,sm_80,sm_90 --gpulower-lower --gpulower-serialize=format=isa | FileCheck %s

// LOWERED: gpu.module @m [#nvvm.target<O = 3, chip = "sm_75">] attributes {gpulower.target_positions = array<i64: 0>}
// LOWERED-NOT: nvvm.redux
// LOWERED: gpu.module @m_variant_1 [#nvvm.target<O = 3, chip = "sm_80">, #nvvm.target<O = 3, chip = "sm_90">]
// LOWERED: nvvm.redux

// CHECK: gpu.binary @m
// CHECK-SAME: .target sm_75
// CHECK-SAME: shfl.sync
// CHECK-SAME: .target sm_80
// CHECK-SAME: redux.sync.add.s32
// CHECK-SAME: .target sm_90
// CHECK-SAME: redux.sync.add.s32
gpu.module @m {
  gpu.func @k(%x: i32, %out: memref<i32>) kernel {
    %0 = gpu.subgroup_reduce add %x uniform : (i32) -> i32
    memref.store %0, %out[] : memref<i32>
    gpu.return
  }
}
