; A packed register that has a negative constant in one half: ptxas keeps the constant without its sign, and negates where it is used,
; or forgets to. One number after the other is right.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry square(
; CHECK-NOT: f16x2
; CHECK: fma.rn.f16
; CHECK-NOT: f16x2
; CHECK: ret;
define ptx_kernel void @square(ptr addrspace(1) %p, half %x) {
  %v = insertelement <2 x half> <half poison, half -3.0>, half %x, i32 0
  %y = call <2 x half> @llvm.fma.v2f16(<2 x half> %v, <2 x half> %v, <2 x half> zeroinitializer)
  store <2 x half> %y, ptr addrspace(1) %p
  ret void
}

; CHECK-LABEL: .entry bfloats(
; CHECK-NOT: bf16x2
; CHECK: ret;
define ptx_kernel void @bfloats(ptr addrspace(1) %p, bfloat %x, <2 x bfloat> %c) {
  %v = insertelement <2 x bfloat> <bfloat -4.5, bfloat poison>, bfloat %x, i32 1
  %y = call <2 x bfloat> @llvm.fma.v2bf16(<2 x bfloat> %c, <2 x bfloat> %v, <2 x bfloat> %v)
  store <2 x bfloat> %y, ptr addrspace(1) %p
  ret void
}

; What is right stays packed: a positive constant in one half, and constants in both.
; CHECK-LABEL: .entry packed(
; CHECK: fma.rn.f16x2
; CHECK: fma.rn.f16x2
define ptx_kernel void @packed(ptr addrspace(1) %p, half %x, <2 x half> %c) {
  %v = insertelement <2 x half> <half poison, half 3.0>, half %x, i32 0
  %y = call <2 x half> @llvm.fma.v2f16(<2 x half> %v, <2 x half> %v, <2 x half> zeroinitializer)
  %z = call <2 x half> @llvm.fma.v2f16(<2 x half> <half -3.0, half 5.0>, <2 x half> %c, <2 x half> %y)
  store <2 x half> %z, ptr addrspace(1) %p
  ret void
}

declare <2 x half> @llvm.fma.v2f16(<2 x half>, <2 x half>, <2 x half>)
declare <2 x bfloat> @llvm.fma.v2bf16(<2 x bfloat>, <2 x bfloat>, <2 x bfloat>)

; The negative constant comes of what was taken apart before.
; CHECK-LABEL: .entry one_after_the_other(
; CHECK-NOT: fma.rn.f16x2
; CHECK: ret;
define ptx_kernel void @one_after_the_other(ptr addrspace(1) %p, half %x) {
  %c = insertelement <2 x half> <half poison, half 0xHB5CD>, half %x, i32 0
  %y = call <2 x half> @llvm.fma.v2f16(<2 x half> %c, <2 x half> %c, <2 x half> %c)
  %z = call <2 x half> @llvm.fma.v2f16(<2 x half> %y, <2 x half> %y, <2 x half> <half 0xHB5CD, half 0xHB5CD>)
  store <2 x half> %z, ptr addrspace(1) %p
  ret void
}

; An operand once: of x, y and z that were put together of integers, ptxas forgot the sign.
; CHECK-LABEL: .entry greatest(
; CHECK-NOT: max{{.*}}bf16x2
; CHECK: ret;
define ptx_kernel void @greatest(ptr addrspace(1) %p, bfloat %x, <2 x bfloat> %c) {
  %v = insertelement <2 x bfloat> <bfloat poison, bfloat -27.0>, bfloat %x, i32 0
  %y = call <2 x bfloat> @llvm.maximum.v2bf16(<2 x bfloat> %v, <2 x bfloat> %c)
  store <2 x bfloat> %y, ptr addrspace(1) %p
  ret void
}

; CHECK-LABEL: .entry greatest_of_four(
; CHECK-NOT: max{{.*}}bf16x2
; CHECK: ret;
define ptx_kernel void @greatest_of_four(ptr addrspace(1) %p, <4 x bfloat> %c) {
  %v = insertelement <4 x bfloat> %c, bfloat -27.0, i32 1
  %y = call bfloat @llvm.vector.reduce.fmaximum.v4bf16(<4 x bfloat> %v)
  store bfloat %y, ptr addrspace(1) %p
  ret void
}

; CHECK-LABEL: .entry greatest_with_a_positive_one(
; CHECK: max{{.*}}bf16x2
define ptx_kernel void @greatest_with_a_positive_one(ptr addrspace(1) %p, <4 x bfloat> %c) {
  %v = insertelement <4 x bfloat> %c, bfloat 27.0, i32 1
  %y = call bfloat @llvm.vector.reduce.fmaximum.v4bf16(<4 x bfloat> %v)
  store bfloat %y, ptr addrspace(1) %p
  ret void
}
