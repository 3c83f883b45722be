; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; Memory under a mask is memory, and a vector is as many instructions as it has elements. Neither loop runs four iterations in order,
; as a small one does that computes alone: the first runs two with loads first, the second is left alone.
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry masked(
; CHECK-COUNT-72: fma.rn.f32
; CHECK-NOT: fma.rn.f32
; CHECK-LABEL: .entry vectors(
; CHECK-COUNT-96: fma.rn.f32
; CHECK-NOT: fma.rn.f32
define ptx_kernel void @masked(ptr noalias readonly %p, ptr noalias %q, i32 %n, i32 %live) #0 {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %acc = phi float [ 0.0, %entry ], [ %w23, %loop ]
  %place = getelementptr inbounds <4 x float>, ptr %p, i32 %i
  %left = sub i32 %live, %i
  %mask = call <4 x i1> @llvm.get.active.lane.mask.v4i1.i32(i32 0, i32 %left)
  %loaded = call <4 x float> @llvm.masked.load.v4f32.p0(ptr align 16 %place, <4 x i1> %mask, <4 x float> zeroinitializer)
  %first = call reassoc float @llvm.vector.reduce.fadd.v4f32(float 0.0, <4 x float> %loaded)
  %w0 = call float @llvm.fma.f32(float %first, float %acc, float %first)
  %w1 = call float @llvm.fma.f32(float %w0, float %acc, float %w0)
  %w2 = call float @llvm.fma.f32(float %w1, float %acc, float %w1)
  %w3 = call float @llvm.fma.f32(float %w2, float %acc, float %w2)
  %w4 = call float @llvm.fma.f32(float %w3, float %acc, float %w3)
  %w5 = call float @llvm.fma.f32(float %w4, float %acc, float %w4)
  %w6 = call float @llvm.fma.f32(float %w5, float %acc, float %w5)
  %w7 = call float @llvm.fma.f32(float %w6, float %acc, float %w6)
  %w8 = call float @llvm.fma.f32(float %w7, float %acc, float %w7)
  %w9 = call float @llvm.fma.f32(float %w8, float %acc, float %w8)
  %w10 = call float @llvm.fma.f32(float %w9, float %acc, float %w9)
  %w11 = call float @llvm.fma.f32(float %w10, float %acc, float %w10)
  %w12 = call float @llvm.fma.f32(float %w11, float %acc, float %w11)
  %w13 = call float @llvm.fma.f32(float %w12, float %acc, float %w12)
  %w14 = call float @llvm.fma.f32(float %w13, float %acc, float %w13)
  %w15 = call float @llvm.fma.f32(float %w14, float %acc, float %w14)
  %w16 = call float @llvm.fma.f32(float %w15, float %acc, float %w15)
  %w17 = call float @llvm.fma.f32(float %w16, float %acc, float %w16)
  %w18 = call float @llvm.fma.f32(float %w17, float %acc, float %w17)
  %w19 = call float @llvm.fma.f32(float %w18, float %acc, float %w18)
  %w20 = call float @llvm.fma.f32(float %w19, float %acc, float %w19)
  %w21 = call float @llvm.fma.f32(float %w20, float %acc, float %w20)
  %w22 = call float @llvm.fma.f32(float %w21, float %acc, float %w21)
  %w23 = call float @llvm.fma.f32(float %w22, float %acc, float %w22)
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi float [ 0.0, %entry ], [ %w23, %loop ]
  store float %result, ptr %q
  ret void
}

define ptx_kernel void @vectors(ptr noalias %q, i32 %n, <4 x float> %first) #0 {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %acc = phi <4 x float> [ zeroinitializer, %entry ], [ %w23, %loop ]
  %w0 = call <4 x float> @llvm.fma.v4f32(<4 x float> %first, <4 x float> %acc, <4 x float> %first)
  %w1 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w0, <4 x float> %acc, <4 x float> %w0)
  %w2 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w1, <4 x float> %acc, <4 x float> %w1)
  %w3 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w2, <4 x float> %acc, <4 x float> %w2)
  %w4 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w3, <4 x float> %acc, <4 x float> %w3)
  %w5 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w4, <4 x float> %acc, <4 x float> %w4)
  %w6 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w5, <4 x float> %acc, <4 x float> %w5)
  %w7 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w6, <4 x float> %acc, <4 x float> %w6)
  %w8 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w7, <4 x float> %acc, <4 x float> %w7)
  %w9 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w8, <4 x float> %acc, <4 x float> %w8)
  %w10 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w9, <4 x float> %acc, <4 x float> %w9)
  %w11 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w10, <4 x float> %acc, <4 x float> %w10)
  %w12 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w11, <4 x float> %acc, <4 x float> %w11)
  %w13 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w12, <4 x float> %acc, <4 x float> %w12)
  %w14 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w13, <4 x float> %acc, <4 x float> %w13)
  %w15 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w14, <4 x float> %acc, <4 x float> %w14)
  %w16 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w15, <4 x float> %acc, <4 x float> %w15)
  %w17 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w16, <4 x float> %acc, <4 x float> %w16)
  %w18 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w17, <4 x float> %acc, <4 x float> %w17)
  %w19 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w18, <4 x float> %acc, <4 x float> %w18)
  %w20 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w19, <4 x float> %acc, <4 x float> %w19)
  %w21 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w20, <4 x float> %acc, <4 x float> %w20)
  %w22 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w21, <4 x float> %acc, <4 x float> %w21)
  %w23 = call <4 x float> @llvm.fma.v4f32(<4 x float> %w22, <4 x float> %acc, <4 x float> %w22)
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi <4 x float> [ zeroinitializer, %entry ], [ %w23, %loop ]
  store <4 x float> %result, ptr %q
  ret void
}

attributes #0 = { "nvvm.maxntid"="1024" }
