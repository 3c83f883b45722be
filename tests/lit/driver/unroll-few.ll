; Loops that run at most a few times, how often is not known, are unrolled; an outermost one with branches in it is not: they would
; come between its loads.

; RUN: gpulower compile %s --target sm_90 --emit llvm --llvm-passes 'function(gpulower-leave-unrolling,gpulower-unroll)' -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; From 0 or 1 to below 4 in steps of 2.
; CHECK-LABEL: @inner(
; CHECK-COUNT-2: load float, ptr
; CHECK-NOT: load float, ptr
; CHECK: ret void
define ptx_kernel void @inner(ptr noalias %p, ptr noalias %to, i32 %n, i32 %x) {
entry:
  %start = and i32 %x, 1
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  %row = shl nuw nsw i32 %i, 2
  br label %loop
loop:
  %k = phi i32 [ %start, %outer ], [ %k.next, %loop ]
  %sum = phi float [ 0.0, %outer ], [ %sum.next, %loop ]
  %element = add nuw nsw i32 %row, %k
  %at = getelementptr float, ptr %p, i32 %element
  %value = load float, ptr %at
  %sum.next = fadd float %sum, %value
  %k.next = add nuw nsw i32 %k, 2
  %more = icmp samesign ult i32 %k.next, 4
  br i1 %more, label %loop, label %outer.end
outer.end:
  %to.at = getelementptr float, ptr %to, i32 %i
  store float %sum.next, ptr %to.at
  %i.next = add nuw nsw i32 %i, 1
  %again = icmp slt i32 %i.next, %n
  br i1 %again, label %outer, label %end
end:
  ret void
}

; CHECK-LABEL: @outside(
; CHECK-COUNT-1: load float, ptr
; CHECK-NOT: load float, ptr
; CHECK: ret void
define ptx_kernel void @outside(ptr noalias %p, ptr noalias %to, i32 %n, i32 %x) {
entry:
  %start = and i32 %x, 7
  br label %loop
loop:
  %k = phi i32 [ %start, %entry ], [ %k.next, %latch ]
  %inside = icmp slt i32 %k, %n
  br i1 %inside, label %copy, label %latch
copy:
  %at = getelementptr float, ptr %p, i32 %k
  %value = load float, ptr %at
  %to.at = getelementptr float, ptr %to, i32 %k
  store float %value, ptr %to.at
  br label %latch
latch:
  %k.next = add nuw nsw i32 %k, 8
  %more = icmp samesign ult i32 %k.next, 32
  br i1 %more, label %loop, label %end
end:
  ret void
}
