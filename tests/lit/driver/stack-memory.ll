; RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s

; Memory that LLVM IR of any front end takes under a condition is part of the frame (lower/stack-memory.mlir has loops).
; CHECK: .amdhsa_uses_dynamic_stack 0

target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %x, i32 %n, i32 %at) {
entry:
  %c = icmp sgt i32 %n, 3
  br i1 %c, label %yes, label %no
yes:
  %m = alloca [4 x i32], align 4, addrspace(5)
  %i = and i32 %n, 3
  %p = getelementptr i32, ptr addrspace(5) %m, i32 %i
  store i32 %n, ptr addrspace(5) %p
  %q = getelementptr i32, ptr addrspace(5) %m, i32 %at
  %v = load i32, ptr addrspace(5) %q
  store i32 %v, ptr addrspace(1) %x
  br label %no
no:
  ret void
}
