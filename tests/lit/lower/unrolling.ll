; A loop with an unknown number of iterations is left to the PTX compiler, which unrolls it: LLVM would do so first, and the
; result would be unrolled again. A loop with a known one, and what a front end wants, are unrolled by LLVM.

; RUN: gpulower compile %s --target sm_90 --interleave 1 --emit ptx -o - | FileCheck %s
; RUN: opt-22 -passes='default<O3>' -mcpu=sm_90 %s | llc-22 -mcpu=sm_90 | FileCheck %s --check-prefix=LLVM

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry unknown(
; CHECK-COUNT-1: ld.global.b32
; CHECK-NOT: ld.global
; CHECK-NOT: .pragma
; CHECK: ret;
; LLVM-LABEL: .entry unknown(
; LLVM-COUNT-4: ld.global.b32
; LLVM: ret;
define ptx_kernel void @unknown(ptr %a, ptr %out, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %at = getelementptr float, ptr %a, i64 %i
  %x = load float, ptr %at
  %more = fadd float %sum, %x
  %next = add i64 %i, 1
  %left = icmp ult i64 %next, %n
  br i1 %left, label %loop, label %end
end:
  store float %more, ptr %out
  ret void
}

; CHECK-LABEL: .entry known(
; CHECK-COUNT-5: ld.global.b32
; CHECK: ret;
define ptx_kernel void @known(ptr %a, ptr %out) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %at = getelementptr float, ptr %a, i64 %i
  %x = load float, ptr %at
  %more = fadd float %sum, %x
  %next = add i64 %i, 1
  %left = icmp ult i64 %next, 5
  br i1 %left, label %loop, label %end
end:
  store float %more, ptr %out
  ret void
}

; CHECK-LABEL: .entry wanted(
; CHECK-COUNT-2: ld.global.b32
; CHECK: ret;
define ptx_kernel void @wanted(ptr %a, ptr %out, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %more, %loop ]
  %at = getelementptr float, ptr %a, i64 %i
  %x = load float, ptr %at
  %more = fadd float %sum, %x
  %next = add i64 %i, 1
  %left = icmp ult i64 %next, %n
  br i1 %left, label %loop, label %end, !llvm.loop !0
end:
  store float %more, ptr %out
  ret void
}

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.count", i32 2}
