; Functions of C's mathematical library that nothing defines are the vendor's, as clang's headers for CUDA and HIP make them: rustc,
; MLIR's math-to-libm and C without these headers leave them as they are. tests/amd/unit/test_math_of_c.py executes all of them.

; RUN: split-file %s %t
; RUN: sed 's/TRIPLE/nvptx64-nvidia-cuda/; s/KERNEL/ptx_kernel/' %t/k.ll > %t/nvidia.ll
; RUN: gpulower compile %t/nvidia.ll --target sm_90 -o %t/k.cubin --dump-dir %t/of-nvidia
; RUN: FileCheck %s --check-prefix=NVIDIA --input-file %t/of-nvidia/nvidia.sm_90.2-linked.ll
; NVIDIA-LABEL: define {{.*}} @k(
; NVIDIA: call double @__nv_cbrt(double %x)
; NVIDIA: call float @__nv_log1pf(float
; NVIDIA: call double @__nv_fma(double
; NVIDIA: call double @__nv_ldexp(double %x, i32
; NVIDIA: call i32 @__nv_ilogbf(float
; NVIDIA: call double @__nv_cbrt(double

; RUN: sed 's/TRIPLE/amdgcn-amd-amdhsa/; s/KERNEL/amdgpu_kernel/' %t/k.ll > %t/amd.ll
; RUN: gpulower compile %t/amd.ll --target gfx942 -o %t/k.hsaco --dump-dir %t/of-amd
; RUN: FileCheck %s --check-prefix=AMD --input-file %t/of-amd/amd.gfx942.2-linked.ll
; AMD-LABEL: define {{.*}} @k(
; AMD: call double @__ocml_cbrt_f64(double %x)
; AMD: call float @__ocml_log1p_f32(float
; AMD: call double @__ocml_fma_f64(double
; AMD: call double @__ocml_ldexp_f64(double %x, i32
; AMD: call i32 @__ocml_ilogb_f32(float
; AMD: call double @__ocml_cbrt_f64(double

; A definition of the user's stands.
; RUN: gpulower compile %t/amd.ll -l %t/mine.ll --target gfx942 -o %t/k.hsaco --dump-dir %t/of-mine
; RUN: FileCheck %s --check-prefix=MINE --input-file %t/of-mine/amd.gfx942.2-linked.ll
; MINE-LABEL: define {{.*}} @k(
; MINE: call double @cbrt(double %x)
; MINE: call float @__ocml_log1p_f32(float
; MINE: define {{.*}} @cbrt(

; Another type is another function.
; RUN: not gpulower compile %t/other.ll --target gfx942 -o %t/other.hsaco 2>&1 | FileCheck %s --check-prefix=OTHER
; OTHER: unresolved symbol
; OTHER-NEXT: cbrt (needed by kernel k)

; Called by another convention than C's it is somebody else's function.
; RUN: not gpulower compile %t/fast.ll --target sm_90 -o %t/fast.cubin 2>&1 | FileCheck %s --check-prefix=FAST
; FAST: sinf

;--- fast.ll
target triple = "nvptx64-nvidia-cuda"
declare fastcc float @sinf(float)
define ptx_kernel void @k(ptr addrspace(1) %p, float %x) {
  %y = call fastcc float @sinf(float %x)
  store float %y, ptr addrspace(1) %p
  ret void
}

;--- k.ll
target triple = "TRIPLE"
declare double @cbrt(double)
declare float @log1pf(float)
declare double @fma(double, double, double)
declare double @ldexp(double, i32)
declare i32 @ilogbf(float)
define KERNEL void @k(ptr addrspace(1) %out, double %x, float %y) {
  %a = call double @cbrt(double %x)
  %b = call float @log1pf(float %y)
  %c = fpext float %b to double
  %d = call double @fma(double %a, double %c, double %x)
  %e = call double @ldexp(double %x, i32 3)
  %f = call i32 @ilogbf(float %y)
  %g = sitofp i32 %f to double
  %h = fadd double %d, %e
  %i = fadd double %h, %g
  %j = call double @cbrt(double %i)
  store double %j, ptr addrspace(1) %out
  ret void
}

;--- mine.ll
target triple = "amdgcn-amd-amdhsa"
define double @cbrt(double %x) {
  ret double %x
}

;--- other.ll
target triple = "amdgcn-amd-amdhsa"
declare float @cbrt(float)
define amdgpu_kernel void @k(ptr addrspace(1) %out, float %x) {
  %a = call float @cbrt(float %x)
  store float %a, ptr addrspace(1) %out
  ret void
}
