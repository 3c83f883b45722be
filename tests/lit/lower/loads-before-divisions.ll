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

; Loads hold eight registers at most while they wait: four numbers of 64 bits.
; CHECK-LABEL: .entry wide(
; CHECK: div.rn.f64
; CHECK: ld.global.b64
; CHECK: ret;
define ptx_kernel void @wide(ptr addrspace(1) %a, double %x, double %y) {
  %q = fdiv double %x, %y
  %a1 = getelementptr double, ptr addrspace(1) %a, i64 7
  %a2 = getelementptr double, ptr addrspace(1) %a, i64 17
  %a3 = getelementptr double, ptr addrspace(1) %a, i64 27
  %a4 = getelementptr double, ptr addrspace(1) %a, i64 37
  %v0 = load double, ptr addrspace(1) %a
  %v1 = load double, ptr addrspace(1) %a1
  %v2 = load double, ptr addrspace(1) %a2
  %v3 = load double, ptr addrspace(1) %a3
  %v4 = load double, ptr addrspace(1) %a4
  %s0 = fadd double %q, %v0
  %s1 = fadd double %s0, %v1
  %s2 = fadd double %s1, %v2
  %s3 = fadd double %s2, %v3
  %s4 = fadd double %s3, %v4
  store double %s4, ptr addrspace(1) %a
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
