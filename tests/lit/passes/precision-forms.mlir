// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-to-binary{targets=sm_90 prec-div=false format=isa})' | %text | FileCheck %s --check-prefix=FULL
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-to-binary{targets=sm_90 prec-div=false ftz=true format=isa})' | %text | FileCheck %s --check-prefix=FULL-FTZ
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-to-binary{targets=sm_90 fast=true format=isa})' | %text | FileCheck %s --check-prefix=FAST
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-to-binary{targets=sm_90 fast=true prec-div=true format=isa})' | %text | FileCheck %s --check-prefix=FAST-EXACT
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-to-binary{targets=sm_90 fp-contract=off format=isa})' | %text | FileCheck %s --check-prefix=SPLIT

// `prec-div=false` alone means what nvcc means by it, 2 ulp over the full range; div.approx gives 0 for large divisors.
// FULL: div.full.f32
// FULL-FTZ: div.full.ftz.f32
// FAST: div.approx.ftz.f32
// FAST-EXACT: div.rn.ftz.f32

// A multiplication and an addition that may be fused are two instructions with fp-contract=off.
// SPLIT: mul.rn.f32
// SPLIT-NEXT: add.rn.f32
gpu.module @kernels {
  llvm.func @divide(%a: f32, %b: f32, %out: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %q = llvm.fdiv %a, %b : f32
    %s = llvm.intr.fmuladd(%q, %a, %b) : (f32, f32, f32) -> f32
    llvm.store %s, %out : f32, !llvm.ptr
    llvm.return
  }
}
