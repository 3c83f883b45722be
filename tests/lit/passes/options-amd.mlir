// Each option acts on AMD's code.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa" | %text | FileCheck %s --check-prefixes=EXACT,FUSED,PLAIN
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa fp-contract=off" | %text | FileCheck %s --check-prefixes=EXACT,NEVER
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa fp-contract=fast" | %text | FileCheck %s --check-prefixes=EXACT,EVERYWHERE
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa prec-sqrt=false" | %text | FileCheck %s --check-prefix=SQRT
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa prec-div=false" | %text | FileCheck %s --check-prefix=DIV
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa ftz=true" | %text | FileCheck %s --check-prefix=FTZ
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa fast=true" | %text | FileCheck %s --check-prefix=FAST
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa fast=true prec-div=true prec-sqrt=true ftz=false" | %text | FileCheck %s --check-prefix=SPECIFIC
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa max-registers=5" | %text | FileCheck %s --check-prefix=REGISTERS
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa O=0" | %text | FileCheck %s --check-prefix=O0
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx1100 format=isa wave-size=64" | %text | FileCheck %s --check-prefix=WAVE64
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx1100 format=isa" | %text | FileCheck %s --check-prefix=WAVE32
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa bare-pointers=true" | %text | FileCheck %s --check-prefix=BARE

// EXACT: v_div_fixup_f32
// FUSED: v_fma_f32 v{{[0-9]+}}, v{{[0-9]+}}, v{{[0-9]+}}, s{{[0-9]+$}}
// FUSED-NEXT: v_mul_f32
// FUSED-NEXT: v_add_f32
// PLAIN: .amdhsa_float_denorm_mode_32 3
// NEVER: v_add_f32_e32 v{{[0-9]+}}, s
// NEVER-NEXT: v_mul_f32
// NEVER-NEXT: v_add_f32
// EVERYWHERE: v_fma_f32 v{{[0-9]+}}, v{{[0-9]+}}, v{{[0-9]+}}, s{{[0-9]+$}}
// EVERYWHERE-NEXT: v_fma_f32
// EVERYWHERE-NEXT: global_store
// SQRT-DAG: v_div_fixup_f32
// SQRT-DAG: v_sqrt_f32
// SQRT: .amdhsa_next_free_vgpr
// DIV-NOT: v_div_fixup_f32
// DIV: v_rcp_f32
// DIV-NOT: v_div_fixup_f32
// FTZ: .amdhsa_float_denorm_mode_32 0
// FAST-NOT: v_div_fixup_f32
// FAST: v_rcp_f32
// FAST-NOT: v_div_fixup_f32
// FAST: .amdhsa_float_denorm_mode_32 0
// SPECIFIC: v_div_fixup_f32
// SPECIFIC: .amdhsa_float_denorm_mode_32 3
// REGISTERS: .vgpr_count: {{[1-5]$}}
// O0: helper:
// O0: s_swappc_b64
// WAVE64: .wavefront_size: 64
// WAVE32: .wavefront_size: 32
// BARE: .kernarg_segment_size: 16
gpu.module @m {
  func.func private @helper(%x: f32) -> f32 {
    %0 = math.sqrt %x : f32
    return %0 : f32
  }
  gpu.func @k(%x: f32, %y: f32, %out: memref<4xf32>) kernel {
    %i = gpu.thread_id x
    %0 = arith.divf %x, %y : f32
    %1 = func.call @helper(%x) : (f32) -> f32
    %2 = arith.mulf %0, %1 fastmath<contract> : f32
    %3 = arith.addf %2, %y fastmath<contract> : f32
    %4 = arith.mulf %3, %3 : f32
    %5 = arith.addf %4, %x : f32
    memref.store %5, %out[%i] : memref<4xf32>
    gpu.return
  }
}
