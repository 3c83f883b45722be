; Mathematical operations that LLVM's back ends have no instruction for, or one that is much less exact, are functions of the
; vendor's library: llc ends in "Cannot select" for most of these.

; RUN: gpulower compile %s --target sm_90 --dump-dir %t/nv -o %t/ && cat %t/nv/*linked.ll | FileCheck %s --check-prefixes=ALL,NV
; RUN: gpulower compile %s --target gfx942 --dump-dir %t/amd -o %t/ && cat %t/amd/*linked.ll | FileCheck %s --check-prefixes=ALL,AMD
; RUN: gpulower compile %s --target sm_75,sm_90,gfx942,gfx1100,gfx1201 -o %t/all/

; An approximation is enough where it is asked for.
; RUN: gpulower compile %s --target sm_90 --fast --emit ptx -o - | FileCheck %s --check-prefix=FAST
; FAST-LABEL: .func single(
; FAST: sin.approx.ftz.f32
; FAST: ex2.approx.ftz.f32

; ALL-LABEL: @single(
; NV: call float @__nv_sinf(float
; NV: call float @__nv_powf(float
; NV: call float @__nv_powif(float {{.*}}, i32
; NV: call float @__nv_fmodf(float
; AMD: call float @__ocml_sin_f32(float
; AMD: call float @__ocml_pow_f32(float
; AMD: call float @__ocml_pown_f32(float {{.*}}, i32
; AMD: call float @__ocml_fmod_f32(float
define void @single(ptr addrspace(1) %p, float %x, float %y, i32 %n) {
  %sin = call float @llvm.sin.f32(float %x)
  %pow = call float @llvm.pow.f32(float %sin, float %y)
  %square = call float @llvm.pow.f32(float %pow, float 2.0)
  %powi = call float @llvm.powi.f32.i32(float %square, i32 %n)
  %cube = call float @llvm.powi.f32.i32(float %powi, i32 3)
  %rest = frem float %cube, %y
  store float %rest, ptr addrspace(1) %p
  ret void
}

; ALL-LABEL: @double(
; NV: call double @__nv_exp2(double
; NV: call double @__nv_sin(double
; NV: call double @__nv_cos(double
; AMD: call double @__ocml_exp2_f64(double
; AMD: call double @__ocml_sin_f64(double
; AMD: call double @__ocml_cos_f64(double
define void @double(ptr addrspace(1) %p, double %x) {
  %power = call double @llvm.exp2.f64(double %x)
  %both = call { double, double } @llvm.sincos.f64(double %power)
  %sin = extractvalue { double, double } %both, 0
  %cos = extractvalue { double, double } %both, 1
  %sum = fadd double %sin, %cos
  %parts = call { double, double } @llvm.modf.f64(double %sum)
  %fraction = extractvalue { double, double } %parts, 0
  %rounded = call i64 @llvm.lround.i64.f64(double %fraction)
  %number = sitofp i64 %rounded to double
  store double %number, ptr addrspace(1) %p
  ret void
}

; libdevice has no functions for 16 bits, and ocml none for bf16.
; ALL-LABEL: @halves(
; NV-COUNT-2: call float @__nv_tanf(float
; NV: call float @__nv_atan2f(float
; AMD-COUNT-2: call half @__ocml_tan_f16(half
; AMD: call float @__ocml_atan2_f32(float
define void @halves(ptr addrspace(1) %p, <2 x half> %x, bfloat %y) {
  %tan = call <2 x half> @llvm.tan.v2f16(<2 x half> %x)
  %angle = call bfloat @llvm.atan2.bf16(bfloat %y, bfloat 1.0)
  %bits = bitcast bfloat %angle to half
  %both = insertelement <2 x half> %tan, half %bits, i32 0
  store <2 x half> %both, ptr addrspace(1) %p
  ret void
}

; What says how it rounds is no other function; both results at once are two functions where LLVM has no instruction for both.
; ALL-LABEL: @more(
; NV: call float @__nv_sinf(float
; NV: call float @__nv_sinpif(float
; NV: call float @__nv_cospif(float
; AMD: call float @__ocml_sin_f32(float
; AMD: call float @__ocml_sinpi_f32(float
; AMD: call float @__ocml_cospi_f32(float
; AMD: call afn float @__ocml_fmod_f32(float
define void @more(ptr addrspace(1) %p, float %x, <2 x half> %y, bfloat %z) strictfp {
  %sin = call float @llvm.experimental.constrained.sin.f32(float %x, metadata !"round.dynamic", metadata !"fpexcept.strict") strictfp
  %both = call { float, float } @llvm.sincospi.f32(float %sin)
  %cos = extractvalue { float, float } %both, 1
  %halves = call afn { <2 x half>, <2 x half> } @llvm.sincos.v2f16(<2 x half> %y)
  %half = extractvalue { <2 x half>, <2 x half> } %halves, 0
  %rest = frem afn bfloat %z, 0xR4000
  %q = getelementptr i32, ptr addrspace(1) %p, i32 1
  %r = getelementptr i32, ptr addrspace(1) %p, i32 2
  store float %cos, ptr addrspace(1) %p
  store <2 x half> %half, ptr addrspace(1) %q
  store bfloat %rest, ptr addrspace(1) %r
  ret void
}

; The library's own does not call itself.
; RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=OWN
; OWN-LABEL: __ocml_remainder_f32:
; OWN: v_div_fixup_f32
define float @__ocml_remainder_f32(float %x, float %y) {
  %rest = frem float %x, %y
  ret float %rest
}

; PTX before 7.0 has no instruction for the hyperbolic tangent.
; RUN: gpulower compile %s --target sm_75 --ptx 6.5 --emit ptx -o - | FileCheck %s --check-prefix=OLD
; OLD-NOT: tanh.approx
define float @tangent(float %x) {
  %tanh = call afn float @llvm.tanh.f32(float %x)
  ret float %tanh
}
