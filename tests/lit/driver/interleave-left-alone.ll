; Loops that run several iterations at once for nothing, each before one that differs where it matters and does.

; RUN: gpulower compile %s --target sm_90 --emit llvm --llvm-passes 'function(gpulower-interleave<4>)' -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [8192 x float] undef
@other = internal addrspace(3) global [2048 x float] undef

; At most four iterations in each of another loop.
; CHECK-LABEL: @fills_tile(
; CHECK-NOT: main:
define ptx_kernel void @fills_tile(ptr noalias readonly %p, i32 %n, i32 %m) {
entry:
  %tid = call range(i32 0, 256) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %outer
outer:
  %k = phi i32 [ 0, %entry ], [ %k.next, %outer.end ]
  br label %fill
fill:
  %e = phi i32 [ %tid, %outer ], [ %e.next, %fill ]
  %from = getelementptr float, ptr %p, i32 %e
  %value = load float, ptr %from
  %to = getelementptr float, ptr addrspace(3) @tile, i32 %e
  store float %value, ptr addrspace(3) %to
  %e.next = add nuw nsw i32 %e, 256
  %more.e = icmp slt i32 %e.next, 1024
  br i1 %more.e, label %fill, label %outer.end
outer.end:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %k.next = add nuw nsw i32 %k, 1
  %more.k = icmp slt i32 %k.next, %n
  br i1 %more.k, label %outer, label %end
end:
  ret void
}

; CHECK-LABEL: @fills_more(
; CHECK: main:
define ptx_kernel void @fills_more(ptr noalias readonly %p, i32 %n, i32 %m) {
entry:
  %tid = call range(i32 0, 256) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %outer
outer:
  %k = phi i32 [ 0, %entry ], [ %k.next, %outer.end ]
  br label %fill
fill:
  %e = phi i32 [ %tid, %outer ], [ %e.next, %fill ]
  %from = getelementptr float, ptr %p, i32 %e
  %value = load float, ptr %from
  %to = getelementptr float, ptr addrspace(3) @tile, i32 %e
  store float %value, ptr addrspace(3) %to
  %e.next = add nuw nsw i32 %e, 256
  %more.e = icmp slt i32 %e.next, 8192
  br i1 %more.e, label %fill, label %outer.end
outer.end:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %k.next = add nuw nsw i32 %k, 1
  %more.k = icmp slt i32 %k.next, %n
  br i1 %more.k, label %outer, label %end
end:
  ret void
}

; Inside another loop, what workgroup memory has is soon there.
; CHECK-LABEL: @from_workgroup(
; CHECK-NOT: main:
define ptx_kernel void @from_workgroup(ptr noalias readonly %p, i32 %n, i32 %m) {
entry:
  %tid = call range(i32 0, 256) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %outer
outer:
  %k = phi i32 [ 0, %entry ], [ %k.next, %outer.end ]
  br label %fill
fill:
  %e = phi i32 [ %tid, %outer ], [ %e.next, %fill ]
  %from = getelementptr float, ptr addrspace(3) @other, i32 %e
  %value = load float, ptr addrspace(3) %from
  %to = getelementptr float, ptr addrspace(3) @tile, i32 %e
  store float %value, ptr addrspace(3) %to
  %e.next = add nuw nsw i32 %e, 256
  %more.e = icmp slt i32 %e.next, %m
  br i1 %more.e, label %fill, label %outer.end
outer.end:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %k.next = add nuw nsw i32 %k, 1
  %more.k = icmp slt i32 %k.next, %n
  br i1 %more.k, label %outer, label %end
end:
  ret void
}

; CHECK-LABEL: @from_global(
; CHECK: main:
define ptx_kernel void @from_global(ptr noalias readonly %p, i32 %n, i32 %m) {
entry:
  %tid = call range(i32 0, 256) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  br label %outer
outer:
  %k = phi i32 [ 0, %entry ], [ %k.next, %outer.end ]
  br label %fill
fill:
  %e = phi i32 [ %tid, %outer ], [ %e.next, %fill ]
  %from = getelementptr float, ptr %p, i32 %e
  %value = load float, ptr %from
  %to = getelementptr float, ptr addrspace(3) @tile, i32 %e
  store float %value, ptr addrspace(3) %to
  %e.next = add nuw nsw i32 %e, 256
  %more.e = icmp slt i32 %e.next, %m
  br i1 %more.e, label %fill, label %outer.end
outer.end:
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %k.next = add nuw nsw i32 %k, 1
  %more.k = icmp slt i32 %k.next, %n
  br i1 %more.k, label %outer, label %end
end:
  ret void
}

; A load under a condition, of a place that another load tells.
; CHECK-LABEL: @gathers(
; CHECK-NOT: main:
define ptx_kernel void @gathers(ptr noalias readonly %p, ptr noalias readonly %q, ptr noalias %to, i32 %n, i32 %live) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %later ]
  %sum = phi float [ 0.0, %entry ], [ %sum.next, %later ]
  %place = getelementptr i32, ptr %p, i32 %i
  %at = load i32, ptr %place
  %inside = icmp ult i32 %at, %live
  br i1 %inside, label %take, label %later
take:
  %from = getelementptr float, ptr %q, i32 %at
  %value = load float, ptr %from
  %w0 = call float @llvm.fma.f32(float %value, float %value, float %value)
  %w1 = call float @llvm.fma.f32(float %w0, float %value, float %w0)
  %w2 = call float @llvm.fma.f32(float %w1, float %value, float %w1)
  %w3 = call float @llvm.fma.f32(float %w2, float %value, float %w2)
  %w4 = call float @llvm.fma.f32(float %w3, float %value, float %w3)
  %w5 = call float @llvm.fma.f32(float %w4, float %value, float %w4)
  %w6 = call float @llvm.fma.f32(float %w5, float %value, float %w5)
  %w7 = call float @llvm.fma.f32(float %w6, float %value, float %w6)
  %w8 = call float @llvm.fma.f32(float %w7, float %value, float %w7)
  %w9 = call float @llvm.fma.f32(float %w8, float %value, float %w8)
  %w10 = call float @llvm.fma.f32(float %w9, float %value, float %w9)
  %w11 = call float @llvm.fma.f32(float %w10, float %value, float %w10)
  %scale = sitofp i32 %at to float
  %product = fmul float %w11, %scale
  %more.sum = fadd float %sum, %product
  br label %later
later:
  %sum.next = phi float [ %sum, %loop ], [ %more.sum, %take ]
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  %result = phi float [ 0.0, %entry ], [ %sum.next, %later ]
  store float %result, ptr %to
  ret void
}

; CHECK-LABEL: @under_condition(
; CHECK: main:
define ptx_kernel void @under_condition(ptr noalias readonly %p, ptr noalias readonly %q, ptr noalias %to, i32 %n, i32 %live) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %later ]
  %sum = phi float [ 0.0, %entry ], [ %sum.next, %later ]
  %place = getelementptr i32, ptr %p, i32 %i
  %at = load i32, ptr %place
  %inside = icmp ult i32 %i, %live
  br i1 %inside, label %take, label %later
take:
  %from = getelementptr float, ptr %q, i32 %i
  %value = load float, ptr %from
  %w0 = call float @llvm.fma.f32(float %value, float %value, float %value)
  %w1 = call float @llvm.fma.f32(float %w0, float %value, float %w0)
  %w2 = call float @llvm.fma.f32(float %w1, float %value, float %w1)
  %w3 = call float @llvm.fma.f32(float %w2, float %value, float %w2)
  %w4 = call float @llvm.fma.f32(float %w3, float %value, float %w3)
  %w5 = call float @llvm.fma.f32(float %w4, float %value, float %w4)
  %w6 = call float @llvm.fma.f32(float %w5, float %value, float %w5)
  %w7 = call float @llvm.fma.f32(float %w6, float %value, float %w6)
  %w8 = call float @llvm.fma.f32(float %w7, float %value, float %w7)
  %w9 = call float @llvm.fma.f32(float %w8, float %value, float %w8)
  %w10 = call float @llvm.fma.f32(float %w9, float %value, float %w9)
  %w11 = call float @llvm.fma.f32(float %w10, float %value, float %w10)
  %scale = sitofp i32 %at to float
  %product = fmul float %w11, %scale
  %more.sum = fadd float %sum, %product
  br label %later
later:
  %sum.next = phi float [ %sum, %loop ], [ %more.sum, %take ]
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  %result = phi float [ 0.0, %entry ], [ %sum.next, %later ]
  store float %result, ptr %to
  ret void
}

; More than 80 instructions and a barrier, which no load can pass.
; CHECK-LABEL: @large_with_barrier(
; CHECK-NOT: main:
define ptx_kernel void @large_with_barrier(ptr %p, ptr noalias %to, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %slot = getelementptr <32 x float>, ptr addrspace(3) @tile, i32 %tid
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %place = getelementptr <32 x float>, ptr %p, i32 %i
  %value = load <32 x float>, ptr %place
  %square = fmul <32 x float> %value, %value
  %cube = fmul <32 x float> %square, %value
  %sum = fadd <32 x float> %cube, %value
  store <32 x float> %sum, ptr addrspace(3) %slot
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  %result = load float, ptr addrspace(3) %slot
  store float %result, ptr %to
  ret void
}

; CHECK-LABEL: @reads_what_stays(
; CHECK: main:
define ptx_kernel void @reads_what_stays(ptr noalias readonly %p, ptr noalias %to, i32 %n) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %slot = getelementptr <32 x float>, ptr addrspace(3) @tile, i32 %tid
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %place = getelementptr <32 x float>, ptr %p, i32 %i
  %value = load <32 x float>, ptr %place
  %square = fmul <32 x float> %value, %value
  %cube = fmul <32 x float> %square, %value
  %sum = fadd <32 x float> %cube, %value
  store <32 x float> %sum, ptr addrspace(3) %slot
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  %result = load float, ptr addrspace(3) %slot
  store float %result, ptr %to
  ret void
}

; Three arrays that are read and one that is written, by steps that are not known: 16 addresses for four iterations.
; CHECK-LABEL: @three_written(
; CHECK-NOT: main:
define ptx_kernel void @three_written(ptr noalias readonly %a0, ptr noalias readonly %a1, ptr noalias readonly %a2, ptr noalias %out, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %from0 = getelementptr float, ptr %a0, i64 %i
  %v0 = load float, ptr %from0
  %from1 = getelementptr float, ptr %a1, i64 %i
  %v1 = load float, ptr %from1
  %from2 = getelementptr float, ptr %a2, i64 %i
  %v2 = load float, ptr %from2
  %s1 = fadd float %v0, %v1
  %s2 = fadd float %s1, %v2
  %to = getelementptr float, ptr %out, i64 %i
  store float %s2, ptr %to
  %i.next = add nuw nsw i64 %i, %step
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @two_written(
; CHECK: main:
define ptx_kernel void @two_written(ptr noalias readonly %a0, ptr noalias readonly %a1, ptr noalias %out, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %from0 = getelementptr float, ptr %a0, i64 %i
  %v0 = load float, ptr %from0
  %from1 = getelementptr float, ptr %a1, i64 %i
  %v1 = load float, ptr %from1
  %s1 = fadd float %v0, %v1
  %to = getelementptr float, ptr %out, i64 %i
  store float %s1, ptr %to
  %i.next = add nuw nsw i64 %i, %step
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; 32 bytes for each iteration, and much to do with them.
; CHECK-LABEL: @enough(
; CHECK-NOT: main:
define ptx_kernel void @enough(ptr noalias readonly %a, ptr noalias %out, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %from = getelementptr [8 x float], ptr %a, i64 %i
  %x = load <4 x float>, ptr %from, align 16
  %more.from = getelementptr inbounds i8, ptr %from, i64 16
  %y = load <4 x float>, ptr %more.from, align 16
  %w0 = fadd <4 x float> %x, %x
  %w1 = fadd <4 x float> %w0, %x
  %w2 = fadd <4 x float> %w1, %x
  %w3 = fadd <4 x float> %w2, %x
  %w4 = fadd <4 x float> %w3, %x
  %w5 = fadd <4 x float> %w4, %x
  %w6 = fadd <4 x float> %w5, %x
  %w7 = fadd <4 x float> %w6, %x
  %w8 = fadd <4 x float> %w7, %x
  %w9 = fadd <4 x float> %w8, %x
  %w10 = fadd <4 x float> %w9, %x
  %w11 = fadd <4 x float> %w10, %x
  %w12 = fadd <4 x float> %w11, %x
  %w13 = fadd <4 x float> %w12, %x
  %w14 = fadd <4 x float> %w13, %x
  %w15 = fadd <4 x float> %w14, %x
  %w16 = fadd <4 x float> %w15, %x
  %w17 = fadd <4 x float> %w16, %x
  %w18 = fadd <4 x float> %w17, %x
  %w19 = fadd <4 x float> %w18, %x
  %all = fadd <4 x float> %w19, %y
  %to = getelementptr <4 x float>, ptr %out, i64 %i
  store <4 x float> %all, ptr %to, align 16
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: @not_enough(
; CHECK: main:
define ptx_kernel void @not_enough(ptr noalias readonly %a, ptr noalias %out, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %from = getelementptr [8 x float], ptr %a, i64 %i
  %x = load <4 x float>, ptr %from, align 16
  %y = fneg <4 x float> %x
  %w0 = fadd <4 x float> %x, %x
  %w1 = fadd <4 x float> %w0, %x
  %w2 = fadd <4 x float> %w1, %x
  %w3 = fadd <4 x float> %w2, %x
  %w4 = fadd <4 x float> %w3, %x
  %w5 = fadd <4 x float> %w4, %x
  %w6 = fadd <4 x float> %w5, %x
  %w7 = fadd <4 x float> %w6, %x
  %w8 = fadd <4 x float> %w7, %x
  %w9 = fadd <4 x float> %w8, %x
  %w10 = fadd <4 x float> %w9, %x
  %w11 = fadd <4 x float> %w10, %x
  %w12 = fadd <4 x float> %w11, %x
  %w13 = fadd <4 x float> %w12, %x
  %w14 = fadd <4 x float> %w13, %x
  %w15 = fadd <4 x float> %w14, %x
  %w16 = fadd <4 x float> %w15, %x
  %w17 = fadd <4 x float> %w16, %x
  %w18 = fadd <4 x float> %w17, %x
  %w19 = fadd <4 x float> %w18, %x
  %all = fadd <4 x float> %w19, %y
  %to = getelementptr <4 x float>, ptr %out, i64 %i
  store <4 x float> %all, ptr %to, align 16
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
