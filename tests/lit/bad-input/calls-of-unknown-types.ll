; A call whose result has a type that the Rust bindings of LLVM do not know, of a function that nothing defines, was a panic.

; RUN: not gpulower compile %s --target gfx942 --emit object -o %t.o 2>&1 | FileCheck %s
; CHECK: error: link, module {{.*}}, target gfx942: unresolved symbol:
; CHECK-NEXT: undefined (needed by kernel k)
; CHECK-NOT: panicked

target triple = "amdgcn-amd-amdhsa"

declare target("amdgcn.named.barrier", 0) @undefined(target("amdgcn.named.barrier", 0))

define amdgpu_kernel void @k() {
  %a = call target("amdgcn.named.barrier", 0) @undefined(target("amdgcn.named.barrier", 0) poison)
  ret void
}
