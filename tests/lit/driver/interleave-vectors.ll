; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; Elements of a vector have one address, and are one transfer, though they are loaded one by one.
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry squares(
; CHECK: ld.global.nc.v4.b32
; CHECK: ld.global.nc.v4.b32
; CHECK: ld.global.nc.v4.b32
; CHECK: ld.global.nc.v4.b32
define ptx_kernel void @squares(ptr noalias readonly %p, ptr noalias %q, i64 %n, i64 %step) {
entry:
  %some = icmp sgt i64 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %sum3, %loop ]
  %p0 = getelementptr inbounds float, ptr %p, i64 %i
  %v0 = load float, ptr %p0, align 16
  %p1 = getelementptr inbounds i8, ptr %p0, i64 4
  %v1 = load float, ptr %p1, align 4
  %p2 = getelementptr inbounds i8, ptr %p0, i64 8
  %v2 = load float, ptr %p2, align 8
  %p3 = getelementptr inbounds i8, ptr %p0, i64 12
  %v3 = load float, ptr %p3, align 4
  %s0 = fmul contract float %v0, %v0
  %sum0 = fadd contract float %sum, %s0
  %s1 = fmul contract float %v1, %v1
  %sum1 = fadd contract float %sum0, %s1
  %s2 = fmul contract float %v2, %v2
  %sum2 = fadd contract float %sum1, %s2
  %s3 = fmul contract float %v3, %v3
  %sum3 = fadd contract float %sum2, %s3
  %i.next = add nuw nsw i64 %i, %step
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %loop, label %end

end:
  %result = phi float [ 0.0, %entry ], [ %sum3, %loop ]
  store float %result, ptr %q
  ret void
}
