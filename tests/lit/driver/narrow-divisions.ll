; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit ptx --speed fast -o - | FileCheck %s --check-prefix=FAST

; A number of 64 bits that stays below 2^32, as a counter does, is divided as one of 32 bits.
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry counter(
; CHECK-COUNT-3: mul.hi.u32
; CHECK-NOT: mul.hi
; CHECK-LABEL: .entry long_counter(
; CHECK: mul.hi.u64
define ptx_kernel void @counter(ptr %p) {
entry:
  br label %loop
loop:
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %side = urem i64 %s, 3
  %fifth = sdiv i64 %s, 5
  %s.more = add nuw nsw i64 %s, 100
  %seventh = udiv i64 %s.more, 7
  %at = getelementptr i64, ptr %p, i64 %side
  store volatile i64 %fifth, ptr %at
  store volatile i64 %seventh, ptr %at
  %s.next = add nuw nsw i64 %s, 1
  %more = icmp ne i64 %s.next, 255
  br i1 %more, label %loop, label %end
end:
  ret void
}

define ptx_kernel void @long_counter(ptr %p) {
entry:
  br label %loop
loop:
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %side = urem i64 %s, 3
  %at = getelementptr i64, ptr %p, i64 %side
  store volatile i64 %s, ptr %at
  %s.next = add nuw nsw i64 %s, 1
  %more = icmp ne i64 %s.next, 4294967298
  br i1 %more, label %loop, label %end
end:
  ret void
}

; The divisor has to fit, too. (What is less than it is the rest. LLVM finds this out by itself.)
; CHECK-LABEL: .entry divisor(
; CHECK: setp.lt.u64
; CHECK: rem.u32
define ptx_kernel void @divisor(ptr %p, i64 %number, i64 %divisor) {
  %low = and i64 %number, 4294967295
  %rest = urem i64 %low, %divisor
  store i64 %rest, ptr %p
  ret void
}

; CHECK-LABEL: .entry both(
; CHECK-NOT: setp
; CHECK: rem.u32
; CHECK-NOT: rem.u64
; CHECK-LABEL: .entry negative(
define ptx_kernel void @both(ptr %p, i64 %number, i64 %divisor) {
  %low = and i64 %number, 4294967295
  %short = and i64 %divisor, 1023
  %rest = urem i64 %low, %short
  store i64 %rest, ptr %p
  ret void
}

; CHECK: mul.hi.s64
define ptx_kernel void @negative(ptr %p, i32 %number) {
  %wide = sext i32 %number to i64
  %more = add nsw i64 %wide, 1
  %quotient = sdiv i64 %more, 7
  store i64 %quotient, ptr %p
  ret void
}

; Whether both fit is asked where the kernel runs, with little time for compiling as well.
; CHECK-LABEL: .entry unknown(
; CHECK: or.b64
; CHECK: rem.{{[us]}}{{32|64}}
; CHECK: rem.{{[us]}}{{32|64}}
; FAST-LABEL: .entry unknown(
; FAST: or.b64
; FAST: rem.{{[us]}}{{32|64}}
; FAST: rem.{{[us]}}{{32|64}}
define ptx_kernel void @unknown(ptr %p, i64 %number, i64 %divisor) {
  %rest = urem i64 %number, %divisor
  store i64 %rest, ptr %p
  ret void
}
