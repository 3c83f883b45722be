; What cannot be negative is greater than -1 unless it is NaN. ptxas forgets the second half after any arithmetic.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 -O0 --emit ptx -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry square(
; CHECK: setp.num.f32
define ptx_kernel void @square(ptr %p, float %x) {
  %square = fmul float %x, %x
  %holds = fcmp oge float %square, 0.0
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

; CHECK-LABEL: .entry magnitude(
; CHECK: setp.num.f32
define ptx_kernel void @magnitude(ptr %p, float %x) {
  %more = fadd float %x, 1.0
  %magnitude = call float @llvm.fabs.f32(float %more)
  %holds = fcmp olt float -16.0, %magnitude
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

; NVIDIA's own, to which MLIR lowers.
; CHECK-LABEL: .entry vendors(
; CHECK: setp.num.f32
define ptx_kernel void @vendors(ptr %p, float %x) {
  %more = fadd float %x, 1.0
  %magnitude = call float @llvm.nvvm.fabs.f32(float %more)
  %holds = fcmp oge float %magnitude, -16.0
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

; Nothing holds of itself here.
; CHECK-LABEL: .entry positive(
; CHECK: setp.{{ge|lt|gt|le}}{{u?}}.f32
define ptx_kernel void @positive(ptr %p, float %x) {
  %square = fmul float %x, %x
  %holds = fcmp oge float %square, 1.0
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}
