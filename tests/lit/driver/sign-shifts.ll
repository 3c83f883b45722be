; -1 << 15 is -32768, also where it is extended to 32 bits; LLVM makes a product by -32768 of it, which is 32768.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry of_16_bits(
; CHECK-NOT: mul.wide
; CHECK: shl.b16 [[SHIFTED:%rs[0-9]+]], %rs{{[0-9]+}}, 15
; CHECK: cvt.s32.s16 %r{{[0-9]+}}, [[SHIFTED]]
define ptx_kernel void @of_16_bits(ptr addrspace(1) %p) {
  %y = load i16, ptr addrspace(1) %p
  %is_less = icmp slt i16 %y, 32767
  %ones = sext i1 %is_less to i16
  %sign = shl i16 %ones, 15
  %wide = sext i16 %sign to i32
  store i32 %wide, ptr addrspace(1) %p
  ret void
}

; CHECK-LABEL: .entry of_32_bits(
; CHECK-NOT: mul.wide
define ptx_kernel void @of_32_bits(ptr addrspace(1) %p, i32 %x) {
  %sign = shl nsw i32 %x, 31
  %wide = sext i32 %sign to i64
  store i64 %wide, ptr addrspace(1) %p
  ret void
}

; One bit less is as it was.
; CHECK-LABEL: .entry of_a_lower_bit(
; CHECK: mul.wide.s32 %rd{{[0-9]+}}, %r{{[0-9]+}}, 1073741824
define ptx_kernel void @of_a_lower_bit(ptr addrspace(1) %p, i32 %x) {
  %shifted = shl nsw i32 %x, 30
  %wide = sext i32 %shifted to i64
  store i64 %wide, ptr addrspace(1) %p
  ret void
}

; One of several amounts is enough.
; CHECK-LABEL: .entry of_vectors(
; CHECK-NOT: -2147483648
define ptx_kernel void @of_vectors(ptr addrspace(1) %p) {
  %x = load <2 x i32>, ptr addrspace(1) %p
  %shifted = shl nsw <2 x i32> %x, <i32 31, i32 3>
  %wide = sext <2 x i32> %shifted to <2 x i64>
  store <2 x i64> %wide, ptr addrspace(1) %p
  ret void
}
