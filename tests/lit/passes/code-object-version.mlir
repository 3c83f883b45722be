// The code object version is the same in the module flag, the control constant, the assembly and the ELF header, whose ABI
// version counts from 2 for version 4.

// RUN: rm -rf %t
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 l=%S/../Inputs/oclc.ll format=bin code-object-version=4" | %objects %t/4
// RUN: llvm-readelf -h %t/4/0 | FileCheck %s --check-prefix=ELF4
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 l=%S/../Inputs/oclc.ll format=isa code-object-version=4" | %text | FileCheck %s --check-prefix=ASM4
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 l=%S/../Inputs/oclc.ll format=bin" | %objects %t/5
// RUN: llvm-readelf -h %t/5/0 | FileCheck %s --check-prefix=ELF5
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 l=%S/../Inputs/oclc.ll format=isa" | %text | FileCheck %s --check-prefix=ASM5
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 l=%S/../Inputs/oclc.ll format=bin code-object-version=6" | %objects %t/6
// RUN: llvm-readelf -h %t/6/0 | FileCheck %s --check-prefix=ELF6
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 l=%S/../Inputs/oclc.ll format=isa code-object-version=6" | %text | FileCheck %s --check-prefix=ASM6
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx9-4-generic l=%S/../Inputs/oclc.ll format=isa" | %text | FileCheck %s --check-prefix=ASM6
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 l=%S/../Inputs/oclc.ll format=llvm code-object-version=6" | %objects %t/llvm
// RUN: llvm-dis %t/llvm/0 -o - | FileCheck %s --check-prefix=FLAG6
// In an attribute of upstream's, `abi` says it, but for its default of 600, which more loaders refuse than take:
// RUN: sed 's/@m {/@m [#rocdl.target<chip = "gfx942", abi = "400">] {/' %s | gpulower-opt --gpulower-serialize="l=%S/../Inputs/oclc.ll format=isa" | %text | FileCheck %s --check-prefix=ASM4

// ELF4: ABI Version: 2
// ASM4: .amdhsa_code_object_version 4
// ASM4: v_mov_b32_e32 v{{[0-9]+}}, 0x190{{$}}
// ELF5: ABI Version: 3
// ASM5: .amdhsa_code_object_version 5
// ASM5: v_mov_b32_e32 v{{[0-9]+}}, 0x1f4{{$}}
// ELF6: ABI Version: 4
// ASM6: .amdhsa_code_object_version 6
// ASM6: v_mov_b32_e32 v{{[0-9]+}}, 0x258{{$}}
// FLAG6: !{i32 1, !"amdhsa_code_object_version", i32 600}
gpu.module @m {
  func.func private @abi_version() -> i32
  gpu.func @k(%out: memref<i32>) kernel {
    %0 = func.call @abi_version() : () -> i32
    memref.store %0, %out[] : memref<i32>
    gpu.return
  }
}
