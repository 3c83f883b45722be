; A choice that takes its second number of two zeros is no minimum or maximum where that would be the other zero. LLVM's back ends make
; one of it: `x < 0 ? x : 0` would be -0 for -0.

; RUN: sed 's/KERNEL/ptx_kernel/; s/TRIPLE/nvptx64-nvidia-cuda/' %s > %t.nvidia.ll
; RUN: gpulower compile %t.nvidia.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=NVIDIA
; RUN: gpulower compile %t.nvidia.ll --target sm_90 -O0 --emit ptx -o - | FileCheck %s --check-prefix=NVIDIA
; RUN: sed 's/KERNEL/amdgpu_kernel/; s/TRIPLE/amdgcn-amd-amdhsa/' %s > %t.amd.ll
; RUN: gpulower compile %t.amd.ll --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=AMD

target triple = "TRIPLE"

; NVIDIA-LABEL: .entry less(
; NVIDIA-NOT: min
; NVIDIA: setp.geu.f32
; NVIDIA-NOT: min
; NVIDIA: ret;
; AMD-LABEL: less:
; AMD-NOT: v_min
; AMD: v_cndmask
; AMD: s_endpgm
define KERNEL void @less(ptr addrspace(1) %p) {
  %x = load float, ptr addrspace(1) %p
  %is = fcmp olt float %x, 0.0
  %y = select i1 %is, float %x, float 0.0
  store float %y, ptr addrspace(1) %p
  ret void
}

; NVIDIA-LABEL: .entry others(
; NVIDIA-NOT: {{(min|max)\.}}
; NVIDIA: ret;
define KERNEL void @others(ptr addrspace(1) %p, ptr addrspace(1) %q, ptr addrspace(1) %r, ptr addrspace(1) %s) {
  %x = load double, ptr addrspace(1) %p
  %x.is = fcmp ogt double %x, -0.0
  %x.y = select i1 %x.is, double %x, double -0.0
  store double %x.y, ptr addrspace(1) %p
  %h = load half, ptr addrspace(1) %q
  %h.is = fcmp ult half %h, 0.0
  %h.y = select i1 %h.is, half 0.0, half %h
  store half %h.y, ptr addrspace(1) %q
  %b = load <2 x bfloat>, ptr addrspace(1) %r
  %b.is = fcmp ugt <2 x bfloat> %b, splat (bfloat -0.0)
  %b.y = select <2 x i1> %b.is, <2 x bfloat> splat (bfloat -0.0), <2 x bfloat> %b
  store <2 x bfloat> %b.y, ptr addrspace(1) %r
  %i = load float, ptr addrspace(1) %s
  %j = load float, ptr addrspace(1) %p
  %i.is = fcmp nnan olt float %i, %j
  %i.y = select i1 %i.is, float %i, float %j
  store float %i.y, ptr addrspace(1) %s
  ret void
}

; What stays: the sign of zero is the instruction's, it does not matter, or there are no two zeros.
; NVIDIA-LABEL: .entry extremes(
; NVIDIA: max.f32
; NVIDIA: min.f32
; NVIDIA: min.f32
define KERNEL void @extremes(ptr addrspace(1) %p) {
  %x = load volatile float, ptr addrspace(1) %p
  %x.is = fcmp ogt float %x, 0.0
  %x.y = select i1 %x.is, float %x, float 0.0
  store volatile float %x.y, ptr addrspace(1) %p
  %y = load volatile float, ptr addrspace(1) %p
  %y.is = fcmp olt float %y, 0.0
  %y.y = select nsz i1 %y.is, float %y, float 0.0
  store volatile float %y.y, ptr addrspace(1) %p
  %z = load volatile float, ptr addrspace(1) %p
  %z.is = fcmp olt float %z, 1.0
  %z.y = select i1 %z.is, float %z, float 1.0
  store volatile float %z.y, ptr addrspace(1) %p
  ret void
}
