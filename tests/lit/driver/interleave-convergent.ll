; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=FUNC

; Loops in which threads look at each other's values run four iterations in order where all threads run them equally often: ptxas
; unrolls none of them.
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry votes(
; CHECK-COUNT-5: vote.sync.any.pred
; CHECK-NOT: vote.sync
; CHECK-LABEL: .entry barriers(
; CHECK-COUNT-5: bar.sync
; CHECK-NOT: bar.sync
define ptx_kernel void @votes(ptr noalias %p, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %mixed = xor i32 %i, %tid
  %odd = trunc i32 %mixed to i1
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %odd)
  %one = zext i1 %any to i32
  %sum.next = add i32 %sum, %one
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  store i32 %result, ptr %p
  ret void
}

@buffer = internal addrspace(3) global [64 x i32] undef

define ptx_kernel void @barriers(ptr noalias %p, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %slot = getelementptr i32, ptr addrspace(3) @buffer, i32 %tid
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %value = load i32, ptr addrspace(3) %slot
  %next = add i32 %value, %i
  store i32 %next, ptr addrspace(3) %slot
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  store i32 %n, ptr %p
  ret void
}

; Which of two buffers has its turn is known in each of four iterations.
; CHECK-LABEL: .entry turns(
; CHECK-NOT: xor.b
; CHECK: bar.sync
; CHECK-NOT: xor.b
; CHECK: bar.sync
; CHECK-NOT: xor.b
; CHECK: bar.sync
; CHECK-NOT: xor.b
; CHECK: bar.sync
; CHECK-LABEL: .entry three_turns(
; CHECK: nounroll
; CHECK-COUNT-2: shl.b64
; CHECK: bar.sync
; CHECK: shl.b64
; CHECK-COUNT-3: bar.sync
define ptx_kernel void @turns(ptr noalias %p, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide = zext nneg i32 %tid to i64
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %now = phi i64 [ 0, %entry ], [ %other, %loop ]
  %other = xor i64 %now, 1
  %from = getelementptr [32 x i32], ptr addrspace(3) @buffer, i64 %now, i64 %wide
  %value = load i32, ptr addrspace(3) %from
  %next = add i32 %value, %i
  %to = getelementptr [32 x i32], ptr addrspace(3) @buffer, i64 %other, i64 %wide
  store i32 %next, ptr addrspace(3) %to
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  store i32 %n, ptr %p
  ret void
}

; Of three, it is not.
define ptx_kernel void @three_turns(ptr noalias %p, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide = zext nneg i32 %tid to i64
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %now = phi i64 [ 0, %entry ], [ %second, %loop ]
  %second = phi i64 [ 1, %entry ], [ %third, %loop ]
  %third = phi i64 [ 2, %entry ], [ %now, %loop ]
  %from = getelementptr [16 x i32], ptr addrspace(3) @buffer, i64 %now, i64 %wide
  %value = load i32, ptr addrspace(3) %from
  %next = add i32 %value, %i
  %to = getelementptr [16 x i32], ptr addrspace(3) @buffer, i64 %second, i64 %wide
  store i32 %next, ptr addrspace(3) %to
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  store i32 %n, ptr %p
  ret void
}

; The number of iterations depends on the thread: a copy for each of them would part those that stay together.
; CHECK-LABEL: .entry of_threads(
; CHECK-COUNT-1: vote.sync.any.pred
; CHECK-NOT: vote.sync
define ptx_kernel void @of_threads(ptr noalias %p, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %some = icmp slt i32 %tid, %n
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ %tid, %entry ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %odd = trunc i32 %i to i1
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %odd)
  %one = zext i1 %any to i32
  %sum.next = add i32 %sum, %one
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  store i32 %result, ptr %p
  ret void
}

; Tokens of convergence say who belongs together in one place.
; CHECK-LABEL: .entry tokens(
; CHECK-COUNT-1: vote.sync.any.pred
; CHECK-NOT: vote.sync
; CHECK-LABEL: .entry calls(
define ptx_kernel void @tokens(ptr noalias %p, i32 %n) convergent {
entry:
  %all = call token @llvm.experimental.convergence.entry()
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %same = call token @llvm.experimental.convergence.loop() [ "convergencectrl"(token %all) ]
  %odd = trunc i32 %sum to i1
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %odd) [ "convergencectrl"(token %same) ]
  %one = zext i1 %any to i32
  %sum.next = add i32 %i, %one
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  store i32 %sum.next, ptr %p
  ret void
}

declare token @llvm.experimental.convergence.entry()
declare token @llvm.experimental.convergence.loop()

; Nor is it known of what a function is given.
; FUNC: .entry calls(
; FUNC: .func {{.*}} of_a_function(
; FUNC: vote.sync.any.pred
; FUNC-NOT: vote.sync
define ptx_kernel void @calls(ptr %p, ptr %q) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr i32, ptr %p, i32 %tid
  %n = load i32, ptr %at
  %result = call i32 @of_a_function(i32 %n, i32 %tid)
  store i32 %result, ptr %q
  ret void
}

define internal i32 @of_a_function(i32 %n, i32 %x) noinline {
entry:
  br label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %mixed = xor i32 %i, %x
  %odd = trunc i32 %mixed to i1
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %odd)
  %one = zext i1 %any to i32
  %sum.next = add i32 %sum, %one
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  ret i32 %sum.next
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i1 @llvm.nvvm.vote.any.sync(i32, i1)
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)

; How often is read from memory, of one place for all threads.
; FUNC: .entry as_often_as_it_says(
; CHECK-LABEL: .entry as_often_as_it_says(
; CHECK-COUNT-5: vote.sync.any.pred
; CHECK-NOT: vote.sync
; CHECK-LABEL: .entry as_each_says(
; CHECK-COUNT-1: vote.sync.any.pred
; CHECK-NOT: vote.sync
; CHECK-LABEL: .entry as_the_last_one_said(
; CHECK-COUNT-1: vote.sync.any.pred
; CHECK-NOT: vote.sync
; CHECK-LABEL: .entry as_its_own_says(
; CHECK-COUNT-1: vote.sync.any.pred
; CHECK-NOT: vote.sync
define ptx_kernel void @as_often_as_it_says(ptr noalias %p, ptr noalias %lengths) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %at = getelementptr i32, ptr %lengths, i32 %block
  %n = load i32, ptr %at
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %mixed = xor i32 %i, %tid
  %odd = trunc i32 %mixed to i1
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %odd)
  %one = zext i1 %any to i32
  %sum.next = add i32 %sum, %one
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  store i32 %result, ptr %p
  ret void
}

define ptx_kernel void @as_each_says(ptr noalias %p, ptr noalias %lengths) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %at = getelementptr i32, ptr %lengths, i32 %tid
  %n = load i32, ptr %at
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %mixed = xor i32 %i, %tid
  %odd = trunc i32 %mixed to i1
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %odd)
  %one = zext i1 %any to i32
  %sum.next = add i32 %sum, %one
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  store i32 %result, ptr %p
  ret void
}

; Where threads take turns, each may read what it has written in its own.
define ptx_kernel void @as_the_last_one_said(ptr noalias %p, ptr %turn, ptr %lengths) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %wait

wait:
  %whose = load atomic i32, ptr %turn acquire, align 4
  %mine = icmp eq i32 %whose, %tid
  br i1 %mine, label %go, label %wait

go:
  %n = load i32, ptr %lengths
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ 0, %go ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %go ], [ %sum.next, %loop ]
  %mixed = xor i32 %i, %tid
  %odd = trunc i32 %mixed to i1
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %odd)
  %one = zext i1 %any to i32
  %sum.next = add i32 %sum, %one
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi i32 [ 0, %go ], [ %sum.next, %loop ]
  store i32 %result, ptr %p
  ret void
}

; Memory that each thread has of its own, in which one place is many.
define ptx_kernel void @as_its_own_says(ptr noalias %p, i32 %k) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %own = alloca [64 x i32]
  %mine = getelementptr i32, ptr %own, i32 %k
  store volatile i32 %tid, ptr %mine
  %at = getelementptr i32, ptr %own, i32 5
  %n = load i32, ptr %at
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %mixed = xor i32 %i, %tid
  %odd = trunc i32 %mixed to i1
  %any = call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %odd)
  %one = zext i1 %any to i32
  %sum.next = add i32 %sum, %one
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  store i32 %result, ptr %p
  ret void
}
