; A float becomes a bit by its integer part: 1.5 is 1. LLVM's AMDGPU back end compares with 1, or with -1 for a signed bit. Found by
; kernels at random (0xdcf2420895621d0b on gfx1201).

; RUN: gpulower compile %s --target gfx942 --emit asm -O0 -o - | FileCheck %s
; RUN: gpulower compile %s --target gfx1100,gfx1201 --emit asm -o %t/
; RUN: cat %t/*gfx1100* %t/*gfx1201* | FileCheck %s

; CHECK-NOT: v_cmp_eq_f32{{.*}}1.0
; CHECK: v_cvt_u32_f32
; CHECK-NOT: v_cmp_eq_f32{{.*}}1.0
; CHECK: v_cvt_i32_f32
; CHECK-NOT: v_cmp_eq_f32{{.*}}1.0

target triple = "amdgcn-amd-amdhsa"

define amdgpu_kernel void @back(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = load float, ptr addrspace(1) %q
  %bit = fptoui float %x to i1
  %signed = fptosi float %x to i1
  %a = zext i1 %bit to i32
  %b = zext i1 %signed to i32
  %next = getelementptr i32, ptr addrspace(1) %p, i64 1
  store i32 %a, ptr addrspace(1) %p
  store i32 %b, ptr addrspace(1) %next
  ret void
}

; Of a bfloat it makes nothing: "Cannot select" on gfx1201.
define amdgpu_kernel void @bfloat(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = load bfloat, ptr addrspace(1) %q
  %bit = fptosi bfloat %x to i1
  %a = zext i1 %bit to i32
  store i32 %a, ptr addrspace(1) %p
  ret void
}
