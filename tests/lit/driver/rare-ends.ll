; Short ends of a kernel, beside which the others go on, are branched to: ptxas runs what follows a branch under a predicate.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin
; RUN: %cuda/bin/nvdisasm -c %t.cubin | FileCheck --check-prefix=SASS %s

; SASS-LABEL: .section .text.either,
; SASS: STG
; SASS-LABEL: .section .text.borders,
; SASS-NOT: @{{!?}}P{{[0-9]}} STG
; SASS: STG

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry borders(
; CHECK: setp.eq.b32 [[FIRST:%p[0-9]+]], %r{{[0-9]+}}, 0
; CHECK-NEXT: @[[FIRST]] bra [[AT_FIRST:.*]];
; CHECK: setp.eq.b32 [[LAST:%p[0-9]+]], %r{{[0-9]+}}, 399
; CHECK-NEXT: @[[LAST]] bra [[AT_LAST:.*]];
; CHECK: add.{{.*}}f32
; CHECK: ret;
; CHECK: [[AT_FIRST]]:
; CHECK: st.global.b32 [{{.*}}], 0
; CHECK: [[AT_LAST]]:
; CHECK: st.global.b32 [{{.*}}], 1065353216
define ptx_kernel void @borders(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %place = getelementptr float, ptr addrspace(1) %p, i32 %x
  switch i32 %x, label %inside [
    i32 0, label %first
    i32 399, label %last
  ]

first:
  store float 0.0, ptr addrspace(1) %place
  br label %end

last:
  store float 1.0, ptr addrspace(1) %q
  br label %end

inside:
  %old = load float, ptr addrspace(1) %place
  %new = fadd float %old, 2.0
  store float %new, ptr addrspace(1) %place
  %more = fcmp ogt float %new, 5.0
  br i1 %more, label %large, label %end

large:
  store float %old, ptr addrspace(1) %q
  br label %end

end:
  ret void
}

; Where both sides end, neither is rarer than the other.
; CHECK-LABEL: .entry either(
; CHECK-NOT: ret;
; CHECK-COUNT-2: st.global
; CHECK: ret;
; CHECK-NOT: st.global
define ptx_kernel void @either(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %is = icmp eq i32 %x, 0
  br i1 %is, label %first, label %other

first:
  store float 0.0, ptr addrspace(1) %p
  br label %end

other:
  store float 1.0, ptr addrspace(1) %q
  br label %end

end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
