; A limit behind one that keeps NaN is one of its own. (ptxas 13.0 drops the minimum with 2 all the same, and makes a saturation: docs/lab/differential.md.)

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; NaN, which the first keeps, becomes 2, and then 1.
; CHECK-LABEL: .entry nan_kept_first(
; CHECK: min.NaN.f32
; CHECK: min.f32 {{.*}}, 0f40000000
; CHECK: max.f32
; CHECK: min.f32 {{.*}}, 0f3F800000
define ptx_kernel void @nan_kept_first(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %one = call float @llvm.minimum.f32(float %x, float 1.0)
  %two = call float @llvm.minnum.f32(float %one, float 2.0)
  %least = call float @llvm.maxnum.f32(float %two, float 0.0)
  %y = call float @llvm.minnum.f32(float %least, float 1.0)
  store float %y, ptr addrspace(1) %p
  ret void
}
