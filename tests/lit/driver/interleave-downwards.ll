; Loops whose counter goes down run several iterations at once, as those do whose counter goes up.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit llvm --llvm-passes 'function(gpulower-interleave<4>)' -o - | FileCheck %s --check-prefix=PASS

target triple = "nvptx64-nvidia-cuda"

; Four times, and once for what is left.
; CHECK-LABEL: .entry to_zero(
; CHECK-COUNT-5: ex2.approx
; CHECK-NOT: ex2.approx
; CHECK-LABEL: .entry left_alone(
; CHECK-COUNT-1: ex2.approx
; CHECK-NOT: ex2.approx
; CHECK-LABEL: .entry at_least_once(
define ptx_kernel void @to_zero(ptr noalias %x, ptr noalias %y, i32 %n) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %exit
loop:
  %i = phi i32 [ %n, %entry ], [ %i.next, %loop ]
  %i.next = add nsw i32 %i, -1
  %wide = zext nneg i32 %i.next to i64
  %from = getelementptr inbounds float, ptr %x, i64 %wide
  %value = load float, ptr %from
  %power = call float @llvm.nvvm.ex2.approx.f(float %value)
  %to = getelementptr inbounds float, ptr %y, i64 %wide
  store float %power, ptr %to
  %more = icmp ugt i32 %i, 1
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; The end is below 0, the step is not one, and nothing says that the counter does not come around.
define ptx_kernel void @left_alone(ptr noalias %x, ptr noalias %y, i32 %n, i32 %end) {
entry:
  br label %loop
loop:
  %i = phi i32 [ %n, %entry ], [ %i.next, %loop ]
  %i.next = add i32 %i, -3
  %wide = sext i32 %i.next to i64
  %from = getelementptr float, ptr %x, i64 %wide
  %value = load float, ptr %from
  %power = call float @llvm.nvvm.ex2.approx.f(float %value)
  %to = getelementptr float, ptr %y, i64 %wide
  store float %power, ptr %to
  %more = icmp sgt i32 %i.next, %end
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; It runs once where it begins at or below its end: as many iterations are counted only where it begins above.
; PASS-LABEL: @at_least_once(
; PASS: [[DISTANCE:%.*]] = add i32 %n, -4
; PASS: [[ABOVE:%.*]] = icmp sge i32
; PASS: select i1 [[ABOVE]], i32 [[DISTANCE]], i32 0
define ptx_kernel void @at_least_once(ptr noalias %x, ptr noalias %y, i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ %n, %entry ], [ %i.next, %loop ]
  %i.next = add nsw i32 %i, -2
  %wide = sext i32 %i.next to i64
  %from = getelementptr float, ptr %x, i64 %wide
  %value = load float, ptr %from
  %power = call float @llvm.nvvm.ex2.approx.f(float %value)
  %to = getelementptr float, ptr %y, i64 %wide
  store float %power, ptr %to
  %more = icmp sgt i32 %i.next, 4
  br i1 %more, label %loop, label %exit
exit:
  ret void
}

; Nothing is left behind where the loop stays as it is, neither of the counter nor of its flags.
; PASS-LABEL: @volatile_stores(
; PASS-NEXT: entry:
; PASS-NEXT: [[FIRST:%.*]] = add nsw i32 %n, -1
; PASS-NEXT: br label %loop
; PASS: loop:
; PASS-NEXT: = phi i32 [ [[FIRST]], %entry ]
; PASS-NEXT: sext
define ptx_kernel void @volatile_stores(ptr %x, i32 %n) {
entry:
  %first = add nsw i32 %n, -1
  br label %loop
loop:
  %i = phi i32 [ %first, %entry ], [ %i.next, %loop ]
  %wide = sext i32 %i to i64
  %to = getelementptr float, ptr %x, i64 %wide
  store volatile float 0.0, ptr %to
  %i.next = add nsw i32 %i, -1
  %more = icmp sgt i32 %i.next, 0
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
