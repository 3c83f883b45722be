; What is compiled before does not show: sections of the user's are numbered in assembly, by a counter that LLVM's target machines keep.

; RUN: rm -rf %t && mkdir %t
; RUN: sed s/NAME/one/g %s > %t/one.ll && sed s/NAME/two/g %s > %t/two.ll && sed s/NAME/three/g %s > %t/three.ll
; RUN: gpulower compile %t/one.ll %t/two.ll %t/three.ll --no-cache -j1 --target gfx942 --emit asm -o %t/all/
; RUN: gpulower compile %t/three.ll --no-cache --target gfx942 --emit asm -o %t/alone/
; RUN: cmp %t/alone/three.gfx942.s %t/all/three.gfx942.s
; RUN: FileCheck %s < %t/alone/three.gfx942.s

; CHECK: .section kept_three,{{.*}}unique,

target triple = "amdgcn-amd-amdhsa"

@variable_NAME = addrspace(1) global i32 5, section "kept_NAME"
@llvm.used = appending addrspace(1) global [1 x ptr addrspace(1)] [ptr addrspace(1) @variable_NAME], section "llvm.metadata"

define amdgpu_kernel void @kernel_NAME(ptr addrspace(1) %p) {
  ret void
}
