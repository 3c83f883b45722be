; Functions of a device library that are given known numbers are evaluated, and powers of which one number is known are something
; simpler. What nobody knows, and what somebody defines, is called.

; RUN: split-file %s %t
; RUN: sed 's/TRIPLE/nvptx64-nvidia-cuda/; s/KERNEL/ptx_kernel/; s/NAME\([a-z0-9]*\)_f64/__nv_\1/g; s/NAME\([a-z0-9]*\)_f32/__nv_\1f/g' %t/k.ll > %t/nvidia.ll
; RUN: gpulower compile %t/nvidia.ll --target sm_90 -o %t/k.cubin --dump-dir %t/of-nvidia
; RUN: FileCheck %s --input-file %t/of-nvidia/nvidia.sm_90.2-linked.ll -DEXP2=__nv_exp2 -DPOW=__nv_pow -DSIN=__nv_sinf
; RUN: sed 's/TRIPLE/amdgcn-amd-amdhsa/; s/KERNEL/amdgpu_kernel/; s/NAME/__ocml_/g' %t/k.ll > %t/amd.ll
; RUN: gpulower compile %t/amd.ll --target gfx942 -o %t/k.hsaco --dump-dir %t/of-amd
; RUN: FileCheck %s --input-file %t/of-amd/amd.gfx942.2-linked.ll -DEXP2=__ocml_exp2_f64 -DPOW=__ocml_pow_f64 -DSIN=__ocml_sin_f32

