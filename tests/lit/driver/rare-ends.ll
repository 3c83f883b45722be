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

; Where a whole vector fits in is not rare, though it ends.
; CHECK-LABEL: .entry vectors(
; CHECK: st.global.v4
; CHECK: div.
define ptx_kernel void @vectors(ptr addrspace(1) %p, i32 %n) {
  %x = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %first = shl i32 %x, 2
  %behind = add i32 %first, 4
  %fits = icmp slt i32 %behind, %n
  %place = getelementptr float, ptr addrspace(1) %p, i32 %first
  br i1 %fits, label %all, label %rest

all:
  store <4 x float> splat (float 1.0), ptr addrspace(1) %place, align 16
  ret void

rest:
  %left = sub i32 %n, %first
  %value = sitofp i32 %left to float
  %part = fdiv float 1.0, %value
  store float %part, ptr addrspace(1) %place
  %exact = fdiv float %part, %value
  %next = getelementptr float, ptr addrspace(1) %place, i32 1
  store float %exact, ptr addrspace(1) %next
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  ret void
}

; Four operations of which one is wanted are chosen by LLVM's table.
; CHECK-LABEL: .entry operations(
; CHECK: brx.idx
define ptx_kernel void @operations(ptr addrspace(1) %p, float %x, i32 %which) {
  switch i32 %which, label %end [
    i32 0, label %a
    i32 1, label %b
    i32 2, label %c
    i32 3, label %d
  ]

a:
  %u = fadd float %x, 2.0
  store float %u, ptr addrspace(1) %p
  br label %end

b:
  %v = fmul float %x, 3.0
  %b.place = getelementptr float, ptr addrspace(1) %p, i32 1
  store float %v, ptr addrspace(1) %b.place
  br label %end

c:
  %w = fsub float 4.0, %x
  %c.place = getelementptr float, ptr addrspace(1) %p, i32 2
  store float %w, ptr addrspace(1) %c.place
  br label %end

d:
  %y = fneg float %x
  %d.place = getelementptr float, ptr addrspace(1) %p, i32 3
  store float %y, ptr addrspace(1) %d.place
  br label %end

end:
  ret void
}

; One of two, and nothing else: the second is not asked for.
; CHECK-LABEL: .entry exhausted(
; CHECK-COUNT-1: setp.
; CHECK-NOT: setp.
; CHECK: ret;
define ptx_kernel void @exhausted(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %which) {
  switch i32 %which, label %never [
    i32 3, label %a
    i32 8, label %b
  ]

a:
  store float 0.0, ptr addrspace(1) %p
  ret void

b:
  store float 1.0, ptr addrspace(1) %q
  ret void

never:
  unreachable
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
