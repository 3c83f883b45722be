; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; Loops that the PTX compiler would unroll four times, and that never have so many iterations; and some that it does not unroll, with
; enough of them.

target triple = "nvptx64-nvidia-cuda"

; From below 256 to 324 in steps of 256, as threads fill a tile with its border: twice at most, and no loop.
; CHECK-LABEL: .entry tile(
; CHECK: ld.global.b32
; CHECK: @%p{{[0-9]+}} bra [[END:.*]];
; CHECK: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: [[END]]:
; CHECK: ret;
define ptx_kernel void @tile(ptr %x, ptr addrspace(3) %tile) {
entry:
  %thread = call range(i32 0, 256) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %start = zext nneg i32 %thread to i64
  br label %loop
loop:
  %i = phi i64 [ %start, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %p, align 4
  %at = getelementptr i32, ptr addrspace(3) %tile, i64 %i
  store i32 %v, ptr addrspace(3) %at, align 4
  %next = add nuw nsw i64 %i, 256
  %more = icmp samesign ult i64 %next, 324
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Nothing is loaded: four iterations, one after the other.
; CHECK-LABEL: .entry computes(
; CHECK-COUNT-80: fma.rn.f64
; CHECK: setp
; CHECK: .pragma "nounroll";
; CHECK-COUNT-20: fma.rn.f64
; CHECK-NOT: fma
; CHECK: ret;
define ptx_kernel void @computes(ptr %out, double %x, i64 %n) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a = phi double [ 1.0, %entry ], [ %a20, %loop ]
  %s1 = fmul contract double %a, %a
  %a1 = fadd contract double %s1, %x
  %s2 = fmul contract double %a1, %a1
  %a2 = fadd contract double %s2, %x
  %s3 = fmul contract double %a2, %a2
  %a3 = fadd contract double %s3, %x
  %s4 = fmul contract double %a3, %a3
  %a4 = fadd contract double %s4, %x
  %s5 = fmul contract double %a4, %a4
  %a5 = fadd contract double %s5, %x
  %s6 = fmul contract double %a5, %a5
  %a6 = fadd contract double %s6, %x
  %s7 = fmul contract double %a6, %a6
  %a7 = fadd contract double %s7, %x
  %s8 = fmul contract double %a7, %a7
  %a8 = fadd contract double %s8, %x
  %s9 = fmul contract double %a8, %a8
  %a9 = fadd contract double %s9, %x
  %s10 = fmul contract double %a9, %a9
  %a10 = fadd contract double %s10, %x
  %s11 = fmul contract double %a10, %a10
  %a11 = fadd contract double %s11, %x
  %s12 = fmul contract double %a11, %a11
  %a12 = fadd contract double %s12, %x
  %s13 = fmul contract double %a12, %a12
  %a13 = fadd contract double %s13, %x
  %s14 = fmul contract double %a13, %a13
  %a14 = fadd contract double %s14, %x
  %s15 = fmul contract double %a14, %a14
  %a15 = fadd contract double %s15, %x
  %s16 = fmul contract double %a15, %a15
  %a16 = fadd contract double %s16, %x
  %s17 = fmul contract double %a16, %a16
  %a17 = fadd contract double %s17, %x
  %s18 = fmul contract double %a17, %a17
  %a18 = fadd contract double %s18, %x
  %s19 = fmul contract double %a18, %a18
  %a19 = fadd contract double %s19, %x
  %s20 = fmul contract double %a19, %a19
  %a20 = fadd contract double %s20, %x
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi double [ 0.0, %entry ], [ %a20, %loop ]
  store double %r, ptr %out, align 8
  ret void
}

; The load may be of what is stored, but the divisions of four iterations stand beside each other.
; CHECK-LABEL: .entry divides(
; CHECK-COUNT-4: st.global.b32
; CHECK: .pragma "nounroll";
; CHECK: st.global.b32
; CHECK-NOT: st.global
; CHECK: ret;
define ptx_kernel void @divides(ptr %x, ptr %y, i32 %n, i32 %width, i32 %height, i32 %step) {
entry:
  %any = icmp sgt i32 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %row = sdiv i32 %i, %width
  %at = srem i32 %row, %height
  %p = getelementptr i32, ptr %x, i32 %at
  %v = load i32, ptr %p, align 4
  %q = getelementptr i32, ptr %y, i32 %i
  store i32 %v, ptr %q, align 4
  %next = add nsw i32 %i, %step
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; An address moves by a byte for each number, and the counter has 32 bits: one number of 64 bits is both, and is compared as a whole.
; CHECK-LABEL: .entry bytes(
; CHECK: ld.global.s8
; CHECK-NOT: cvt.u32.u64
; CHECK: setp.lt.s64
; CHECK: ret;
define ptx_kernel void @bytes(ptr %x, ptr %y, ptr %out, i32 %n) {
entry:
  %thread = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %any = icmp slt i32 %thread, %n
  br i1 %any, label %loop, label %end
loop:
  %i = phi i32 [ %thread, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %wide = zext nneg i32 %i to i64
  %p = getelementptr i8, ptr %x, i64 %wide
  %b = load i8, ptr %p, align 1
  %f = sitofp i8 %b to float
  %q = getelementptr float, ptr %y, i64 %wide
  %w = load float, ptr %q, align 4
  %m = fmul contract float %f, %w
  %t = fadd contract float %s, %m
  %next = add nuw nsw i32 %i, 128
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr %out, align 4
  ret void
}

; A loop with a division, which ptxas does not unroll, and with more loads than may wait at once: two iterations in order.
; CHECK-LABEL: .entry divides_floats(
; CHECK-COUNT-3: div.rn.f32
; CHECK-NOT: div.rn.f32
; The same where somebody asked that it be unrolled, and did not say how often; but not where a number was said.
; CHECK-LABEL: .entry to_be_unrolled(
; CHECK-COUNT-3: div.rn.f32
; CHECK-NOT: div.rn.f32
; CHECK-LABEL: .entry not_to_be_unrolled(
; CHECK-COUNT-1: div.rn.f32
; CHECK-NOT: div.rn.f32
define ptx_kernel void @divides_floats(ptr noalias readonly %x, ptr noalias %out, i32 %n) {
entry:
  %any = icmp sgt i32 %n, 0
  br i1 %any, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %at = mul nuw nsw i32 %i, 7
  %wide = zext nneg i32 %at to i64
  %p = getelementptr float, ptr %x, i64 %wide
  %p0 = getelementptr i8, ptr %p, i64 0
  %v0 = load float, ptr %p0, align 4
  %p1 = getelementptr i8, ptr %p, i64 4
  %v1 = load float, ptr %p1, align 4
  %p2 = getelementptr i8, ptr %p, i64 8
  %v2 = load float, ptr %p2, align 4
  %p3 = getelementptr i8, ptr %p, i64 12
  %v3 = load float, ptr %p3, align 4
  %p4 = getelementptr i8, ptr %p, i64 16
  %v4 = load float, ptr %p4, align 4
  %p5 = getelementptr i8, ptr %p, i64 20
  %v5 = load float, ptr %p5, align 4
  %p6 = getelementptr i8, ptr %p, i64 24
  %v6 = load float, ptr %p6, align 4
  %a = fadd float %v0, %v1
  %b = fadd float %v2, %v3
  %c = fadd float %v4, %v5
  %d = fmul float %b, %c
  %e = fdiv float %a, %d
  %f = fadd float %e, %v6
  %t = fadd float %s, %f
  %next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end

end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr %out, align 4
  ret void
}

define ptx_kernel void @to_be_unrolled(ptr noalias readonly %x, ptr noalias %out, i32 %n) {
entry:
  %any = icmp sgt i32 %n, 0
  br i1 %any, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %at = mul nuw nsw i32 %i, 7
  %wide = zext nneg i32 %at to i64
  %p = getelementptr float, ptr %x, i64 %wide
  %p0 = getelementptr i8, ptr %p, i64 0
  %v0 = load float, ptr %p0, align 4
  %p1 = getelementptr i8, ptr %p, i64 4
  %v1 = load float, ptr %p1, align 4
  %p2 = getelementptr i8, ptr %p, i64 8
  %v2 = load float, ptr %p2, align 4
  %p3 = getelementptr i8, ptr %p, i64 12
  %v3 = load float, ptr %p3, align 4
  %p4 = getelementptr i8, ptr %p, i64 16
  %v4 = load float, ptr %p4, align 4
  %p5 = getelementptr i8, ptr %p, i64 20
  %v5 = load float, ptr %p5, align 4
  %p6 = getelementptr i8, ptr %p, i64 24
  %v6 = load float, ptr %p6, align 4
  %a = fadd float %v0, %v1
  %b = fadd float %v2, %v3
  %c = fadd float %v4, %v5
  %d = fmul float %b, %c
  %e = fdiv float %a, %d
  %f = fadd float %e, %v6
  %t = fadd float %s, %f
  %next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end, !llvm.loop !0

end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr %out, align 4
  ret void
}

define ptx_kernel void @not_to_be_unrolled(ptr noalias readonly %x, ptr noalias %out, i32 %n) {
entry:
  %any = icmp sgt i32 %n, 0
  br i1 %any, label %loop, label %end

loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %at = mul nuw nsw i32 %i, 7
  %wide = zext nneg i32 %at to i64
  %p = getelementptr float, ptr %x, i64 %wide
  %p0 = getelementptr i8, ptr %p, i64 0
  %v0 = load float, ptr %p0, align 4
  %p1 = getelementptr i8, ptr %p, i64 4
  %v1 = load float, ptr %p1, align 4
  %p2 = getelementptr i8, ptr %p, i64 8
  %v2 = load float, ptr %p2, align 4
  %p3 = getelementptr i8, ptr %p, i64 12
  %v3 = load float, ptr %p3, align 4
  %p4 = getelementptr i8, ptr %p, i64 16
  %v4 = load float, ptr %p4, align 4
  %p5 = getelementptr i8, ptr %p, i64 20
  %v5 = load float, ptr %p5, align 4
  %p6 = getelementptr i8, ptr %p, i64 24
  %v6 = load float, ptr %p6, align 4
  %a = fadd float %v0, %v1
  %b = fadd float %v2, %v3
  %c = fadd float %v4, %v5
  %d = fmul float %b, %c
  %e = fdiv float %a, %d
  %f = fadd float %e, %v6
  %t = fadd float %s, %f
  %next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %end, !llvm.loop !2

end:
  %r = phi float [ 0.0, %entry ], [ %t, %loop ]
  store float %r, ptr %out, align 4
  ret void
}

; 512 iterations that the threads of a block share are four for each of 128: more at once would seldom run.
; CHECK-LABEL: .entry shared_by_block(
; CHECK-COUNT-1: ld.shared.b32
; CHECK-NOT: ld.shared
; CHECK: ret;
@buffer = external addrspace(3) global [0 x float], align 4
define ptx_kernel void @shared_by_block(ptr noalias %x) {
entry:
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %threads = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %any = icmp slt i32 %thread, 512
  br i1 %any, label %loop, label %end

loop:
  %i = phi i32 [ %thread, %entry ], [ %next, %loop ]
  %from = getelementptr [0 x float], ptr addrspace(3) @buffer, i32 0, i32 %i
  %v = load float, ptr addrspace(3) %from, align 4
  %to = getelementptr float, ptr %x, i32 %i
  store float %v, ptr %to, align 4
  %next = add nsw i32 %i, %threads
  %more = icmp slt i32 %next, 512
  br i1 %more, label %loop, label %end

end:
  ret void
}

!0 = distinct !{!0, !1}
!1 = !{!"llvm.loop.unroll.enable"}
!2 = distinct !{!2, !3}
!3 = !{!"llvm.loop.unroll.disable"}
