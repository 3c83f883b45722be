; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; Addresses that move by a number that is not known, in loops that are not interleaved.

target triple = "nvptx64-nvidia-cuda"

; A front end unrolled it: from address to address it is one number, also where that is `noundef`.
; CHECK-LABEL: .entry unrolled(
; CHECK: shl.b64 [[STRIDE:%rd[0-9]+]], {{%rd[0-9]+}}, 2;
; CHECK: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[A:%rd[0-9]+]]{{\]}};
; CHECK: add.s64 [[B:%rd[0-9]+]], [[A]], [[STRIDE]];
; CHECK-NEXT: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[B]]{{\]}};
; CHECK: add.s64 [[C:%rd[0-9]+]], [[B]], [[STRIDE]];
; CHECK-NEXT: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[C]]{{\]}};
; CHECK: add.s64 [[D:%rd[0-9]+]], [[C]], [[STRIDE]];
; CHECK-NEXT: ld.global.b32 {{%r[0-9]+}}, {{\[}}[[D]]{{\]}};
; CHECK: add.s64 [[A]], [[D]], [[STRIDE]];
define ptx_kernel void @unrolled(ptr noundef %x, ptr noundef %out, i64 noundef %n, i64 noundef %pitch) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %s3, %loop ]
  %at = mul nsw i64 %i, %pitch
  %p = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %p, align 4
  %s0 = fadd float %s, %v
  %i1 = or disjoint i64 %i, 1
  %at1 = mul nsw i64 %i1, %pitch
  %p1 = getelementptr float, ptr %x, i64 %at1
  %v1 = load float, ptr %p1, align 4
  %s1 = fadd float %s0, %v1
  %i2 = or disjoint i64 %i, 2
  %at2 = mul nsw i64 %i2, %pitch
  %p2 = getelementptr float, ptr %x, i64 %at2
  %v2 = load float, ptr %p2, align 4
  %s2 = fadd float %s1, %v2
  %i3 = or disjoint i64 %i, 3
  %at3 = mul nsw i64 %i3, %pitch
  %p3 = getelementptr float, ptr %x, i64 %at3
  %v3 = load float, ptr %p3, align 4
  %s3 = fadd float %s2, %v3
  %next = add nuw nsw i64 %i, 4
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop, !llvm.loop !0
end:
  store float %s3, ptr %out, align 4
  ret void
}

; Five arrays, more loads and stores than are interleaved: one offset moves, and nothing else.
; CHECK-LABEL: .entry arrays(
; CHECK: $L__BB1_1:
; CHECK-COUNT-5: add.s64 {{%rd[0-9]+}}, {{%rd[0-9]+}}, [[OFFSET:%rd[0-9]+]];
; CHECK-NOT: mul
; CHECK: add.s64 [[OFFSET]], [[OFFSET]], {{%rd[0-9]+}};
; CHECK: bra $L__BB1_1;
define ptx_kernel void @arrays(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e, i64 %first, i64 %n, i64 noundef %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [ %first, %entry ], [ %next, %loop ]
  %pa = getelementptr float, ptr %a, i64 %i
  %pb = getelementptr float, ptr %b, i64 %i
  %pc = getelementptr float, ptr %c, i64 %i
  %pd = getelementptr float, ptr %d, i64 %i
  %pe = getelementptr float, ptr %e, i64 %i
  %va = load float, ptr %pa, align 4
  %vb = load float, ptr %pb, align 4
  %one = fadd float %va, %vb
  store float %one, ptr %pc, align 4
  %vd = load float, ptr %pd, align 4
  %two = fmul float %one, %vd
  store float %two, ptr %pe, align 4
  %next = add nsw i64 %i, %step
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.disable"}
