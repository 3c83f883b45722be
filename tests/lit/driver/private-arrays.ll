; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; An array of a thread is in registers where its loops are unrolled whole, however large their bodies are.
target triple = "nvptx64-nvidia-cuda"

@order = internal unnamed_addr addrspace(4) constant [8 x i32] [i32 0, i32 4, i32 2, i32 6, i32 1, i32 5, i32 3, i32 7]

; CHECK-LABEL: .entry known(
; CHECK-NOT: .local
; CHECK-LABEL: .entry unknown(
; CHECK: .local
; CHECK-LABEL: .entry asked_not_to(
; CHECK: .local
define ptx_kernel void @known(ptr %p, ptr %q, float %x) {
entry:
  %array = alloca [8 x float], align 4
  br label %fill

fill:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fill ]
  %from = getelementptr float, ptr %p, i64 %i
  %value = load float, ptr %from
  %to = getelementptr [8 x float], ptr %array, i64 0, i64 %i
  %s0 = call float @llvm.log.f32(float %value)
  %s1 = fdiv float %s0, %x
  %s2 = call float @llvm.exp.f32(float %s1)
  %s3 = fdiv float %x, %s2
  %s4 = call float @llvm.pow.f32(float %s3, float %s1)
  store float %s4, ptr %to
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, 8
  br i1 %more, label %fill, label %permute

permute:
  %j = phi i64 [ 0, %fill ], [ %j.next, %permute ]
  %entry.of = getelementptr [8 x i32], ptr addrspace(4) @order, i64 0, i64 %j
  %k = load i32, ptr addrspace(4) %entry.of
  %wide = zext i32 %k to i64
  %element = getelementptr [8 x float], ptr %array, i64 0, i64 %wide
  %taken = load float, ptr %element
  %out = getelementptr float, ptr %q, i64 %j
  store float %taken, ptr %out
  %j.next = add nuw nsw i64 %j, 1
  %again = icmp ne i64 %j.next, 8
  br i1 %again, label %permute, label %end

end:
  ret void
}

; An index that comes from memory stays unknown.
define ptx_kernel void @unknown(ptr %p, ptr %q, i64 %n) {
entry:
  %array = alloca [8 x float], align 4
  br label %fill

fill:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fill ]
  %from = getelementptr float, ptr %p, i64 %i
  %value = load float, ptr %from
  %to = getelementptr [8 x float], ptr %array, i64 0, i64 %i
  store float %value, ptr %to
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, 8
  br i1 %more, label %fill, label %read

read:
  %element = getelementptr [8 x float], ptr %array, i64 0, i64 %n
  %taken = load float, ptr %element
  store float %taken, ptr %q
  ret void
}

define ptx_kernel void @asked_not_to(ptr %p, ptr %q) {
entry:
  %array = alloca [8 x float], align 4
  br label %fill

fill:
  %i = phi i64 [ 0, %entry ], [ %i.next, %fill ]
  %from = getelementptr float, ptr %p, i64 %i
  %value = load float, ptr %from
  %to = getelementptr [8 x float], ptr %array, i64 0, i64 %i
  store float %value, ptr %to
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, 8
  br i1 %more, label %fill, label %read, !llvm.loop !0

read:
  %element = getelementptr [8 x float], ptr %array, i64 0, i64 3
  %taken = load float, ptr %element
  store float %taken, ptr %q
  ret void
}

; Pointers that walk over two arrays, and a counter that is doubled.
; CHECK-LABEL: .entry walking(
; CHECK-NOT: .local
; CHECK: ret;
define ptx_kernel void @walking(ptr noalias %p, ptr noalias %q, float %z) {
entry:
  %x = alloca [32 x float], align 16
  %y = alloca [32 x float], align 16
  %x.end = getelementptr i8, ptr %x, i64 128
  br label %fill

fill:
  %i = phi i64 [ 1, %entry ], [ %i.next, %fill ]
  %from = getelementptr float, ptr %p, i64 %i
  %value = load float, ptr %from
  %x.at = getelementptr float, ptr %x, i64 %i
  store float %value, ptr %x.at
  %i.next = shl i64 %i, 1
  %again = icmp ult i64 %i.next, 32
  br i1 %again, label %fill, label %walk

walk:
  %source = phi ptr [ %x, %fill ], [ %source.next, %walk ]
  %target = phi ptr [ %y, %fill ], [ %target.next, %walk ]
  %element = load float, ptr %source
  %w1 = fdiv float %element, %z
  %w2 = call float @llvm.exp.f32(float %w1)
  %w3 = fdiv float %z, %w2
  %w4 = call float @llvm.pow.f32(float %w3, float %w1)
  store float %w4, ptr %target
  %source.next = getelementptr i8, ptr %source, i64 32
  %target.next = getelementptr i8, ptr %target, i64 32
  %more = icmp ne ptr %source.next, %x.end
  br i1 %more, label %walk, label %read

read:
  %last = getelementptr i8, ptr %y, i64 64
  %taken = load float, ptr %last
  store float %taken, ptr %q
  ret void
}

declare float @llvm.log.f32(float)
declare float @llvm.exp.f32(float)
declare float @llvm.pow.f32(float, float)

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}

; Triangular loops: how often the inner one runs is known in each copy of the outer one.
; CHECK-LABEL: .entry triangular(
; CHECK-NOT: .local
; CHECK-LABEL: .entry as_an_argument_says(
; CHECK: .local
define ptx_kernel void @triangular(ptr %p, ptr %q) {
entry:
  %array = alloca [6 x [6 x float]], align 4
  br label %column

column:
  %j = phi i64 [ 0, %entry ], [ %j.next, %column.end ]
  %at = getelementptr float, ptr %p, i64 %j
  %value = load float, ptr %at
  %some = icmp ne i64 %j, 0
  br i1 %some, label %before, label %row.first

before:
  %k = phi i64 [ 0, %column ], [ %k.next, %before ]
  %rest = phi float [ %value, %column ], [ %rest.next, %before ]
  %place = getelementptr [6 x [6 x float]], ptr %array, i64 0, i64 %j, i64 %k
  %element = load float, ptr %place
  %square = fmul float %element, %element
  %rest.next = fsub float %rest, %square
  %k.next = add nuw nsw i64 %k, 1
  %more.k = icmp ult i64 %k.next, %j
  br i1 %more.k, label %before, label %row.first

row.first:
  %pivot = phi float [ %value, %column ], [ %rest.next, %before ]
  br label %row

row:
  %i = phi i64 [ %j, %row.first ], [ %i.next, %row ]
  %to = getelementptr [6 x [6 x float]], ptr %array, i64 0, i64 %i, i64 %j
  %from = getelementptr float, ptr %at, i64 %i
  %number = load float, ptr %from
  %scaled = fmul float %number, %pivot
  store float %scaled, ptr %to
  %i.next = add nuw nsw i64 %i, 1
  %more.i = icmp ult i64 %i.next, 6
  br i1 %more.i, label %row, label %column.end

column.end:
  %j.next = add nuw nsw i64 %j, 1
  %more.j = icmp ne i64 %j.next, 6
  br i1 %more.j, label %column, label %end

end:
  %last = getelementptr [6 x [6 x float]], ptr %array, i64 0, i64 5, i64 4
  %result = load float, ptr %last
  store float %result, ptr %q
  ret void
}

define ptx_kernel void @as_an_argument_says(ptr %p, ptr %q, i64 %count) {
entry:
  %array = alloca [6 x float], align 4
  br label %fill

fill:
  %j = phi i64 [ 0, %entry ], [ %j.next, %fill ]
  %at = getelementptr float, ptr %p, i64 %j
  %value = load float, ptr %at
  %to = getelementptr [6 x float], ptr %array, i64 0, i64 %j
  store float %value, ptr %to
  %j.next = add nuw nsw i64 %j, 1
  %more.j = icmp ne i64 %j.next, 6
  br i1 %more.j, label %fill, label %sum.first

sum.first:
  %most = and i64 %count, 15
  br label %sum

sum:
  %i = phi i64 [ 0, %sum.first ], [ %i.next, %sum ]
  %total = phi float [ 0.0, %sum.first ], [ %total.next, %sum ]
  %from = getelementptr [6 x float], ptr %array, i64 0, i64 %i
  %number = load float, ptr %from
  %total.next = fadd float %total, %number
  %i.next = add nuw nsw i64 %i, 1
  %more.i = icmp ule i64 %i.next, %most
  br i1 %more.i, label %sum, label %end

end:
  store float %total.next, ptr %q
  ret void
}

; An element of a vector, too.
; CHECK-LABEL: .entry elements(
; CHECK-NOT: .local
; CHECK-LABEL: .entry unknown_element(
; CHECK: .local
define ptx_kernel void @elements(ptr %p, float %x) {
entry:
  %all = load <4 x float>, ptr %p, align 16
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %changed = phi <4 x float> [ %all, %entry ], [ %changed.next, %loop ]
  %value = extractelement <4 x float> %changed, i64 %i
  %s0 = call float @llvm.log.f32(float %value)
  %s1 = fdiv float %s0, %x
  %s2 = call float @llvm.exp.f32(float %s1)
  %s3 = fdiv float %x, %s2
  %s4 = call float @llvm.pow.f32(float %s3, float %s1)
  %changed.next = insertelement <4 x float> %changed, float %s4, i64 %i
  %i.next = add nuw nsw i64 %i, 1
  %more = icmp ne i64 %i.next, 4
  br i1 %more, label %loop, label %end

end:
  store <4 x float> %changed.next, ptr %p, align 16
  ret void
}

define ptx_kernel void @unknown_element(ptr %p, ptr %q, i64 %n) {
  %all = load <4 x float>, ptr %p, align 16
  %doubled = fadd <4 x float> %all, %all
  %value = extractelement <4 x float> %doubled, i64 %n
  store float %value, ptr %q
  ret void
}
