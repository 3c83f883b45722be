// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN
// RUN: gpulower compile %s --target sm_90,gfx942 --emit llvm -o %t/llvm/
// RUN: gpulower compile %s --target sm_90,gfx942 --emit bitcode -o %t/bitcode/
// RUN: gpulower compile %s --target gfx942 --emit object -o %t/library.o
// RUN: gpulower compile %s --target gfx942 --emit hsaco -o %t/library.hsaco

// A module without a kernel is a library: all of its functions stay.

gpu.module @library {
  // PTX: .visible .func {{.*}}twice(
  // GCN: .globl twice
  func.func @twice(%a: f32) -> f32 {
    %b = arith.addf %a, %a : f32
    return %b : f32
  }
}
