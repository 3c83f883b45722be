// RUN: rm -rf %t
// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target sm_90 --emit asm -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN
// RUN: gpulower compile %s --target sm_90,gfx942 --emit mlir -o %t/mlir/
// RUN: gpulower compile %s --target sm_90,gfx942 --emit llvm -o %t/llvm/
// RUN: gpulower compile %s --target sm_90,gfx942 --emit bitcode -o %t/bitcode/
// RUN: gpulower compile %s --target sm_90,gfx942 --emit object -o %t/object/
// RUN: llvm-nm-22 %t/object/library.gfx942.o | FileCheck %s --check-prefix=SYMBOLS
// RUN: llvm-readelf-22 -hs %t/object/library.sm_90.o | FileCheck %s --check-prefix=LINKABLE
// RUN: gpulower compile %s --target gfx942 --emit hsaco -o %t/library.hsaco
// RUN: llvm-nm-22 %t/library.hsaco | FileCheck %s --check-prefix=SYMBOLS
// RUN: gpulower compile %s --target gfx942 --emit bundle -o %t/bundle/
// RUN: gpulower compile %s --target sm_90,gfx942 --emit binary -o %t/binary/
// RUN: gpulower compile %s --target sm_90 --emit cubin -o %t/library.cubin
// RUN: llvm-readelf-22 -hs %t/library.cubin | FileCheck %s --check-prefix=LINKABLE
// RUN: gpulower compile %s --target sm_90 --emit fatbin -o %t/fatbin/
// RUN: gpulower compile %s --target sm_90,gfx942 --emit offload -o %t/offload/

// A module without a kernel is a library: all of its functions stay, in whatever it becomes. ptxas leaves a function that
// is no kernel out of an executable cubin, and says nothing; so it is a relocatable one. Others link it:

// RUN: gpulower compile %S/../Inputs/uses_library.mlir --target sm_90 --link-object %t/library.cubin --emit cubin -o %t/linked.cubin
// RUN: gpulower compile %S/../Inputs/uses_library.mlir --target sm_90 --link-object %t/fatbin/library.fatbin --emit cubin -o %t/linked2.cubin
// RUN: gpulower compile %S/../Inputs/uses_library.mlir --target gfx942 --link-object %t/object/library.gfx942.o --emit hsaco -o %t/linked.hsaco

// SYMBOLS: T twice
// LINKABLE: Type: REL
// LINKABLE: FUNC {{.*}} twice
gpu.module @library {
  // PTX: .visible .func {{.*}}twice(
  // GCN: .globl twice
  func.func @twice(%a: f32) -> f32 {
    %b = arith.addf %a, %a : f32
    return %b : f32
  }
}
