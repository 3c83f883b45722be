; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit llvm -o - | FileCheck %s --check-prefix=IR
; RUN: gpulower compile %s --target sm_90 --interleave 1 --emit llvm -o - | FileCheck %s --check-prefix=ALONE

; The marks go with the LLVM IR.
; RUN: gpulower compile %s --target sm_90 --emit ptx -o %t.ptx
; RUN: gpulower compile %s --target sm_90 --emit llvm -o %t.ll
; RUN: gpulower compile %t.ll --target sm_90 --input-optimized --emit ptx -o %t.again.ptx
; RUN: cmp %t.ptx %t.again.ptx

; Where a loop was interleaved, its addresses are as they should be. LLVM's loop strength reduction would give the loop for what
; is left a number of its own, which is computed before both.
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

; ALONE-NOT: no{{.}}strength

; Columns: the loop for what is left computes each address from its number.
; CHECK-LABEL: .entry columns(
; CHECK: .pragma "nounroll";
; CHECK-NEXT: mul.lo.s64 [[OFFSET:%rd[0-9]+]]
; CHECK-NEXT: shl.b64 [[BYTES:%rd[0-9]+]], [[OFFSET]], 2;
; IR: @columns({{.*}} #[[KEPT:[0-9]+]] {
; IR: br i1 {{.*}}, !llvm.loop [[MAIN:![0-9]+]]
; IR: br i1 {{.*}}, !llvm.loop [[REST:![0-9]+]]
define ptx_kernel void @columns(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %rows, i64 %pitch) {
entry:
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %added, %loop ]
  %at = mul i64 %i, %pitch
  %place = getelementptr inbounds float, ptr addrspace(1) %x, i64 %at
  %value = load float, ptr addrspace(1) %place, align 4
  %added = fadd float %sum, %value
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %loop, label %end
end:
  %result = phi float [ 0.0, %entry ], [ %added, %loop ]
  store float %result, ptr addrspace(1) %out, align 4
  ret void
}

; A front end unrolled the first loop: both kinds of strength reduction find what its copies have in common.
; IR: @unrolled({{.*}} #[[OTHER:[0-9]+]] {
define ptx_kernel void @unrolled(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %rows, i64 %pitch) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %s3, %loop ]
  %i1 = or disjoint i64 %i, 1
  %i2 = or disjoint i64 %i, 2
  %i3 = or disjoint i64 %i, 3
  %a0 = mul i64 %i, %pitch
  %a1 = mul i64 %i1, %pitch
  %a2 = mul i64 %i2, %pitch
  %a3 = mul i64 %i3, %pitch
  %p0 = getelementptr inbounds double, ptr addrspace(1) %x, i64 %a0
  %p1 = getelementptr inbounds double, ptr addrspace(1) %x, i64 %a1
  %p2 = getelementptr inbounds double, ptr addrspace(1) %x, i64 %a2
  %p3 = getelementptr inbounds double, ptr addrspace(1) %x, i64 %a3
  %v0 = load double, ptr addrspace(1) %p0, align 8
  %v1 = load double, ptr addrspace(1) %p1, align 8
  %v2 = load double, ptr addrspace(1) %p2, align 8
  %v3 = load double, ptr addrspace(1) %p3, align 8
  %s0 = fadd double %sum, %v0
  %s1 = fadd double %s0, %v1
  %s2 = fadd double %s1, %v2
  %s3 = fadd double %s2, %v3
  %next = add nuw nsw i64 %i, 4
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %loop, label %end, !llvm.loop !0
end:
  store double %s3, ptr addrspace(1) %out, align 8
  ret void
}

; The loop that is interleaved is marked there as well, and the one for what is left is not.
; IR: @both(
; IR: br i1 {{.*}}, !llvm.loop [[SECOND:![0-9]+]]
; IR: br i1 {{.*}}, !llvm.loop [[LEFT:![0-9]+]]
; IR: br i1 {{.*}}, !llvm.loop [[THIRD:![0-9]+]]
define ptx_kernel void @both(ptr addrspace(1) %x, ptr addrspace(1) %out, i64 %rows, i64 %pitch) {
entry:
  %some = icmp sgt i64 %rows, 0
  br i1 %some, label %first, label %second
first:
  %k = phi i64 [ 0, %entry ], [ %after, %first ]
  %total = phi double [ 0.0, %entry ], [ %added, %first ]
  %at = mul i64 %k, %pitch
  %place = getelementptr inbounds double, ptr addrspace(1) %x, i64 %at
  %value = load double, ptr addrspace(1) %place, align 8
  %added = fadd double %total, %value
  %after = add nuw nsw i64 %k, 1
  %again = icmp slt i64 %after, %rows
  br i1 %again, label %first, label %second
second:
  %begun = phi double [ 0.0, %entry ], [ %added, %first ]
  br label %loop
loop:
  %i = phi i64 [ 0, %second ], [ %next, %loop ]
  %sum = phi double [ %begun, %second ], [ %s2, %loop ]
  %i1 = add nuw nsw i64 %i, 1
  %i2 = add nuw nsw i64 %i, 2
  %a0 = mul i64 %i, %pitch
  %a1 = mul i64 %i1, %pitch
  %a2 = mul i64 %i2, %pitch
  %p0 = getelementptr inbounds double, ptr addrspace(1) %x, i64 %a0
  %p1 = getelementptr inbounds double, ptr addrspace(1) %x, i64 %a1
  %p2 = getelementptr inbounds double, ptr addrspace(1) %x, i64 %a2
  %v0 = load double, ptr addrspace(1) %p0, align 8
  %v1 = load double, ptr addrspace(1) %p1, align 8
  %v2 = load double, ptr addrspace(1) %p2, align 8
  %s0 = fadd double %sum, %v0
  %s1 = fadd double %s0, %v1
  %s2 = fadd double %s1, %v2
  %next = add nuw nsw i64 %i, 3
  %more = icmp slt i64 %next, %rows
  br i1 %more, label %loop, label %end, !llvm.loop !0
end:
  store double %s2, ptr addrspace(1) %out, align 8
  ret void
}

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}

; IR: attributes #[[KEPT]] = {{.*}}"gpulower-no-strength-reduction"
; IR-NEXT: attributes #[[OTHER]] =
; IR-NOT: "gpulower-no-strength-reduction"
; IR: [[MAIN]] = distinct !{{{![0-9]+}}, [[KEEP:![0-9]+]]}
; IR: [[KEEP]] = !{!"gpulower.loop.no.strength.reduction"
; IR: [[REST]] = {{.*}}[[KEEP]]}
; IR: [[SECOND]] = distinct !{{{![0-9]+}}, [[KEEP]]}
; IR-NOT: [[LEFT]] = {{.*}}[[KEEP]]
; IR-NOT: [[THIRD]] = {{.*}}[[KEEP]]
