; A choice between -0 and 1: ptxas makes a comparison with a float as its result of it, which is 0 in place of -0. Of one between
; -0 and another positive number it drops the absolute value.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin
; RUN: %cuda/bin/nvdisasm -c %t.cubin | FileCheck --check-prefix=SASS %s

; SASS: .section .text.zero
; SASS: FSET.BF
; SASS-NOT: FSET.BF
; SASS: .section .text.absolute
; SASS: FADD {{.*}}|R{{.*}}|

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry absolute(
; CHECK: selp.b32 [[CHOICE:%r[0-9]+]], 0x40A00000, 0x80000000, %p
; CHECK: abs.f32 %r{{[0-9]+}}, [[CHOICE]]
define ptx_kernel void @absolute(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %is = fcmp olt float %x, 2.0
  %number = sitofp i1 %is to float
  %y = fmul float %number, -5.0
  %z = call float @llvm.fabs.f32(float %y)
  store float %z, ptr addrspace(1) %p
  ret void
}

; CHECK-LABEL: .entry minus_zero(
; CHECK: selp.b32 %r{{[0-9]+}}, 0x3F800000, 0x80000000, %p
define ptx_kernel void @minus_zero(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %is = fcmp olt float %x, 2.0
  %y = select i1 %is, float 1.0, float -0.0
  %z = fmul float %y, %x
  store float %z, ptr addrspace(1) %p
  ret void
}

; Between 0 and 1 it is right, and fast.
; CHECK-LABEL: .entry zero(
; CHECK: selp.f32
define ptx_kernel void @zero(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %is = fcmp olt float %x, 2.0
  %y = select i1 %is, float 1.0, float 0.0
  %z = fmul float %y, %x
  store float %z, ptr addrspace(1) %p
  ret void
}
