; RUN: gpulower compile %s --target sm_90 --emit llvm -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit llvm -o - --interleave 8 | FileCheck %s --check-prefix=EIGHT
; RUN: gpulower compile %s --target sm_90 --emit llvm -o - --interleave 1 | FileCheck %s --check-prefix=ONE
; RUN: gpulower compile %s --target sm_90 --emit llvm -o - --speed fast | FileCheck %s --check-prefix=ONE
; RUN: gpulower compile %s --target sm_90 --emit llvm -o - --input-optimized | FileCheck %s --check-prefix=ONE

; Loops that come as LLVM IR run several iterations at once, too, all loads of them first; lower/interleave-run.mlir runs such
; loops.

; The order of the additions stays.
; CHECK-LABEL: @sum(
; CHECK-COUNT-4: load float
; CHECK-NOT: load
; CHECK: %[[A:.*]] = fadd float
; CHECK: %[[B:.*]] = fadd float %[[A]],
; CHECK: %[[C:.*]] = fadd float %[[B]],
; CHECK: fadd float %[[C]],
; CHECK: load float
; CHECK-NOT: load
; CHECK: ret void
; EIGHT-LABEL: @sum(
; EIGHT-COUNT-8: load float
; EIGHT-NOT: load
; EIGHT: fadd
; ONE-LABEL: @sum(
; ONE: load float
; ONE-NOT: load
; ONE: ret void
define ptx_kernel void @sum(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %first, i64 %n, i64 %step) {
entry:
  %any = icmp slt i64 %first, %n
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %t = fadd float %s, %v
  %next = add i64 %i, %step
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr addrspace(1) %out, align 4
  ret void
}

; What is stored may be what a later iteration loads: the addresses are compared before the loop.
; CHECK-LABEL: @may_overlap(
; CHECK: ptrtoint
; CHECK-COUNT-4: load float
; CHECK-NOT: load
; CHECK-COUNT-4: store float
; ONE-LABEL: @may_overlap(
; ONE-NOT: ptrtoint
; ONE: load float
; ONE-NOT: load
; ONE: ret void
define ptx_kernel void @may_overlap(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %n) {
entry:
  %any = icmp sgt i32 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i32 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %w = fmul float %v, %v
  %q = getelementptr float, ptr addrspace(1) %y, i32 %i
  store float %w, ptr addrspace(1) %q, align 4
  %next = add nsw i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; A division is a fast path and a slow one: two at once.
; CHECK-LABEL: @division(
; CHECK-COUNT-2: load float
; CHECK-NOT: load
; CHECK: store
define ptx_kernel void @division(ptr addrspace(1) noalias %x, ptr addrspace(1) %y, i64 %n, float %a) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %w = fdiv float %a, %v
  %q = getelementptr float, ptr addrspace(1) %y, i64 %i
  store float %w, ptr addrspace(1) %q, align 4
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; A place that is known at run time alone, an atomic operation that orders others: one at a time. A barrier: in order.
; CHECK-LABEL: @scattered(
; CHECK: load i32
; CHECK-NOT: load
; CHECK: ret void
define ptx_kernel void @scattered(ptr addrspace(1) %x, ptr addrspace(1) %y, i64 %first, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr addrspace(1) %x, i64 %i
  %v = load i32, ptr addrspace(1) %p, align 4
  %at = sext i32 %v to i64
  %q = getelementptr i32, ptr addrspace(1) %y, i64 %at
  store i32 %v, ptr addrspace(1) %q, align 4
  %next = add i64 %i, %step
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @atomic(
; CHECK: load i32
; CHECK-NOT: load
; CHECK: ret void
define ptx_kernel void @atomic(ptr addrspace(1) noalias %x, ptr addrspace(1) %y, i64 %first, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr addrspace(1) %x, i64 %i
  %v = load i32, ptr addrspace(1) %p, align 4
  %old = atomicrmw add ptr addrspace(1) %y, i32 %v acq_rel
  %next = add i64 %i, %step
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @barrier(
; CHECK: load float
; CHECK-NOT: load
; CHECK: call void @llvm.nvvm.barrier
; CHECK-NOT: load
; CHECK: store float
; CHECK: load float
; CHECK: ret void
define ptx_kernel void @barrier(ptr addrspace(1) noalias %x, ptr addrspace(1) %y, i64 %first, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %p, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  store float %v, ptr addrspace(1) %y, align 4
  %next = add i64 %i, %step
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Who says something of a loop knows better.
; CHECK-LABEL: @annotated(
; CHECK: load float
; CHECK-NOT: load
; CHECK: ret void
define ptx_kernel void @annotated(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %first, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr float, ptr addrspace(1) %x, i64 %i
  %v = load float, ptr addrspace(1) %p, align 4
  %t = fadd float %s, %v
  %next = add i64 %i, %step
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end, !llvm.loop !0
end:
  store float %t, ptr addrspace(1) %out, align 4
  ret void
}

declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}

; Elements of two sizes, and a store under a condition, whose address may begin below the first of all: one at a time.
; CHECK-LABEL: @below_the_first(
; CHECK: load i16
; CHECK-NOT: load
; CHECK: ret void
define ptx_kernel void @below_the_first(ptr addrspace(1) %x, ptr addrspace(1) %y, i64 %n, i64 %k) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %s = phi i32 [ 0, %entry ], [ %t, %latch ]
  %p = getelementptr i16, ptr addrspace(1) %x, i64 %i
  %v = load i16, ptr addrspace(1) %p, align 2
  %wide = zext i16 %v to i32
  %five = mul i32 %s, 5
  %t = add i32 %five, %wide
  %reached = icmp sge i64 %i, %k
  br i1 %reached, label %writes, label %latch
writes:
  %at = sub nsw i64 %i, %k
  %q = getelementptr i32, ptr addrspace(1) %y, i64 %at
  store i32 %t, ptr addrspace(1) %q, align 4
  br label %latch
latch:
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; A counter of 32 bits that may come around, while the addresses go on: one at a time.
; CHECK-LABEL: @comes_around(
; CHECK: load i16
; CHECK-NOT: load
; CHECK: ret void
define ptx_kernel void @comes_around(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %bound) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %p = phi ptr addrspace(1) [ %x, %entry ], [ %p.next, %loop ]
  %q = phi ptr addrspace(1) [ %y, %entry ], [ %q.next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %t, %loop ]
  %v = load i16, ptr addrspace(1) %p, align 2
  %wide = zext i16 %v to i32
  %five = mul i32 %s, 5
  %t = add i32 %five, %wide
  %byte = trunc i32 %t to i8
  store i8 %byte, ptr addrspace(1) %q, align 1
  %p.next = getelementptr i8, ptr addrspace(1) %p, i64 14
  %q.next = getelementptr i8, ptr addrspace(1) %q, i64 7
  %next = add i32 %i, 7
  %more = icmp ult i32 %next, %bound
  br i1 %more, label %loop, label %end
end:
  ret void
}

; One that does not: several at once, after a comparison of all that they reach.
; CHECK-LABEL: @of_two_sizes(
; CHECK-COUNT-4: load i16
; CHECK-COUNT-4: store i8
; CHECK: load i16
; CHECK-NOT: load
; CHECK: ret void
define ptx_kernel void @of_two_sizes(ptr addrspace(1) %x, ptr addrspace(1) %y, i32 %first, i32 %bound) {
entry:
  %any = icmp ult i32 %first, %bound
  br i1 %any, label %loop, label %end
loop:
  %i = phi i32 [ %first, %entry ], [ %next, %loop ]
  %wide = zext i32 %i to i64
  %p = getelementptr i16, ptr addrspace(1) %x, i64 %wide
  %q = getelementptr i8, ptr addrspace(1) %y, i64 %wide
  %v = load i16, ptr addrspace(1) %p, align 2
  %byte = trunc i16 %v to i8
  store i8 %byte, ptr addrspace(1) %q, align 1
  %next = add nuw i32 %i, 7
  %more = icmp ult i32 %next, %bound
  br i1 %more, label %loop, label %end
end:
  ret void
}
