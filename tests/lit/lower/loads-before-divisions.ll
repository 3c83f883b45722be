; The PTX compiler makes branches of divisions and square roots, and moves no load over a branch: loads come first, unless
; something between them writes. LLVM leaves them where they are.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: opt-22 -passes='default<O3>' -mcpu=sm_90 %s | llc-22 -mcpu=sm_90 | FileCheck %s --check-prefix=LLVM

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry quotients(
; CHECK-COUNT-3: ld.global.b32
; CHECK: div.rn.f32
; CHECK: sqrt.rn.f32
; CHECK-NOT: ld.global
; CHECK: ret;
; LLVM-LABEL: .entry quotients(
; LLVM: div.rn.f32
; LLVM: ld.global.b32
; LLVM: sqrt.rn.f32
define ptx_kernel void @quotients(ptr %a, ptr %b, i64 %i) {
  %at = getelementptr float, ptr %a, i64 %i
  %x = load float, ptr %at
  %q = fdiv float 3.0, %x
  %j = add i64 %i, 7
  %next = getelementptr float, ptr %b, i64 %j
  %y = load float, ptr %next
  %s = call float @llvm.sqrt.f32(float %q)
  %other = getelementptr float, ptr %a, i64 %j
  %z = load float, ptr %other
  %t = fmul float %s, %y
  %u = fadd float %t, %z
  store float %u, ptr %at
  ret void
}

; A store between them may write what is loaded, and an address may need the quotient.
; CHECK-LABEL: .entry in_turn(
; CHECK: ld.global.b32
; CHECK: div.rn.f32
; CHECK: st.global.b32
; CHECK: ld.global.b32
; CHECK: div.rn.f32
; CHECK: cvt.rzi.s64.f32
; CHECK: ld.global.b32
; CHECK: ret;
define ptx_kernel void @in_turn(ptr %a, ptr %b) {
  %x = load float, ptr %a
  %q = fdiv float 3.0, %x
  store float %q, ptr %a
  %y = load float, ptr %b
  %r = fdiv float %y, %q
  %i = fptosi float %r to i64
  %at = getelementptr float, ptr %b, i64 %i
  %z = load float, ptr %at
  store float %z, ptr %a
  ret void
}

declare float @llvm.sqrt.f32(float)
