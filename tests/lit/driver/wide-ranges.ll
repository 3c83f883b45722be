; Loops over signed numbers whose ends are further apart than half of their type, or may be: ptxas computes how much is left as
; a signed difference, and drops iterations where it overflows. They compare unsigned numbers.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; From -2000000000 to 2000000000 by 100.
; CHECK-LABEL: .entry constants(
; CHECK: setp.lt.u32
; CHECK: bra
define ptx_kernel void @constants(ptr %p) {
start:
  br label %loop
loop:
  %i = phi i32 [ -2000000000, %start ], [ %next, %loop ]
  %n = phi i32 [ 0, %start ], [ %more, %loop ]
  %square = mul i32 %n, %i
  %more = add i32 %square, 7
  %next = add nsw i32 %i, 100
  %on = icmp slt i32 %next, 2000000000
  br i1 %on, label %loop, label %end
end:
  store i32 %more, ptr %p
  ret void
}

; Downwards, and ends that nobody knows.
; CHECK-LABEL: .entry downwards(
; CHECK: $L__BB1_2:
; CHECK: setp.gt.u64
define ptx_kernel void @downwards(ptr %p, i64 %from, i64 %to) {
start:
  %some = icmp sgt i64 %from, %to
  br i1 %some, label %loop, label %end
loop:
  %i = phi i64 [ %from, %start ], [ %next, %loop ]
  %n = phi i64 [ 0, %start ], [ %more, %loop ]
  %square = mul i64 %n, %i
  %more = add i64 %square, 7
  %next = add nsw i64 %i, -3
  %on = icmp sgt i64 %next, %to
  br i1 %on, label %loop, label %end
end:
  %last = phi i64 [ 0, %start ], [ %more, %loop ]
  store i64 %last, ptr %p
  ret void
}

; The number before the first is not there until loop strength reduction makes it, and it is above the end.
; CHECK-LABEL: .entry before_the_first(
; CHECK: setp.lt.u64
define ptx_kernel void @before_the_first(ptr %p, i64 %x) {
start:
  %low = and i64 %x, 3
  %first = add nuw nsw i64 %low, -9223372036854016362
  br label %loop
loop:
  %last = phi i64 [ %i, %loop ], [ poison, %start ]
  %i = phi i64 [ %next, %loop ], [ %first, %start ]
  %on = icmp slt i64 %i, 7686143364045646503
  %next = add nsw i64 %i, 1537228672809129301
  br i1 %on, label %loop, label %end
end:
  store i64 %last, ptr %p
  ret void
}

; Three steps are more than the type holds.
; CHECK-LABEL: .entry leaps(
; CHECK: .pragma "nounroll";
; CHECK: bra
define ptx_kernel void @leaps(ptr %p, i32 %x) {
start:
  %bit = and i32 %x, 1
  %first = or disjoint i32 %bit, -2
  br label %loop
loop:
  %last = phi i32 [ poison, %start ], [ %i, %latch ]
  %i = phi i32 [ %first, %start ], [ %next, %latch ]
  %read = load volatile i32, ptr %p
  %is.none = icmp eq i32 %read, 0
  br i1 %is.none, label %none, label %latch
none:
  store volatile i32 1, ptr %p
  br label %latch
latch:
  %next = add nsw i32 %i, 858993459
  %on = icmp slt i32 %i, 858157688
  br i1 %on, label %loop, label %end
end:
  store i32 %last, ptr %p
  ret void
}

; From 0, or from a number of a thread, to any number: the difference fits.
; CHECK-LABEL: .entry near(
; CHECK-NOT: setp.{{[a-z]+}}.u32
define ptx_kernel void @near(ptr %p, i32 %to) {
start:
  %thread = call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %some = icmp slt i32 %thread, %to
  br i1 %some, label %loop, label %end
loop:
  %i = phi i32 [ %thread, %start ], [ %next, %loop ]
  %n = phi i32 [ 0, %start ], [ %more, %loop ]
  %square = mul i32 %n, %i
  %more = add i32 %square, 7
  %next = add nsw i32 %i, 128
  %on = icmp slt i32 %next, %to
  br i1 %on, label %loop, label %end
end:
  %last = phi i32 [ 0, %start ], [ %more, %loop ]
  store i32 %last, ptr %p
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
