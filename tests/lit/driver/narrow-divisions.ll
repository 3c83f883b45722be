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

; The divisor has to fit, too: one counter is divided by another that stays below 2^32, and by a number of which nothing is known.
; CHECK-LABEL: .entry counters(
; CHECK-NOT: setp.lt
; CHECK: rem.u32
; CHECK-NOT: rem.{{[us]}}64
; CHECK-LABEL: .entry by_anything(
; CHECK: or.b64
; CHECK: rem.u32
define ptx_kernel void @counters(ptr %p) {
entry:
  br label %loop
loop:
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %d = phi i64 [ 1, %entry ], [ %d.next, %loop ]
  %rest = urem i64 %s, %d
  store volatile i64 %rest, ptr %p
  %d.next = add nuw nsw i64 %d, 3
  %s.next = add nuw nsw i64 %s, 1
  %more = icmp ne i64 %s.next, 255
  br i1 %more, label %loop, label %end
end:
  ret void
}

define ptx_kernel void @by_anything(ptr %p, i64 %d) {
entry:
  br label %loop
loop:
  %s = phi i64 [ 0, %entry ], [ %s.next, %loop ]
  %square = mul nuw nsw i64 %s, %s
  %rest = urem i64 %square, %d
  store volatile i64 %rest, ptr %p
  %s.next = add nuw nsw i64 %s, 1
  %more = icmp ne i64 %s.next, 255
  br i1 %more, label %loop, label %end
end:
  ret void
}

; What may be negative is divided as it is.
; CHECK-LABEL: .entry negative(
; CHECK: mul.hi.s64
define ptx_kernel void @negative(ptr %p) {
entry:
  br label %loop
loop:
  %s = phi i64 [ -100, %entry ], [ %s.next, %loop ]
  %rest = sdiv i64 %s, 7
  store volatile i64 %rest, ptr %p
  %s.next = add nsw i64 %s, 1
  %more = icmp ne i64 %s.next, 255
  br i1 %more, label %loop, label %end
end:
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
