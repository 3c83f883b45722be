// W7: `fast` and `ftz` change the PTX, libdevice's part of it included. Upstream's attribute has them and nothing reads
// them.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa" | %text | FileCheck %s --check-prefix=PLAIN
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 ftz=true format=isa" | %text | FileCheck %s --check-prefix=FTZ
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 fast=true format=isa" | %text | FileCheck %s --check-prefix=FAST
// In an attribute, upstream's spelling:
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80", flags = {ftz}>] {/' %s | gpulower-opt --gpulower-serialize=format=isa | %text | FileCheck %s --check-prefix=FTZ
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80", flags = {fast}>] {/' %s | gpulower-opt --gpulower-serialize=format=isa | %text | FileCheck %s --check-prefix=FAST

// PLAIN-NOT: .ftz
// PLAIN: div.rn.f32
// PLAIN-NOT: .ftz
// PLAIN: ex2.approx.ftz.f32
// PLAIN-NOT: .ftz

// FTZ: div.rn.ftz.f32
// FTZ: fma.rn{{(\.sat)?}}.ftz{{(\.sat)?}}.f32
// FTZ: ex2.approx.ftz.f32

// FAST: div.approx.ftz.f32
// FAST-NOT: fma
// FAST: ex2.approx.ftz.f32
gpu.module @m {
  gpu.func @k(%x: f32, %y: f32, %out: memref<f32>) kernel {
    %0 = arith.divf %x, %y : f32
    %1 = math.exp %0 : f32
    memref.store %1, %out[] : memref<f32>
    gpu.return
  }
}
