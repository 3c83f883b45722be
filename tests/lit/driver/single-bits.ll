; One signed bit as bfloat is -1 or 0, and a float becomes a bit by its lowest bit. LLVM's NVPTX back end makes 1 of the first
; (`selp 1, 0`), and compares the second with 0 (`setp.eq`).

; RUN: gpulower compile %s --target sm_90 --emit ptx -O0 -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_80 --emit ptx -O3 -o - | FileCheck %s

; CHECK-NOT: selp.b32 %r{{[0-9]+}}, 1, 0
; CHECK-NOT: cvt.rn.bf16

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @scalar(ptr %p, i32 %x) {
  %bit = trunc i32 %x to i1
  %float = sitofp i1 %bit to bfloat
  store bfloat %float, ptr %p
  ret void
}

define ptx_kernel void @vector(ptr %p, <2 x i32> %x) {
  %bits = trunc <2 x i32> %x to <2 x i1>
  %floats = sitofp <2 x i1> %bits to <2 x bfloat>
  store <2 x bfloat> %floats, ptr %p
  ret void
}

; CHECK-LABEL: .entry back(
; CHECK: cvt.rzi.u32.f32
; CHECK: and.b32 {{.*}}, 1;
define ptx_kernel void @back(ptr %p, float %x) {
  %bit = fptoui float %x to i1
  %wide = zext i1 %bit to i32
  store i32 %wide, ptr %p
  ret void
}

; A bit chooses: ptxas has dropped the conversion of `selp 1, 0`.
; CHECK-LABEL: .entry unsigned(
; CHECK: selp.{{[bf]}}32 %r{{[0-9]+}}, 0f3F800000, 0f00000000
define ptx_kernel void @unsigned(ptr %p, i32 %x) {
  %bit = trunc i32 %x to i1
  %float = uitofp i1 %bit to float
  store float %float, ptr %p
  ret void
}
