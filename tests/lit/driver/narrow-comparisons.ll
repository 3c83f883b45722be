; Numbers of 64 bits are compared in 32 bits in loops where both fit, but for the end of a loop, by which ptxas counts iterations.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

; The counter stays below 2^31, and the thread's number as well.
; CHECK-LABEL: .entry narrow(
; CHECK: setp.lt.s32
; CHECK: setp.{{[a-z]+}}.{{[a-z]}}64
define ptx_kernel void @narrow(ptr addrspace(1) %p, i32 %n) {
entry:
  %tid32 = call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %tid = zext nneg i32 %tid32 to i64
  %limit = sext i32 %n to i64
  %any = icmp sgt i32 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %left = sub nsw i64 15, %i
  %is = icmp slt i64 %tid, %left
  %value = select i1 %is, i32 1, i32 2
  store volatile i32 %value, ptr addrspace(1) %p
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %limit
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Of a counter that goes on to any number nothing is known.
; CHECK-LABEL: .entry wide(
; CHECK-NOT: setp.lt.s32
define ptx_kernel void @wide(ptr addrspace(1) %p, i64 %n) {
entry:
  %tid32 = call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %tid = zext nneg i32 %tid32 to i64
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %left = sub nsw i64 15, %i
  %is = icmp slt i64 %tid, %left
  %value = select i1 %is, i32 1, i32 2
  store volatile i32 %value, ptr addrspace(1) %p
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
