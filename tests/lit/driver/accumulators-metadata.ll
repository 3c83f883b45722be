; RUN: gpulower compile %s --target sm_90 --llvm-passes='function(gpulower-keep-accumulators)' --emit llvm -o - | FileCheck %s

; What is said of one access to a place is not concluded for the others.

target triple = "nvptx64-nvidia-cuda"

; A load says that another one is of other memory; the store says nothing.
; CHECK-LABEL: define ptx_kernel void @scopes(
; CHECK: freeze i1
; CHECK: h.apart.met:
; CHECK: ret void
define ptx_kernel void @scopes(ptr %p, ptr %q, i64 %n, i1 %c) {
entry:
  br label %h
h:
  %i = phi i64 [0, %entry], [%j, %l]
  %a = getelementptr float, ptr %q, i64 %i
  br i1 %c, label %t, label %l
t:
  %o = load float, ptr %p, align 4, !alias.scope !1, !noalias !2
  %x = load float, ptr %a, align 4, !alias.scope !2, !noalias !1
  %s = fadd float %o, %x
  br label %l
l:
  %v = phi float [1.0, %h], [%s, %t]
  store float %v, ptr %p, align 4
  %j = add nuw nsw i64 %i, 1
  %e = icmp eq i64 %j, %n
  br i1 %e, label %x1, label %h
x1:
  ret void
}

; A load is of another type than what else is read; the store says nothing.
; CHECK-LABEL: define ptx_kernel void @types(
; CHECK: freeze i1
; CHECK: h.apart.met:
; CHECK: ret void
define ptx_kernel void @types(ptr %p, ptr %q, ptr %o, i64 %n, i1 %c) {
entry:
  br label %h
h:
  %i = phi i64 [0, %entry], [%j, %l]
  br i1 %c, label %t, label %l
t:
  %old = load float, ptr %p, align 4, !tbaa !11
  br label %l
l:
  %v = phi float [0.0, %h], [%old, %t]
  %a = getelementptr i32, ptr %q, i64 %i
  %x = load i32, ptr %a, align 4, !tbaa !13
  %f = sitofp i32 %x to float
  %s = fadd float %v, %f
  store float %s, ptr %p, align 4
  %j = add nuw nsw i64 %i, 1
  %e = icmp eq i64 %j, %n
  br i1 %e, label %x1, label %h
x1:
  ret void
}

; The address of what may not be read may be poison: the place is that of the store.
; CHECK-LABEL: define ptx_kernel void @poison(
; CHECK: %kept = load float, ptr %p2, align 4
; CHECK: store float %{{.*}}, ptr %p2, align 4
; CHECK-NOT: store
; CHECK: ret void
define ptx_kernel void @poison(ptr noalias %p, ptr %q, i64 %k, i64 %n, i1 %c) {
entry:
  %p1 = getelementptr inbounds float, ptr %p, i64 %k
  %p2 = getelementptr float, ptr %p, i64 %k
  br label %h
h:
  %i = phi i64 [0, %entry], [%j, %l]
  br i1 %c, label %t, label %l
t:
  %old = load float, ptr %p1, align 4
  br label %l
l:
  %v = phi float [0.0, %h], [%old, %t]
  %a = getelementptr float, ptr %q, i64 %i
  %x = load float, ptr %a, align 4
  %s = fadd float %v, %x
  store float %s, ptr %p2, align 4
  %j = add nuw nsw i64 %i, 1
  %e = icmp eq i64 %j, %n
  br i1 %e, label %x1, label %h
x1:
  ret void
}

!0 = distinct !{!0, !"f"}
!1 = !{!3}
!2 = !{!4}
!3 = distinct !{!3, !0, !"f: a"}
!4 = distinct !{!4, !0, !"f: b"}
!10 = !{!"root"}
!11 = !{!12, !12, i64 0}
!12 = !{!"float", !10, i64 0}
!13 = !{!14, !14, i64 0}
!14 = !{!"int", !10, i64 0}