; CHECK-LABEL: define {{.*}} @known(
; CHECK-NOT: call
; 0.5 ** 23, log(2), and sin(0.5) of 32 bits
; CHECK: store volatile double 0x3E80000000000000, ptr
; CHECK: store volatile double 0x3FE62E42FEFA39EF, ptr
; CHECK: store volatile float 0x3FDEAEE880000000, ptr
; CHECK: ret void

; CHECK-LABEL: define {{.*}} @powers(
; CHECK: %[[SQUARE:.*]] = fmul double %x, %x
; CHECK-NEXT: store double %[[SQUARE]]
; CHECK: %[[ROOT:.*]] = call double @llvm.sqrt.f64(double %x)
; CHECK: %[[ABSOLUTE:.*]] = call double @llvm.fabs.f64(double %[[ROOT]])
; CHECK: %[[INFINITE:.*]] = fcmp oeq double %x, 0xFFF0000000000000
; CHECK: %[[HALF:.*]] = select i1 %[[INFINITE]], double 0x7FF0000000000000, double %[[ABSOLUTE]]
; CHECK: store double %[[HALF]]
; CHECK: %[[EXP:.*]] = call double @[[EXP2]](double %x)
; CHECK: store double %[[EXP]]

; Exact enough it is not; nobody asked for it; the logarithm of zero has no number, and a result that a chip may take for zero is
; the chip's.
; CHECK-LABEL: define {{.*}} @unknown(
; CHECK: call double @[[POW]](double %x, double 5.000000e+00)
; CHECK: call double @[[POW]](double %x, double 2.000000e+00) #[[BUILTIN:[0-9]+]]
; CHECK: call double @{{.*}}log{{.*}}(double 0.000000e+00)
; CHECK: call float @[[SIN]](float 0x37A0000000000000)

; Other exponents; where no number is infinite nothing is asked.
; CHECK-LABEL: define {{.*}} @more_powers(
; CHECK: store volatile double 1.000000e+00
; CHECK: store volatile double %x
; CHECK: %[[SQUARE:.*]] = fmul double %x, %x
; CHECK: fmul double %[[SQUARE]], %x
; CHECK: %[[SQUARE:.*]] = fmul double %x, %x
; CHECK: fmul double %[[SQUARE]], %[[SQUARE]]
; CHECK: fdiv double 1.000000e+00, %x
; CHECK: %[[ROOT:.*]] = call ninf double @llvm.sqrt.f64(double %x)
; CHECK-NEXT: %[[ABSOLUTE:.*]] = call ninf double @llvm.fabs.f64(double %[[ROOT]])
; CHECK-NEXT: fdiv ninf double 1.000000e+00, %[[ABSOLUTE]]
; CHECK: %[[HALF:.*]] = select i1
; CHECK: fmul double {{.*}}%[[HALF]]
; CHECK: call double @{{.*}}exp10{{.*}}(double %x)
; CHECK: attributes #[[BUILTIN]] = { nobuiltin

; What is defined here is called, also where another function would call it, and so is what an object defines.
; RUN: gpulower compile %t/mine.ll --target sm_90 -o %t/k.cubin --dump-dir %t/of-mine
; RUN: FileCheck %s --check-prefix=MINE --input-file %t/of-mine/mine.sm_90.2-linked.ll
; MINE: call double @__nv_pow(double %x, double 2.000000e+00)
; RUN: gpulower compile %t/exp2.ll --target sm_90 -o %t/k.cubin --dump-dir %t/of-exp2
; RUN: FileCheck %s --check-prefix=EXP2 --input-file %t/of-exp2/exp2.sm_90.2-linked.ll
; EXP2: call double @__nv_pow(double 2.000000e+00, double %x)

; Halves are left to the library, whatever other kernels call.
; RUN: gpulower compile %t/halves.ll --target gfx942 -o %t/k.hsaco --dump-dir %t/of-halves
; RUN: FileCheck %s --check-prefix=HALVES --input-file %t/of-halves/halves.gfx942.2-linked.ll
; HALVES: call half @__ocml_sin_f16(half 0xH3800)
; HALVES: store double 0x3FDEAEE8744B05F0

; Front ends that link libdevice themselves leave its code: calls of what it does not inline, and numbers taken apart.
; RUN: gpulower compile %t/linked.ll --target sm_90 -o %t/k.cubin --dump-dir %t/of-linked
; RUN: FileCheck %s --check-prefix=PARTS --input-file %t/of-linked/linked.sm_90.2-linked.ll
; RUN: gpulower compile %t/linked.ll -O0 --target sm_90 -o %t/k.cubin --dump-dir %t/of-linked-O0
; RUN: FileCheck %s --check-prefix=O0 --input-file %t/of-linked-O0/linked.sm_90.2-linked.ll
; PARTS: define internal double @__internal_accurate_pow(
; PARTS: call i32 @llvm.nvvm.d2i.hi
; PARTS-LABEL: define {{.*}} @doubled(
; PARTS: store volatile double 6.000000e+00, ptr
; PARTS: call double @__internal_accurate_pow(double %x)
; PARTS: store volatile double 2.500000e-01, ptr
; PARTS: store volatile double 0.000000e+00, ptr
; PARTS: store volatile double 0xFFF0000000000000, ptr
; PARTS-NEXT: ret void
; PARTS-NOT: define
; O0: call double @__internal_accurate_pow(double 3.000000e+00)

;--- linked.ll
target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.d2i.hi(double)
declare i32 @llvm.nvvm.d2i.lo(double)
declare double @llvm.nvvm.lohi.i2d(i32, i32)
declare double @llvm.nvvm.rcp.approx.ftz.d(double)

define internal double @__internal_accurate_pow(double %x) noinline nounwind willreturn memory(none) {
  %high = call i32 @llvm.nvvm.d2i.hi(double %x)
  %low = call i32 @llvm.nvvm.d2i.lo(double %x)
  %is-small = icmp slt i32 %high, 1048576
  br i1 %is-small, label %small, label %large
small:
  ret double 0.0
large:
  %more = add i32 %high, 1048576
  %result = call double @llvm.nvvm.lohi.i2d(i32 %low, i32 %more)
  ret double %result
}

define ptx_kernel void @doubled(ptr addrspace(1) %p, double %x) {
  %known = call double @__internal_accurate_pow(double 3.0)
  store volatile double %known, ptr addrspace(1) %p
  %unknown = call double @__internal_accurate_pow(double %x)
  store volatile double %unknown, ptr addrspace(1) %p
  %high = call i32 @llvm.nvvm.d2i.hi(double 8.0)
  %is-small = icmp slt i32 %high, 1048576
  br i1 %is-small, label %small, label %large
small:
  br label %large
large:
  %number = phi i32 [ 7, %small ], [ %high, %0 ]
  %less = sub i32 %number, 1048576
  %four = call double @llvm.nvvm.lohi.i2d(i32 0, i32 %less)
  %quarter = call double @llvm.nvvm.rcp.approx.ftz.d(double %four)
  store volatile double %quarter, ptr addrspace(1) %p
  ; 2 ** -1023 has no exponent.
  %tiny = call double @llvm.nvvm.rcp.approx.ftz.d(double 0x7FE0000000000000)
  store volatile double %tiny, ptr addrspace(1) %p
  ; -(2 ** -1023) has none either, and is zero.
  %huge = call double @llvm.nvvm.rcp.approx.ftz.d(double 0x8008000000000000)
  store volatile double %huge, ptr addrspace(1) %p
  ret void
}

;--- k.ll
target triple = "TRIPLE"

declare double @NAMEpow_f64(double, double)
declare double @NAMElog_f64(double)
declare float @NAMEsin_f32(float)

define KERNEL void @known(ptr addrspace(1) %p) {
  %pow = call double @NAMEpow_f64(double 0.5, double 23.0)
  store volatile double %pow, ptr addrspace(1) %p
  %log = call double @NAMElog_f64(double 2.0)
  store volatile double %log, ptr addrspace(1) %p
  %sin = call float @NAMEsin_f32(float 0.5)
  store volatile float %sin, ptr addrspace(1) %p
  ret void
}

define KERNEL void @powers(ptr addrspace(1) %p, double %x) {
  %two = call double @NAMEpow_f64(double %x, double 2.0)
  store double %two, ptr addrspace(1) %p
  %half = call double @NAMEpow_f64(double %x, double 0.5)
  store double %half, ptr addrspace(1) %p
  %exp2 = call double @NAMEpow_f64(double 2.0, double %x)
  store double %exp2, ptr addrspace(1) %p
  ret void
}

define KERNEL void @unknown(ptr addrspace(1) %p, double %x) {
  %five = call double @NAMEpow_f64(double %x, double 5.0)
  store double %five, ptr addrspace(1) %p
  %two = call double @NAMEpow_f64(double %x, double 2.0) nobuiltin
  store double %two, ptr addrspace(1) %p
  %log = call double @NAMElog_f64(double 0.0)
  store double %log, ptr addrspace(1) %p
  %sin = call float @NAMEsin_f32(float 0x37A0000000000000)
  store float %sin, ptr addrspace(1) %p
  ret void
}

define KERNEL void @more_powers(ptr addrspace(1) %p, double %x) {
  %none = call double @NAMEpow_f64(double %x, double 0.0)
  store volatile double %none, ptr addrspace(1) %p
  %one = call double @NAMEpow_f64(double %x, double 1.0)
  store volatile double %one, ptr addrspace(1) %p
  %three = call double @NAMEpow_f64(double %x, double 3.0)
  store volatile double %three, ptr addrspace(1) %p
  %four = call double @NAMEpow_f64(double %x, double 4.0)
  store volatile double %four, ptr addrspace(1) %p
  %less = call double @NAMEpow_f64(double %x, double -1.0)
  store volatile double %less, ptr addrspace(1) %p
  %root = call ninf double @NAMEpow_f64(double %x, double -0.5)
  store volatile double %root, ptr addrspace(1) %p
  %and-a-half = call double @NAMEpow_f64(double %x, double 1.5)
  store volatile double %and-a-half, ptr addrspace(1) %p
  %ten = call double @NAMEpow_f64(double 10.0, double %x)
  store volatile double %ten, ptr addrspace(1) %p
  ret void
}

;--- exp2.ll
target triple = "nvptx64-nvidia-cuda"

declare double @__nv_pow(double, double)

define float @__nv_exp2(float %x) noinline {
  ret float %x
}

define ptx_kernel void @k(ptr addrspace(1) %p, double %x, float %y) {
  %power = call double @__nv_pow(double 2.0, double %x)
  store double %power, ptr addrspace(1) %p
  %other = call float @__nv_exp2(float %y)
  store volatile float %other, ptr addrspace(1) %p
  ret void
}

;--- halves.ll
target triple = "amdgcn-amd-amdhsa"

declare half @__ocml_sin_f16(half)
declare double @__ocml_sin_f64(double)

define amdgpu_kernel void @a(ptr addrspace(1) %p) {
  %sine = call half @__ocml_sin_f16(half 0xH3800)
  store half %sine, ptr addrspace(1) %p
  ret void
}

define amdgpu_kernel void @b(ptr addrspace(1) %p) {
  %sine = call double @__ocml_sin_f64(double 0.5)
  store double %sine, ptr addrspace(1) %p
  ret void
}

;--- mine.ll
target triple = "nvptx64-nvidia-cuda"

define double @__nv_pow(double %x, double %y) noinline {
  %sum = fadd double %x, %y
  ret double %sum
}

define ptx_kernel void @k(ptr addrspace(1) %p, double %x) {
  %two = call double @__nv_pow(double %x, double 2.0)
  store double %two, ptr addrspace(1) %p
  ret void
}
