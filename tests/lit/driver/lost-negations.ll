; ptxas makes one instruction, which negates none of them, of the greatest of three, and forgets that one is negated.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit sass -o - | FileCheck %s --check-prefix=SASS
; RUN: gpulower compile %s --target sm_100 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_89 --emit ptx -o - | FileCheck %s --check-prefix=OTHER
; RUN: gpulower compile %s --target sm_120 --emit ptx -o - | FileCheck %s --check-prefix=OTHER

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry greatest(
; CHECK-NOT: neg.s32
; CHECK: not.b32 %not, %r{{[0-9]+}}; add.s32 [[N:%r[0-9]+]], %not, 1; }
; CHECK: max.s32 %r{{[0-9]+}}, %r{{[0-9]+}}, [[N]];
; SASS-LABEL: .text.greatest:
; SASS: LDG.E [[B:R[0-9]+]], {{.*}}+0x4]
; SASS: LOP3.LUT [[NOT:R[0-9]+]], RZ, [[B]], RZ, 0x33
; SASS-NEXT: VIADDMNMX {{R[0-9]+}}, [[NOT]], 0x1,
; OTHER-LABEL: .entry greatest(
; OTHER: neg.s32
define ptx_kernel void @greatest(ptr addrspace(1) %p) {
  %a = load i32, ptr addrspace(1) %p
  %pb = getelementptr i32, ptr addrspace(1) %p, i64 1
  %b = load i32, ptr addrspace(1) %pb
  %pc = getelementptr i32, ptr addrspace(1) %p, i64 2
  %c = load i32, ptr addrspace(1) %pc
  %negated = sub i32 0, %b
  %one = call i32 @llvm.smax.i32(i32 %a, i32 %negated)
  %two = call i32 @llvm.smax.i32(i32 %one, i32 %c)
  store i32 %two, ptr addrspace(1) %p
  ret void
}

; By way of a register that a loop has for it.
; CHECK-LABEL: .entry carried(
; CHECK: not.b32
; CHECK-NOT: neg.s32
define ptx_kernel void @carried(ptr addrspace(1) %p, i32 %n, i32 %c) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %held = phi i32 [ 0, %entry ], [ %negated, %loop ]
  %most = phi i32 [ 0, %entry ], [ %two, %loop ]
  %at = getelementptr i32, ptr addrspace(1) %p, i32 %i
  %b = load volatile i32, ptr addrspace(1) %at
  %one = call i32 @llvm.smax.i32(i32 %most, i32 %held)
  %two = call i32 @llvm.smax.i32(i32 %one, i32 %c)
  %negated = sub i32 0, %b
  %next = add i32 %i, 1
  %more = icmp slt i32 %next, %n
  br i1 %more, label %loop, label %done
done:
  store i32 %two, ptr addrspace(1) %p
  ret void
}

; Nothing is compared here, and nothing with a sign there.
; CHECK-LABEL: .entry subtracted(
; CHECK: neg.s32
; CHECK-LABEL: .entry without_sign(
; CHECK: neg.s32
define ptx_kernel void @subtracted(ptr addrspace(1) %p, i32 %c) {
  %a = load i32, ptr addrspace(1) %p
  %negated = sub i32 0, %a
  %kept = and i32 %negated, %c
  store i32 %kept, ptr addrspace(1) %p
  ret void
}

define ptx_kernel void @without_sign(ptr addrspace(1) %p, i32 %b, i32 %c) {
  %a = load i32, ptr addrspace(1) %p
  %negated = sub i32 0, %a
  %one = call i32 @llvm.umax.i32(i32 %b, i32 %negated)
  %two = call i32 @llvm.umax.i32(i32 %one, i32 %c)
  store i32 %two, ptr addrspace(1) %p
  ret void
}

; A difference from what is zero in a block of one row is a negation for ptxas.
; CHECK-LABEL: .entry from_row(
; CHECK: mov.u32 [[ROW:%r[0-9]+]], %tid.y
; CHECK-NOT: sub.s32
; CHECK: not.b32 %not, %r
; CHECK-SAME: add.s32 %not, %not, [[ROW]]; add.s32 {{%r[0-9]+}}, %not, 1;
; CHECK: max.s32
; From another number it is none.
; CHECK-LABEL: .entry from_argument(
; CHECK: sub.s32
define ptx_kernel void @from_row(ptr addrspace(1) %p, i32 %d) "nvvm.reqntid"="32,1,1" {
  %row = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %a = load i32, ptr addrspace(1) %p
  %difference = sub i32 %row, %a
  %one = call i32 @llvm.smax.i32(i32 %d, i32 %difference)
  %pb = getelementptr i32, ptr addrspace(1) %p, i64 1
  %b = load i32, ptr addrspace(1) %pb
  %two = call i32 @llvm.smax.i32(i32 %one, i32 %b)
  store i32 %two, ptr addrspace(1) %p
  ret void
}

define ptx_kernel void @from_argument(ptr addrspace(1) %p, i32 %d, i32 %c) {
  %a = load i32, ptr addrspace(1) %p
  %difference = sub i32 %c, %a
  %one = call i32 @llvm.smax.i32(i32 %d, i32 %difference)
  %pb = getelementptr i32, ptr addrspace(1) %p, i64 1
  %b = load i32, ptr addrspace(1) %pb
  %two = call i32 @llvm.smax.i32(i32 %one, i32 %b)
  store i32 %two, ptr addrspace(1) %p
  ret void
}

; Two of a vector, which for sm_100 are in one register.
; CHECK-LABEL: .entry pairs(
; CHECK: not.b32 %not
; CHECK-NOT: neg.s32
; CHECK: ret;
define ptx_kernel void @pairs(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %n) {
entry:
  %v = load <2 x i32>, ptr addrspace(1) %p, align 8
  %negated = sub <2 x i32> zeroinitializer, %v
  store <2 x i32> %negated, ptr addrspace(1) %p, align 8
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %most = phi i32 [ 0, %entry ], [ %three, %loop ]
  %at = getelementptr i32, ptr addrspace(1) %q, i32 %i
  %b = load volatile i32, ptr addrspace(1) %at
  %first = extractelement <2 x i32> %negated, i32 0
  %second = extractelement <2 x i32> %negated, i32 1
  %one = call i32 @llvm.smax.i32(i32 %b, i32 %first)
  %two = call i32 @llvm.smax.i32(i32 %one, i32 %second)
  %three = call i32 @llvm.smax.i32(i32 %most, i32 %two)
  %next = add nuw nsw i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %loop, label %end
end:
  store i32 %three, ptr addrspace(1) %q
  ret void
}
