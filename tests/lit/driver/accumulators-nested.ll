; RUN: gpulower compile %s --target sm_90 --llvm-passes='function(gpulower-keep-accumulators)' --emit llvm -o - | FileCheck %s

; A value of the innermost loop is wanted in the outermost one, to which two copies of the innermost one lead.

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: define ptx_kernel void @nested(
; CHECK: phi i64 [ %changed.met, %inner.met ]
define ptx_kernel void @nested(ptr %p, ptr %q, i1 %a, i64 %n) {
entry:
  br label %outer
outer:
  %last = phi i64 [ 0, %entry ], [ %changed, %middle.end ]
  br label %middle
middle:
  br label %inner
inner:
  %i = phi i64 [ 0, %middle ], [ %next, %inner ]
  %at = getelementptr i64, ptr %q, i64 %i
  %v = load i64, ptr %at, align 8
  %changed = xor i64 %v, %last
  store i64 %changed, ptr %p, align 8
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %inner, label %middle.end
middle.end:
  br i1 %a, label %middle, label %outer
}
