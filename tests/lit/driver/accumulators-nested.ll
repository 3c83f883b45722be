; RUN: gpulower compile %s --target sm_90 --llvm-passes='function(gpulower-keep-accumulators)' --emit llvm -o - | FileCheck %s

; A value of the innermost loop is wanted in the outermost one, to which two copies of the loops within it lead.

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: define ptx_kernel void @nested(
; CHECK: phi i64 [ %changed{{.*}}.met, %inner.met ]
define ptx_kernel void @nested(ptr %p, ptr %q) {
entry:
  br label %outer
outer:
  %last = phi i64 [ 0, %entry ], [ %changed, %end ]
  br label %middle
middle:
  %j = phi i64 [ 0, %outer ], [ %j.next, %end ]
  br label %inner
inner:
  %i = phi i64 [ 0, %middle ], [ %next, %inner ]
  %v = load i64, ptr %q, align 8
  %changed = xor i64 %v, %i
  store i64 0, ptr %p, align 8
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, 7
  br i1 %more, label %inner, label %end
end:
  %j.next = add nsw i64 %j, 1
  %j.more = icmp slt i64 %j.next, 5
  br i1 %j.more, label %middle, label %outer
}
