; Nothing outside can use what is internal: nothing would be left, in any format. LLVM writes an empty file, and says nothing.

; RUN: sed -e 's/TRIPLE/nvptx64-nvidia-cuda/' %s > %t.nv.ll
; RUN: sed -e 's/TRIPLE/amdgcn-amd-amdhsa/' %s > %t.amd.ll
; RUN: llvm-as-22 %t.nv.ll -o %t.nv.bc
; RUN: not gpulower compile %t.nv.ll --target sm_90 --emit ptx -o - 2>&1 | FileCheck %s
; RUN: not gpulower compile %t.nv.bc --target sm_90 --emit cubin -o %t.cubin 2>&1 | FileCheck %s
; RUN: not gpulower compile %t.nv.ll --target sm_90 --emit llvm -o - 2>&1 | FileCheck %s
; RUN: not gpulower compile %t.nv.ll --target sm_90 --emit fatbin -o %t.fatbin 2>&1 | FileCheck %s
; RUN: not gpulower compile %t.amd.ll --target gfx942 --emit hsaco -o %t.hsaco 2>&1 | FileCheck %s
; RUN: not gpulower compile %t.amd.ll --target gfx942 --emit asm -o - 2>&1 | FileCheck %s

; MLIR that is in LLVM's dialect already
; RUN: mlir-translate-22 --import-llvm %t.nv.ll | sed -e 's/module attributes {.*} {/gpu.module @m {/' > %t.mlir
; RUN: not gpulower compile %t.mlir --target sm_90 --emit ptx -o - 2>&1 | FileCheck %s

; What is weak others may use: it stays.
; RUN: sed -e 's/internal i32/weak_odr i32/' %t.nv.ll | gpulower compile - --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=WEAK
; RUN: sed -e 's/internal i32/weak_odr i32/' %t.amd.ll | gpulower compile - --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=WEAK-AMD

; CHECK: error: link, {{.*}}: nothing would be left of the module: it has no kernel, and nothing else may use what it defines (
; CHECK-SAME: helper: internal, other: internal, once: linkonce); make visible what is to be kept (external linkage)
; WEAK: .weak .func {{.*}}other(
; WEAK-AMD: .weak other

target triple = "TRIPLE"
define internal void @helper(ptr %p) {
  store i32 1, ptr %p
  ret void
}
define internal i32 @other(i32 %x) {
  ret i32 %x
}
define linkonce_odr i32 @once(i32 %x) {
  ret i32 %x
}
