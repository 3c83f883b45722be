; The negation of the least number of 16 bits is the least number; ptxas takes `neg.s16` to be 32768 there, and reads that where a
; sign is read: in shifts, conversions, divisions.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit sass -o - | FileCheck %s --check-prefix=SASS

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry negated_and_shifted(
; CHECK-NOT: neg.s16
; CHECK: sub.u16 [[NEGATED:%rs[0-9]+]], 0, %rs
; CHECK: shr.s16 %rs{{[0-9]+}}, [[NEGATED]], 9
; The sign is extended behind the negation as well.
; SASS-LABEL: .text.negated_and_shifted:
; SASS: MOV [[R:R[0-9]+]], RZ, RZ, -R
; SASS: PRMT {{.*}}, 0x9910, RZ
; SASS: SHF.R.S32.HI
define ptx_kernel void @negated_and_shifted(ptr addrspace(1) %p) {
  %x = load i16, ptr addrspace(1) %p
  %negated = sub i16 0, %x
  %shifted = ashr i16 %negated, 9
  store i16 %shifted, ptr addrspace(1) %p
  ret void
}
