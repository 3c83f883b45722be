// W8: `daz` and `fast` reach the mode register and the instructions, not only AMD's control constants.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa l=%S/../Inputs/oclc.ll" | %text | FileCheck %s --check-prefix=PLAIN
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 daz=true format=isa l=%S/../Inputs/oclc.ll" | %text | FileCheck %s --check-prefix=DAZ
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 fast=true format=isa l=%S/../Inputs/oclc.ll" | %text | FileCheck %s --check-prefix=FAST
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 fast=true prec-sqrt=true ftz=false format=isa l=%S/../Inputs/oclc.ll" | %text | FileCheck %s --check-prefix=SPECIFIC
// In an attribute, upstream's spelling:
// RUN: sed 's/@m {/@m [#rocdl.target<chip = "gfx942", flags = {daz}>] {/' %s | gpulower-opt --gpulower-serialize="format=isa l=%S/../Inputs/oclc.ll" | %text | FileCheck %s --check-prefix=DAZ
// RUN: sed 's/@m {/@m [#rocdl.target<chip = "gfx942", flags = {unsafe_math, finite_only, daz, unsafe_sqrt}>] {/' %s | gpulower-opt --gpulower-serialize="format=isa l=%S/../Inputs/oclc.ll" | %text | FileCheck %s --check-prefix=FAST

// The constants: finite only, unsafe math, flushed denormals, correctly rounded roots, as bits 3 to 0.

// PLAIN-DAG: v_div_fixup_f32
// PLAIN-DAG: v_mov_b32_e32 v{{[0-9]+}}, 1{{$}}
// PLAIN: .amdhsa_float_denorm_mode_32 3

// DAZ-DAG: v_div_fixup_f32
// DAZ-DAG: v_mov_b32_e32 v{{[0-9]+}}, 3{{$}}
// DAZ: .amdhsa_float_denorm_mode_32 0

// FAST-NOT: v_div_fixup_f32
// FAST-DAG: v_rcp_f32
// FAST-DAG: v_mov_b32_e32 v{{[0-9]+}}, 14{{$}}
// FAST-NOT: v_div_fixup_f32
// FAST: .amdhsa_float_denorm_mode_32 0

// SPECIFIC: v_mov_b32_e32 v{{[0-9]+}}, 13{{$}}
// SPECIFIC: .amdhsa_float_denorm_mode_32 3
gpu.module @m {
  func.func private @math() -> i32
  gpu.func @k(%x: f32, %y: f32, %out: memref<f32>, %constants: memref<i32>) kernel {
    %0 = arith.divf %x, %y : f32
    memref.store %0, %out[] : memref<f32>
    %1 = func.call @math() : () -> i32
    memref.store %1, %constants[] : memref<i32>
    gpu.return
  }
}
