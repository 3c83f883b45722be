; What cannot be negative is greater than -1 unless it is NaN, and a sine is less than 2. ptxas forgets the second half after any arithmetic.

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

; CHECK-LABEL: .entry sum(
; CHECK: setp.num.f32
define ptx_kernel void @sum(ptr %p, float %x) {
  %magnitude = call float @llvm.fabs.f32(float %x)
  %more = fadd float %magnitude, 1.0
  %holds = fcmp ogt float %more, 0.5
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

; CHECK-LABEL: .entry opposite(
; CHECK: setp.num.f32
define ptx_kernel void @opposite(ptr %p, float %x) {
  %magnitude = call float @llvm.nvvm.fabs.f32(float %x)
  %negative = fneg float %magnitude
  %holds = fcmp olt float %negative, 0.5
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

; CHECK-LABEL: .entry wave(
; CHECK: setp.num.f32
define ptx_kernel void @wave(ptr %p, float %x) {
  %sine = call float @llvm.nvvm.sin.approx.f(float %x)
  %holds = fcmp olt float %sine, 2.0
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

; A sine is less than 1, or it is 1.
; CHECK-LABEL: .entry crest(
; CHECK-NOT: setp.n
; CHECK: setp.{{ge|lt|gt|le}}{{u?}}.f32
define ptx_kernel void @crest(ptr %p, float %x) {
  %sine = call float @llvm.nvvm.sin.approx.f(float %x)
  %holds = fcmp olt float %sine, 1.0
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

; CHECK-LABEL: .entry short_sum(
; CHECK-NOT: setp.n
; CHECK: setp.{{ge|lt|gt|le}}{{u?}}.f32
define ptx_kernel void @short_sum(ptr %p, float %x) {
  %magnitude = call float @llvm.fabs.f32(float %x)
  %more = fadd float %magnitude, 1.0
  %holds = fcmp oge float %more, 1.5
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

; The opposite question, as LLVM writes the branch of one, of a bfloat.
; CHECK-LABEL: .entry not_less(
; CHECK: setp.n{{um|an}}.f32
define ptx_kernel void @not_less(ptr %p, float %x) {
  %short = fptrunc float %x to bfloat
  %long = fpext bfloat %short to float
  %magnitude = call float @llvm.nvvm.fabs.f32(float %long)
  %less = fcmp ult float %magnitude, 0xB790000000000000
  br i1 %less, label %then, label %end
then:
  store i32 1, ptr %p
  br label %end
end:
  ret void
}

; Where denormal numbers are zeros, `|x| + 2^-133 > 0` does not hold for 0.
; CHECK-LABEL: .entry flushed(
; CHECK-NOT: setp.n
; CHECK: setp.{{ge|lt|gt|le}}{{u?}}.ftz.f32
; CHECK-LABEL: .entry not_flushed(
; CHECK: setp.num.f32
define ptx_kernel void @flushed(ptr %p, float %x) "denormal-fp-math-f32"="preserve-sign,preserve-sign" {
  %magnitude = call float @llvm.fabs.f32(float %x)
  %more = fadd float %magnitude, 0x37A0000000000000
  %holds = fcmp ogt float %more, 0.0
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

define ptx_kernel void @not_flushed(ptr %p, float %x) {
  %magnitude = call float @llvm.fabs.f32(float %x)
  %more = fadd float %magnitude, 0x37A0000000000000
  %holds = fcmp ogt float %more, 0.0
  %bit = zext i1 %holds to i32
  store i32 %bit, ptr %p
  ret void
}

; Blocks that nothing reaches may be in a circle.
; CHECK-LABEL: .entry circle(
define ptx_kernel void @circle(ptr %p) {
  ret void
dead:
  %a = fneg float %b
  %b = fneg float %a
  %c = fcmp oge float %a, 0.0
  %z = zext i1 %c to i32
  store i32 %z, ptr %p
  br label %dead
}
