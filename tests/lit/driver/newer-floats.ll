; The floating-point literals that LLVM 23 writes (llvm/llvm-project#190649); llc-22 refuses them.
; RUN: not llc -mtriple=nvptx64 %s -o /dev/null
; RUN: gpulower compile %s -t sm_90 --emit ptx -o - | FileCheck %s
; CHECK: add.rn.f32 {{.*}}, 0f3DCCCCCD;
; CHECK: 0f7F800000;
; CHECK: 0f7FC00000,
; CHECK: 0x2E66;
; CHECK: 0dFFF0000000000000;

; A text that LLVM 22 does not read in either spelling is refused in LLVM's words.
; RUN: sed 's/+inf/+infinite/' %s > %t.ll
; RUN: not gpulower compile %t.ll -t sm_90 --emit ptx -o - 2>&1 | FileCheck --check-prefix=REFUSED %s
; REFUSED: error: {{.*}}expected

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr addrspace(1) %p, float %x, half %h, double %d) {
  %y = fadd float %x, 1.000000e-01
  %z = fcmp one float %y, +inf
  %w = select i1 %z, float %y, float f0x7FC00000
  store float %w, ptr addrspace(1) %p
  %q = getelementptr i8, ptr addrspace(1) %p, i64 8
  %i = fadd half %h, 9.997560e-02
  store half %i, ptr addrspace(1) %q
  %r = getelementptr i8, ptr addrspace(1) %p, i64 16
  %e = fadd double %d, -inf
  store double %e, ptr addrspace(1) %r
  ret void
}
