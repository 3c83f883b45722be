; A float that was computed from bfloats and becomes a half is rounded once. LLVM's passes would compute with halves: 70000 * 0.5 would be
; infinite, though 35000 is a half.

; RUN: sed 's/KERNEL/ptx_kernel/; s/TRIPLE/nvptx64-nvidia-cuda/' %s > %t.nvidia.ll
; RUN: gpulower compile %t.nvidia.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=NVIDIA
; RUN: sed 's/KERNEL/amdgpu_kernel/; s/TRIPLE/amdgcn-amd-amdhsa/' %s > %t.amd.ll
; RUN: gpulower compile %t.amd.ll --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=AMD

target triple = "TRIPLE"

; NVIDIA-LABEL: .entry scaled(
; NVIDIA: mul{{(.rn)?}}.f32 [[PRODUCT:%r[0-9]+]], %r{{[0-9]+}}, 0f3F000000
; NVIDIA: cvt.rn.f16.f32 %rs{{[0-9]+}}, [[PRODUCT]]
; AMD-LABEL: scaled:
; AMD-NOT: v_mul_f16
; AMD: v_fma_mixlo_f16 v{{[0-9]+}}, v{{[0-9]+}}, s{{[0-9]+}}, 0
define KERNEL void @scaled(ptr addrspace(1) %p) {
  %x = load bfloat, ptr addrspace(1) %p
  %wide = fpext bfloat %x to float
  %half_of_it = fmul float %wide, 0.5
  %narrow = fptrunc float %half_of_it to half
  store half %narrow, ptr addrspace(1) %p
  ret void
}

; Without halves bfloats are added as such, where the chip can.
; NVIDIA-LABEL: .entry added(
; NVIDIA: .bf16 %rs
define KERNEL void @added(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = load bfloat, ptr addrspace(1) %p
  %y = load bfloat, ptr addrspace(1) %q
  %a = fpext bfloat %x to float
  %b = fpext bfloat %y to float
  %sum = fadd float %a, %b
  %narrow = fptrunc float %sum to bfloat
  store bfloat %narrow, ptr addrspace(1) %p
  ret void
}

; Both in functions that a third one calls, one of them by way of another.
; NVIDIA-LABEL: .entry by_way_of_others(
; NVIDIA: mul{{(.rn)?}}.f32 [[PRODUCT:%r[0-9]+]], %r{{[0-9]+}}, 0f3F000000
; NVIDIA: cvt.rn.f16.f32 %rs{{[0-9]+}}, [[PRODUCT]]
; AMD-LABEL: by_way_of_others:
; AMD-NOT: v_mul_f16
; AMD: v_fma_mixlo_f16
define KERNEL void @by_way_of_others(ptr addrspace(1) %p) {
  %x = load bfloat, ptr addrspace(1) %p
  %half_of_it = call float @half_of(bfloat %x)
  %narrow = call half @narrowed(float %half_of_it)
  store half %narrow, ptr addrspace(1) %p
  ret void
}

define internal float @half_of(bfloat %x) {
  %wide = call float @extended(bfloat %x)
  %half_of_it = fmul float %wide, 0.5
  ret float %half_of_it
}

define internal float @extended(bfloat %x) {
  %wide = fpext bfloat %x to float
  ret float %wide
}

define internal half @narrowed(float %x) {
  %narrow = fptrunc float %x to half
  ret half %narrow
}
