; Interleaved loops of LLVM IR have the memory of the loop that they were.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; The loop for what is left goes on with the same buffer.
; CHECK-LABEL: .entry history(
; CHECK: .local .align 4 .b8 __local_depot0[16];
define ptx_kernel void @history(ptr addrspace(1) noalias %x, ptr addrspace(1) noalias %y, i64 %n, i64 %m) {
entry:
  %buffer = alloca [4 x float]
  br label %loop

loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i
  %value = load float, ptr addrspace(1) %from
  %slot = and i64 %i, 3
  %at = getelementptr float, ptr %buffer, i64 %slot
  %old = load float, ptr %at
  store float %value, ptr %at
  %early = icmp ult i64 %i, %m
  %result = select i1 %early, float 0.0, float %old
  %to = getelementptr float, ptr addrspace(1) %y, i64 %i
  store float %result, ptr addrspace(1) %to
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

; An argument can be memory of the workgroup; whether what is stored is loaded again is asked before the loop.
; CHECK-LABEL: .entry shifted(
; CHECK: shl.b64 [[DISTANCE:%rd[0-9]+]], {{%rd[0-9]+}}, 2;
; CHECK: add.s64 [[LESS:%rd[0-9]+]], [[DISTANCE]], -1;
; CHECK: setp.lt.u64 {{%p[0-9]+}}, [[LESS]], 15;
; CHECK-COUNT-4: ld.shared.b32
define ptx_kernel void @shifted(ptr addrspace(3) %p, i64 %m, i64 %n) {
entry:
  br label %loop

loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %from = getelementptr float, ptr addrspace(3) %p, i64 %i
  %value = load float, ptr addrspace(3) %from
  %next = add nuw nsw i64 %i, 1
  %sum = fadd float %value, 1.0
  %to = getelementptr float, ptr addrspace(3) %from, i64 %m
  store float %sum, ptr addrspace(3) %to
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

; The index of the next iteration comes from two blocks.
; CHECK-LABEL: .entry merged(
define ptx_kernel void @merged(ptr addrspace(1) noalias %x, ptr addrspace(1) noalias %y, ptr addrspace(1) noalias %z, i64 %n) {
entry:
  br label %loop

loop:
  %i = phi i64 [0, %entry], [%next, %latch]
  %from = getelementptr float, ptr addrspace(1) %x, i64 %i
  %value = load float, ptr addrspace(1) %from
  %positive = fcmp ogt float %value, 0.0
  br i1 %positive, label %yes, label %no

yes:
  %one = add nuw nsw i64 %i, 1
  %at = getelementptr i64, ptr addrspace(1) %z, i64 %one
  store i64 %one, ptr addrspace(1) %at
  br label %latch

no:
  %other = add nuw nsw i64 %i, 1
  store i64 %other, ptr addrspace(1) %y
  br label %latch

latch:
  %next = phi i64 [%one, %yes], [%other, %no]
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

; Along columns of two arrays whose rows have lengths of their own: all that each reaches is compared before the loop.
; CHECK-LABEL: .entry columns(
; CHECK-COUNT-4: ld.global.b32
; CHECK: st.global.b32
; Not where one goes down, or where the counter goes on by more than one.
; CHECK-LABEL: .entry downwards(
; CHECK: ld.global.b32
; CHECK-NOT: ld.global.b32
; CHECK: ret;
; CHECK-LABEL: .entry by_two(
; CHECK: ld.global.b32
; CHECK-NOT: ld.global.b32
; CHECK: ret;
define ptx_kernel void @columns(ptr addrspace(1) %x, ptr addrspace(1) %y, i64 %row, i64 %other, i64 %n, float %a) {
entry:
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide = zext i32 %thread to i64
  br label %loop

loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %last = phi float [0.0, %entry], [%new, %loop]
  %from.row = mul i64 %i, %row
  %from.element = add i64 %from.row, %wide
  %from = getelementptr float, ptr addrspace(1) %x, i64 %from.element
  %value = load float, ptr addrspace(1) %from
  %scaled = fmul float %last, %a
  %new = fadd float %scaled, %value
  %to.row = mul i64 %i, %other
  %to.element = add i64 %to.row, %wide
  %to = getelementptr float, ptr addrspace(1) %y, i64 %to.element
  store float %new, ptr addrspace(1) %to
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

define ptx_kernel void @downwards(ptr addrspace(1) %x, ptr addrspace(1) %y, i64 %row, i64 %other, i64 %n, float %a) {
entry:
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide = zext i32 %thread to i64
  br label %loop

loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %last = phi float [0.0, %entry], [%new, %loop]
  %from.row = mul i64 %i, %row
  %from.element = add i64 %from.row, %wide
  %from = getelementptr float, ptr addrspace(1) %x, i64 %from.element
  %value = load float, ptr addrspace(1) %from
  %scaled = fmul float %last, %a
  %new = fadd float %scaled, %value
  %to.row = mul i64 %i, -3
  %to.element = add i64 %to.row, %wide
  %to = getelementptr float, ptr addrspace(1) %y, i64 %to.element
  store float %new, ptr addrspace(1) %to
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

define ptx_kernel void @by_two(ptr addrspace(1) %x, ptr addrspace(1) %y, i64 %row, i64 %other, i64 %n, float %a) {
entry:
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %wide = zext i32 %thread to i64
  br label %loop

loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %last = phi float [0.0, %entry], [%new, %loop]
  %from.row = mul i64 %i, %row
  %from.element = add i64 %from.row, %wide
  %from = getelementptr float, ptr addrspace(1) %x, i64 %from.element
  %value = load float, ptr addrspace(1) %from
  %scaled = fmul float %last, %a
  %new = fadd float %scaled, %value
  %to.row = mul i64 %i, %other
  %to.element = add i64 %to.row, %wide
  %to = getelementptr float, ptr addrspace(1) %y, i64 %to.element
  store float %new, ptr addrspace(1) %to
  %next = add nuw nsw i64 %i, 2
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %exit

exit:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
