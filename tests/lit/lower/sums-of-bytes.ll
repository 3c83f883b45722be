; A dot product of bytes that adds them up in a byte. LLVM 22 crashes on the sum, on every chip that can multiply and add four bytes
; at once.

; RUN: gpulower compile %s --target gfx906,gfx942,gfx1100,gfx1201 -O3 -e asm -o %t/
; RUN: cat %t/*gfx942* | FileCheck %s
; CHECK-LABEL: {{^}}dot:
; CHECK: global_store_byte
; RUN: gpulower compile %s --target gfx942 -O0 -o %t/k.hsaco

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @dot(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %z) {
  %a = load <4 x i8>, ptr addrspace(1) %x
  %b = load <4 x i8>, ptr addrspace(1) %y
  %products = mul <4 x i8> %a, %b
  %sum = call i8 @llvm.vector.reduce.add.v4i8(<4 x i8> %products)
  %c = load i8, ptr addrspace(1) %z
  %d = add i8 %sum, %c
  store i8 %d, ptr addrspace(1) %z
  ret void
}
