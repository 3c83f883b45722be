; The absolute value of the least number is the least number; ptxas takes `abs.s32` to be 0 or more, and drops comparisons.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry may_be_least(
; CHECK: not.b32 {{.*}} add.s32
; CHECK: max.s32
; CHECK: setp.gt.s32
define ptx_kernel void @may_be_least(ptr %p, i32 %x) {
  %absolute = call i32 @llvm.abs.i32(i32 %x, i1 false)
  %negative = icmp slt i32 %absolute, 0
  %result = select i1 %negative, i32 -1, i32 7
  store i32 %result, ptr %p
  ret void
}

; CHECK-LABEL: .entry of_64_and_16_bits(
; CHECK-NOT: abs.s
define ptx_kernel void @of_64_and_16_bits(ptr %p, i64 %x, i16 %y) {
  %long = call i64 @llvm.abs.i64(i64 %x, i1 false)
  store i64 %long, ptr %p
  %short = call i16 @llvm.abs.i16(i16 %y, i1 false)
  %wide = sext i16 %short to i64
  %q = getelementptr i64, ptr %p, i64 1
  store i64 %wide, ptr %q
  ret void
}

; One that cannot be the least number, and one whose absolute value is then left open.
; CHECK-LABEL: .entry is_never_least(
; CHECK: abs.s32
; CHECK: abs.s32
define ptx_kernel void @is_never_least(ptr %p, i32 %x, i32 %y) {
  %wide = ashr i32 %x, 1
  %one = call i32 @llvm.abs.i32(i32 %wide, i1 false)
  %other = call i32 @llvm.abs.i32(i32 %y, i1 true)
  store i32 %one, ptr %p
  %q = getelementptr i32, ptr %p, i64 1
  store i32 %other, ptr %q
  ret void
}

; The difference of bytes, and of numbers of 16 bits: no maximum and minimum of the narrow ones, which ptxas extends.
; What one is added to is part of it.
; CHECK-LABEL: .entry of_bytes(
; CHECK-NOT: .u16
; CHECK: mov.b32 [[NONE:%r[0-9]+]], 0;
; CHECK-NOT: .u16
; CHECK: sad.s32 [[ONE:%r[0-9]+]], %r{{[0-9]+}}, %r{{[0-9]+}}, [[NONE]]
; CHECK: sad.s32 %r{{[0-9]+}}, %r{{[0-9]+}}, %r{{[0-9]+}}, [[ONE]]
; CHECK-NOT: {{min|max|add.s32}}
; CHECK: st.global
define ptx_kernel void @of_bytes(ptr %p, ptr %q, ptr %to) {
  %a = load i8, ptr %p
  %b = load i8, ptr %q
  %wide.a = zext i8 %a to i32
  %wide.b = zext i8 %b to i32
  %difference = sub nsw i32 %wide.a, %wide.b
  %one = call i32 @llvm.abs.i32(i32 %difference, i1 true)
  %p1 = getelementptr i16, ptr %p, i64 1
  %q1 = getelementptr i16, ptr %q, i64 1
  %c = load i16, ptr %p1
  %d = load i16, ptr %q1
  %wide.c = sext i16 %c to i32
  %wide.d = sext i16 %d to i32
  %other.difference = sub nsw i32 %wide.c, %wide.d
  %other = call i32 @llvm.abs.i32(i32 %other.difference, i1 true)
  %sum = add i32 %one, %other
  store i32 %sum, ptr %to
  ret void
}

; A difference that does not come around, as nobody else says; one that may, and one of which all bits are asked for.
; CHECK-LABEL: .entry of_wide(
; CHECK: sad.s32
; CHECK-NOT: sad.s32
; CHECK: sub.s32
; CHECK: max.s32
; CHECK: abs.s32
; CHECK: ret;
define ptx_kernel void @of_wide(ptr %p, i32 %a, i32 %b) {
  %difference = sub nsw i32 %a, %b
  %one = call i32 @llvm.abs.i32(i32 %difference, i1 true)
  store i32 %one, ptr %p
  %q = getelementptr i32, ptr %p, i64 1
  %c = load i32, ptr %q
  %other.difference = sub nsw i32 %a, %c
  %other = call i32 @llvm.abs.i32(i32 %other.difference, i1 false)
  store i32 %other, ptr %q
  %r = getelementptr i32, ptr %p, i64 2
  %d = load i32, ptr %r
  %wraps = sub i32 %a, %d
  %third = call i32 @llvm.abs.i32(i32 %wraps, i1 true)
  store i32 %third, ptr %r
  ret void
}

; Of a number that is extended, in 32 bits; of one that is used as it is, in its own.
; CHECK-LABEL: .entry of_extended(
; CHECK: ld.global.s16
; CHECK: abs.s32
; CHECK-NEXT: st.global.b32
; CHECK: sub.u16
; CHECK: st.global.b16
define ptx_kernel void @of_extended(ptr %p, ptr %q) {
  %x = load i16, ptr %p
  %absolute = call i16 @llvm.abs.i16(i16 %x, i1 false)
  %wide = zext i16 %absolute to i32
  store i32 %wide, ptr %q
  %p1 = getelementptr i16, ptr %p, i64 1
  %y = load i16, ptr %p1
  %other = call i16 @llvm.abs.i16(i16 %y, i1 false)
  store i16 %other, ptr %p
  ret void
}
