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
