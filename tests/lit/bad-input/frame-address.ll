; LLVM 22 crashes on the address of a frame on AMD's chips.

; RUN: not gpulower compile %s --target gfx942 -o %t.hsaco 2>&1 | FileCheck %s
; CHECK: the intrinsic llvm.frameaddress.p5 in a module for gfx942: chips of AMD have no frame addresses

target triple = "amdgcn-amd-amdhsa"
declare ptr addrspace(5) @llvm.frameaddress.p5(i32)
define amdgpu_kernel void @k(ptr addrspace(1) %p) {
  %frame = call ptr addrspace(5) @llvm.frameaddress.p5(i32 0)
  store ptr addrspace(5) %frame, ptr addrspace(1) %p
  ret void
}
