; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit ptx --interleave 1 -o - | FileCheck %s --check-prefix=BACK

; What ptxas needs to unroll loops by itself.

target triple = "nvptx64-nvidia-cuda"

; 300 iterations that write: four at once, where LLVM would unroll them by a divisor of 300, and a loop for none that are left.
; CHECK-LABEL: .entry writes(
; CHECK-COUNT-4: ld.global.b32
; CHECK-COUNT-4: st.global.b32
; CHECK-NOT: ld.global
; CHECK: setp.lt.s64 {{%p[0-9]+}}, {{%rd[0-9]+}}, 297;
define ptx_kernel void @writes(ptr %x, ptr %y, i64 %first) {
entry:
  %px = getelementptr float, ptr %x, i64 %first
  %py = getelementptr float, ptr %y, i64 %first
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %at = mul nuw nsw i64 %i, 1000
  %p = getelementptr float, ptr %px, i64 %at
  %v = load float, ptr %p, align 4
  %t = fadd float %s, %v
  %q = getelementptr float, ptr %py, i64 %at
  store float %t, ptr %q, align 4
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, 300
  br i1 %more, label %loop, label %end
end:
  ret void
}

; The last comparison is of the next value, also where LLVM asks of the one before.
; CHECK-LABEL: .entry strided(
; CHECK: add.s64 [[NEXT:%rd[0-9]+]], {{%rd[0-9]+}}, 128;
; CHECK-NOT: 3872
; CHECK: 4000
; CHECK-NOT: 3872
; CHECK: ret;
define ptx_kernel void @strided(ptr %x, ptr %w, ptr %y) "nvvm.reqntid"="128,1,1" {
entry:
  %tid = call range(i32 0, 128) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %start = zext nneg i32 %tid to i64
  br label %loop
loop:
  %i = phi i64 [ %start, %entry ], [ %next, %loop ]
  %s = phi float [ 0.0, %entry ], [ %t, %loop ]
  %p = getelementptr i8, ptr %x, i64 %i
  %b = load i8, ptr %p, align 1
  %v = sitofp i8 %b to float
  %q = getelementptr float, ptr %w, i64 %i
  %u = load float, ptr %q, align 4
  %m = fmul float %v, %u
  %t = fadd float %s, %m
  %next = add nuw nsw i64 %i, 128
  %more = icmp ult i64 %i, 3872
  br i1 %more, label %loop, label %end
end:
  %r = getelementptr float, ptr %y, i64 %start
  store float %t, ptr %r, align 4
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

; The last branch is taken while the loop goes on.
; BACK-LABEL: .entry inverted(
; BACK: setp.ne
; BACK-NEXT: @{{%p[0-9]+}} bra
; BACK-NOT: bra.uni
; BACK: ret;
define ptx_kernel void @inverted(ptr %x, ptr %y, i64 %n) {
entry:
  %any = icmp ult i64 %n, 40000
  br i1 %any, label %before, label %end
before:
  %px = getelementptr i32, ptr %x, i64 %n
  br label %loop
after:
  %r = getelementptr i32, ptr %y, i64 %n
  store i32 %t, ptr %r, align 4
  br label %end
loop:
  %s = phi i32 [ 0, %before ], [ %t, %loop ]
  %i = phi i64 [ 0, %before ], [ %next, %loop ]
  %p = getelementptr i32, ptr %px, i64 %i
  %v = load i32, ptr %p, align 4
  %p1 = getelementptr i8, ptr %p, i64 4
  %v1 = load i32, ptr %p1, align 4
  %a = mul i32 %s, 3
  %b = add i32 %a, %v
  %t = xor i32 %b, %v1
  %next = add nuw nsw i64 %i, 2
  %done = icmp eq i64 %next, 600
  br i1 %done, label %after, label %loop
end:
  ret void
}
