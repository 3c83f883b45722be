// Each option acts on NVIDIA's code.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa" | %text | FileCheck %s --check-prefixes=EXACT,FUSED,OPTIMISED
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa fp-contract=on" | %text | FileCheck %s --check-prefixes=EXACT,FUSED
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa fp-contract=off" | %text | FileCheck %s --check-prefix=NEVER
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa fp-contract=fast" | %text | FileCheck %s --check-prefix=EVERYWHERE
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa prec-sqrt=false" | %text | FileCheck %s --check-prefix=SQRT
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa prec-div=false" | %text | FileCheck %s --check-prefix=DIV
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa ftz=true" | %text | FileCheck %s --check-prefix=FTZ
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa daz=true" | %text | FileCheck %s --check-prefix=FTZ
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa fast=true" | %text | FileCheck %s --check-prefix=FAST
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa fast=true prec-div=true prec-sqrt=true ftz=false" | %text | FileCheck %s --check-prefix=SPECIFIC
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa max-registers=24" | %text | FileCheck %s --check-prefix=REGISTERS
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa ptx=7.8" | %text | FileCheck %s --check-prefix=PTX
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa O=0" | %text | FileCheck %s --check-prefix=O0
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa O=1" | %text | FileCheck %s --check-prefix=EXACT
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa O=2" | %text | FileCheck %s --check-prefix=EXACT
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa index-bitwidth=32" | %text | FileCheck %s --check-prefix=INDEX32
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa bare-pointers=true" | %text | FileCheck %s --check-prefix=BARE

// OPTIMISED-NOT: helper
// EXACT: div.rn.f32
// EXACT: sqrt.rn.f32
// FUSED: fma.rn.f32
// FUSED: mul.rn.f32
// FUSED-NEXT: add.rn.f32
// NEVER-NOT: fma
// NEVER: mul.rn.f32
// NEVER: add.rn.f32
// NEVER-NOT: fma
// EVERYWHERE: fma.rn.f32
// EVERYWHERE-NEXT: fma.rn.f32
// SQRT: div.rn.f32
// SQRT: sqrt.approx.f32
// DIV: div.{{approx|full}}.f32
// DIV: sqrt.rn.f32
// FTZ: div.rn.ftz.f32
// FTZ: sqrt.rn.ftz.f32
// FTZ: fma.rn.ftz.f32
// FAST: sqrt.approx.ftz.f32
// FAST: div.approx.ftz.f32
// SPECIFIC-NOT: .ftz
// SPECIFIC-DAG: sqrt.rn.f32
// SPECIFIC-DAG: div.rn.f32
// SPECIFIC-NOT: .ftz
// REGISTERS: .maxnreg 24
// PTX: .version 7.8
// O0: .func {{.*}}helper
// O0: call.uni{{.*}}helper
// INDEX32: .param .u32 k_param_4
// BARE: .param .u64 .ptr .align 1 k_param_2{{$}}
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
