; Loops that ptxas does not unroll, since they branch or are large, each before one that it is left to.

; RUN: gpulower compile %s --target sm_90 --emit llvm --llvm-passes 'function(gpulower-interleave<4>)' -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [8192 x float] undef

; What is done with the load is in branches: the loads of four iterations come first.
; CHECK-LABEL: @chooses(
; CHECK: main:
; CHECK-COUNT-4: load float
; CHECK: br i1
define ptx_kernel void @chooses(ptr noalias readonly %p, ptr %to, i32 %n) {
entry:
  %tid = call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %j = phi i32 [ %tid, %entry ], [ %j.next, %latch ]
  %first = phi float [ 0.0, %entry ], [ %first.next, %latch ]
  %second = phi float [ 0.0, %entry ], [ %second.next, %latch ]
  %at = getelementptr float, ptr %p, i32 %j
  %value = load float, ptr %at
  %more.than.second = fcmp ogt float %value, %second
  br i1 %more.than.second, label %more, label %latch
more:
  %more.than.first = fcmp ogt float %value, %first
  br i1 %more.than.first, label %most, label %latch
most:
  br label %latch
latch:
  %first.next = phi float [ %first, %loop ], [ %first, %more ], [ %value, %most ]
  %second.next = phi float [ %second, %loop ], [ %value, %more ], [ %first, %most ]
  %j.next = add nuw nsw i32 %j, 32
  %again = icmp slt i32 %j.next, %n
  br i1 %again, label %loop, label %end
end:
  %sum = fadd float %first.next, %second.next
  store float %sum, ptr %to
  ret void
}

; A load under the condition: ptxas makes a predicate of it, and puts several beside each other.
; CHECK-LABEL: @loads_when_chosen(
; CHECK-NOT: main:
define ptx_kernel void @loads_when_chosen(ptr noalias readonly %p, ptr noalias readonly %q, ptr %to, i32 %n) {
entry:
  %tid = call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %loop
loop:
  %j = phi i32 [ %tid, %entry ], [ %j.next, %latch ]
  %first = phi float [ 0.0, %entry ], [ %first.next, %latch ]
  %second = phi float [ 0.0, %entry ], [ %second.next, %latch ]
  %at = getelementptr float, ptr %p, i32 %j
  %value = load float, ptr %at
  %more.than.second = fcmp ogt float %value, %second
  br i1 %more.than.second, label %more, label %latch
more:
  %more.than.first = fcmp ogt float %value, %first
  br i1 %more.than.first, label %most, label %latch
most:
  %other.at = getelementptr float, ptr %q, i32 %j
  %other = load float, ptr %other.at
  br label %latch
latch:
  %first.next = phi float [ %first, %loop ], [ %first, %more ], [ %other, %most ]
  %second.next = phi float [ %second, %loop ], [ %value, %more ], [ %first, %most ]
  %j.next = add nuw nsw i32 %j, 32
  %again = icmp slt i32 %j.next, %n
  br i1 %again, label %loop, label %end
end:
  %sum = fadd float %first.next, %second.next
  store float %sum, ptr %to
  ret void
}

; More than 80 instructions with a division, which is branches: two in order.
; CHECK-LABEL: @divides(
; CHECK: main:
; CHECK: fdiv
; CHECK: fdiv
; CHECK: br i1
define ptx_kernel void @divides(ptr addrspace(1) %to, i32 %n, <32 x float> %a) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  br label %loop
loop:
  %j = phi i32 [ 0, %outer ], [ %j.next, %loop ]
  %sum = phi <32 x float> [ zeroinitializer, %outer ], [ %sum.next, %loop ]
  %at = getelementptr float, ptr addrspace(3) @tile, i32 %j
  %value = load float, ptr addrspace(3) %at
  %quotient = fdiv float %value, 3.0
  %one = insertelement <32 x float> %a, float %quotient, i32 0
  %product = fmul <32 x float> %one, %sum
  %two = fadd <32 x float> %product, %a
  %sum.next = fadd <32 x float> %sum, %two
  %j.next = add nuw nsw i32 %j, 1
  %again = icmp slt i32 %j.next, %n
  br i1 %again, label %loop, label %outer.end
outer.end:
  store <32 x float> %sum.next, ptr addrspace(1) %to
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %outer, label %end
end:
  ret void
}

; CHECK-LABEL: @multiplies(
; CHECK-NOT: main:
define ptx_kernel void @multiplies(ptr addrspace(1) %to, i32 %n, <32 x float> %a) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  br label %loop
loop:
  %j = phi i32 [ 0, %outer ], [ %j.next, %loop ]
  %sum = phi <32 x float> [ zeroinitializer, %outer ], [ %sum.next, %loop ]
  %at = getelementptr float, ptr addrspace(3) @tile, i32 %j
  %value = load float, ptr addrspace(3) %at
  %quotient = fmul float %value, 3.0
  %one = insertelement <32 x float> %a, float %quotient, i32 0
  %product = fmul <32 x float> %one, %sum
  %two = fadd <32 x float> %product, %a
  %sum.next = fadd <32 x float> %sum, %two
  %j.next = add nuw nsw i32 %j, 1
  %again = icmp slt i32 %j.next, %n
  br i1 %again, label %loop, label %outer.end
outer.end:
  store <32 x float> %sum.next, ptr addrspace(1) %to
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %outer, label %end
end:
  ret void
}

; Another loop is around it, the threads of a warp share it, and its addresses would have to be compared each time.
; CHECK-LABEL: @copies_shared(
; CHECK-NOT: main:
define ptx_kernel void @copies_shared(ptr addrspace(1) %p, ptr addrspace(1) %to, i64 %n, i64 %m) {
entry:
  %tid = call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = zext nneg i32 %tid to i64
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %outer.end ]
  %row = mul i64 %i, %n
  br label %loop
loop:
  %j = phi i64 [ %lane, %outer ], [ %j.next, %loop ]
  %element = add i64 %row, %j
  %from = getelementptr float, ptr addrspace(1) %p, i64 %element
  %value = load float, ptr addrspace(1) %from
  %twice = fadd float %value, %value
  %at = getelementptr float, ptr addrspace(1) %to, i64 %element
  store float %twice, ptr addrspace(1) %at
  %j.next = add nuw nsw i64 %j, 32
  %again = icmp slt i64 %j.next, %n
  br i1 %again, label %loop, label %outer.end
outer.end:
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %m
  br i1 %more, label %outer, label %end
end:
  ret void
}

; CHECK-LABEL: @copies_alone(
; CHECK: main:
define ptx_kernel void @copies_alone(ptr addrspace(1) %p, ptr addrspace(1) %to, i64 %n, i64 %m) {
entry:
  %tid = call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %lane = zext nneg i32 %tid to i64
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %outer.end ]
  %row = mul i64 %i, %n
  br label %loop
loop:
  %j = phi i64 [ %lane, %outer ], [ %j.next, %loop ]
  %element = add i64 %row, %j
  %from = getelementptr float, ptr addrspace(1) %p, i64 %element
  %value = load float, ptr addrspace(1) %from
  %twice = fadd float %value, %value
  %at = getelementptr float, ptr addrspace(1) %to, i64 %element
  store float %twice, ptr addrspace(1) %at
  %j.next = add nuw nsw i64 %j, 1
  %again = icmp slt i64 %j.next, %n
  br i1 %again, label %loop, label %outer.end
outer.end:
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %m
  br i1 %more, label %outer, label %end
end:
  ret void
}

; An inner loop that reads workgroup memory alone and branches runs four iterations in order; of other memory it is left to ptxas,
; which may make predicates of the branches.
; CHECK-LABEL: @chooses_from_group(
; CHECK: main:
; CHECK-LABEL: @chooses_from_all(
; CHECK-NOT: main:
; CHECK: ret void
define ptx_kernel void @chooses_from_group(ptr addrspace(1) noalias %to, i32 %n, i32 %m) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  br label %loop
loop:
  %j = phi i32 [ 0, %outer ], [ %j.next, %latch ]
  %best = phi float [ 0.0, %outer ], [ %best.next, %latch ]
  %at = getelementptr float, ptr addrspace(3) @tile, i32 %j
  %value = load float, ptr addrspace(3) %at
  %more = fcmp ogt float %value, %best
  br i1 %more, label %chosen, label %latch
chosen:
  %second.at = getelementptr i8, ptr addrspace(3) %at, i32 128
  %second = load float, ptr addrspace(3) %second.at
  %sum = fadd float %second, %value
  br label %latch
latch:
  %best.next = phi float [ %best, %loop ], [ %sum, %chosen ]
  %j.next = add nuw nsw i32 %j, 1
  %again = icmp slt i32 %j.next, %n
  br i1 %again, label %loop, label %outer.end
outer.end:
  %place = getelementptr float, ptr addrspace(1) %to, i32 %i
  store float %best.next, ptr addrspace(1) %place
  %i.next = add nuw nsw i32 %i, 1
  %further = icmp slt i32 %i.next, %m
  br i1 %further, label %outer, label %end
end:
  ret void
}

define ptx_kernel void @chooses_from_all(ptr addrspace(1) noalias readonly %p, ptr addrspace(1) noalias %to, i32 %n, i32 %m) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  br label %loop
loop:
  %j = phi i32 [ 0, %outer ], [ %j.next, %latch ]
  %best = phi float [ 0.0, %outer ], [ %best.next, %latch ]
  %at = getelementptr float, ptr addrspace(1) %p, i32 %j
  %value = load float, ptr addrspace(1) %at
  %more = fcmp ogt float %value, %best
  br i1 %more, label %chosen, label %latch
chosen:
  %second.at = getelementptr i8, ptr addrspace(1) %at, i32 128
  %second = load float, ptr addrspace(1) %second.at
  %sum = fadd float %second, %value
  br label %latch
latch:
  %best.next = phi float [ %best, %loop ], [ %sum, %chosen ]
  %j.next = add nuw nsw i32 %j, 1
  %again = icmp slt i32 %j.next, %n
  br i1 %again, label %loop, label %outer.end
outer.end:
  %place = getelementptr float, ptr addrspace(1) %to, i32 %i
  store float %best.next, ptr addrspace(1) %place
  %i.next = add nuw nsw i32 %i, 1
  %further = icmp slt i32 %i.next, %m
  br i1 %further, label %outer, label %end
end:
  ret void
}

; The same without branches, if it is too long for ptxas to unroll it: here, integers of 64 bits, which are two instructions each.
; CHECK-LABEL: @counts_bits_of_group(
; CHECK: main:
; CHECK-LABEL: @counts_few_bits_of_group(
; CHECK-NOT: main:
; CHECK: ret void
define ptx_kernel void @counts_bits_of_group(ptr addrspace(1) noalias %to, i64 %key, i32 %n, i32 %m) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  br label %loop
loop:
  %j = phi i32 [ 0, %outer ], [ %j.next, %loop ]
  %best = phi i64 [ 256, %outer ], [ %best.next, %loop ]
  %first = shl i32 %j, 2
  %at = getelementptr i64, ptr addrspace(3) @tile, i32 %first
  %at0 = getelementptr i64, ptr addrspace(3) %at, i32 0
  %v0 = load i64, ptr addrspace(3) %at0
  %x0 = xor i64 %v0, %key
  %w0 = call i64 @llvm.ctpop.i64(i64 %x0)
  %at1 = getelementptr i64, ptr addrspace(3) %at, i32 1
  %v1 = load i64, ptr addrspace(3) %at1
  %x1 = xor i64 %v1, %key
  %w1 = call i64 @llvm.ctpop.i64(i64 %x1)
  %at2 = getelementptr i64, ptr addrspace(3) %at, i32 2
  %v2 = load i64, ptr addrspace(3) %at2
  %x2 = xor i64 %v2, %key
  %w2 = call i64 @llvm.ctpop.i64(i64 %x2)
  %at3 = getelementptr i64, ptr addrspace(3) %at, i32 3
  %v3 = load i64, ptr addrspace(3) %at3
  %x3 = xor i64 %v3, %key
  %w3 = call i64 @llvm.ctpop.i64(i64 %x3)
  %s1 = add i64 %w0, %w1
  %s2 = add i64 %s1, %w2
  %s3 = add i64 %s2, %w3
  %best.next = call i64 @llvm.umin.i64(i64 %best, i64 %s3)
  %j.next = add nuw nsw i32 %j, 1
  %again = icmp slt i32 %j.next, %n
  br i1 %again, label %loop, label %outer.end
outer.end:
  %place = getelementptr i64, ptr addrspace(1) %to, i32 %i
  store i64 %best.next, ptr addrspace(1) %place
  %i.next = add nuw nsw i32 %i, 1
  %further = icmp slt i32 %i.next, %m
  br i1 %further, label %outer, label %end
end:
  ret void
}

define ptx_kernel void @counts_few_bits_of_group(ptr addrspace(1) noalias %to, i64 %key, i32 %n, i32 %m) {
entry:
  br label %outer
outer:
  %i = phi i32 [ 0, %entry ], [ %i.next, %outer.end ]
  br label %loop
loop:
  %j = phi i32 [ 0, %outer ], [ %j.next, %loop ]
  %best = phi i64 [ 256, %outer ], [ %best.next, %loop ]
  %first = shl i32 %j, 2
  %at = getelementptr i64, ptr addrspace(3) @tile, i32 %first
  %at0 = getelementptr i64, ptr addrspace(3) %at, i32 0
  %v0 = load i64, ptr addrspace(3) %at0
  %x0 = xor i64 %v0, %key
  %w0 = call i64 @llvm.ctpop.i64(i64 %x0)
  %best.next = call i64 @llvm.umin.i64(i64 %best, i64 %w0)
  %j.next = add nuw nsw i32 %j, 1
  %again = icmp slt i32 %j.next, %n
  br i1 %again, label %loop, label %outer.end
outer.end:
  %place = getelementptr i64, ptr addrspace(1) %to, i32 %i
  store i64 %best.next, ptr addrspace(1) %place
  %i.next = add nuw nsw i32 %i, 1
  %further = icmp slt i32 %i.next, %m
  br i1 %further, label %outer, label %end
end:
  ret void
}
