; A loop that takes bits away one by one has as many iterations as there are bits, and one where there are none.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit llvm --llvm-passes 'function(loop(gpulower-count-bits))' -o - | FileCheck %s --check-prefix=PASS

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry kernighan(
; CHECK: popc.b64
; CHECK-NOT: bra
; CHECK: st.global
define ptx_kernel void @kernighan(ptr %from, ptr %to) {
entry:
  %x = load i64, ptr %from
  %none = icmp eq i64 %x, 0
  br i1 %none, label %exit, label %loop
loop:
  %bits = phi i64 [ %fewer, %loop ], [ %x, %entry ]
  %count = phi i8 [ %more, %loop ], [ 0, %entry ]
  %less = add i64 %bits, -1
  %fewer = and i64 %less, %bits
  %more = add i8 %count, 1
  %done = icmp eq i64 %fewer, 0
  br i1 %done, label %exit, label %loop
exit:
  %result = phi i8 [ 0, %entry ], [ %more, %loop ]
  store i8 %result, ptr %to
  ret void
}

; At least one iteration; a step that is an argument; the value before the last step; the other side of the branch.
; PASS-LABEL: @once(
; PASS: [[BITS:%.*]] = call i32 @llvm.ctpop.i32(i32 %x)
; PASS: [[COUNT:%.*]] = call i32 @llvm.umax.i32(i32 [[BITS]], i32 1)
; PASS: [[WIDE:%.*]] = zext i32 [[COUNT]] to i64
; PASS: [[PRODUCT:%.*]] = mul i64 [[WIDE]], %step
; PASS: [[ALL:%.*]] = add i64 %start, [[PRODUCT]]
; PASS: [[BEFORE:%.*]] = sub i64 [[ALL]], %step
; PASS-NOT: label %loop,
; PASS: [[LAST:%.*]] = phi i64 [ [[BEFORE]], %loop ]
; PASS: = phi i32 [ 0, %loop ]
; PASS: [[MORE:%.*]] = phi i64 [ [[ALL]], %loop ]
; PASS: store i64 [[LAST]]
; PASS: store i64 [[MORE]]
define ptx_kernel void @once(i32 %x, i64 %start, i64 %step, ptr %to, ptr %last, ptr %rest) {
entry:
  br label %loop
loop:
  %bits = phi i32 [ %x, %entry ], [ %fewer, %loop ]
  %count = phi i64 [ %start, %entry ], [ %more, %loop ]
  %less = add i32 %bits, -1
  %fewer = and i32 %bits, %less
  %more = add nsw i64 %step, %count
  %again = icmp ne i32 %fewer, 0
  br i1 %again, label %loop, label %exit
exit:
  store i64 %count, ptr %to
  store i64 %more, ptr %last
  store i32 %fewer, ptr %rest
  ret void
}

; Not these: something else is done for each bit; another bit is taken away; what is left is seen.
; PASS-LABEL: @stores(
; PASS-NOT: ctpop
define ptx_kernel void @stores(i32 %x, ptr %to) {
entry:
  br label %loop
loop:
  %bits = phi i32 [ %x, %entry ], [ %fewer, %loop ]
  %place = call i32 @llvm.cttz.i32(i32 %bits, i1 false)
  %address = getelementptr i32, ptr %to, i32 %place
  store volatile i32 1, ptr %address
  %less = add i32 %bits, -1
  %fewer = and i32 %bits, %less
  %again = icmp ne i32 %fewer, 0
  br i1 %again, label %loop, label %exit
exit:
  ret void
}

; PASS-LABEL: @others(
; PASS-NOT: ctpop
define ptx_kernel void @others(i32 %x, ptr %to) {
entry:
  br label %loop
loop:
  %bits = phi i32 [ %x, %entry ], [ %fewer, %loop ]
  %count = phi i32 [ 0, %entry ], [ %more, %loop ]
  %less = add i32 %bits, -2
  %fewer = and i32 %bits, %less
  %more = add i32 %count, 1
  %again = icmp ne i32 %fewer, 0
  br i1 %again, label %loop, label %exit
exit:
  store i32 %more, ptr %to
  ret void
}

; PASS-LABEL: @last(
; PASS-NOT: ctpop
define ptx_kernel void @last(i32 %x, ptr %to) {
entry:
  br label %loop
loop:
  %bits = phi i32 [ %x, %entry ], [ %fewer, %loop ]
  %less = add i32 %bits, -1
  %fewer = and i32 %bits, %less
  %again = icmp ne i32 %fewer, 0
  br i1 %again, label %loop, label %exit
exit:
  store i32 %bits, ptr %to
  ret void
}

; A product of counters is no count.
; PASS-LABEL: @doubled(
; PASS-NOT: ctpop
define ptx_kernel void @doubled(i32 %x, ptr %to) {
entry:
  br label %loop
loop:
  %bits = phi i32 [ %x, %entry ], [ %fewer, %loop ]
  %count = phi i32 [ 1, %entry ], [ %more, %loop ]
  %less = add i32 %bits, -1
  %fewer = and i32 %bits, %less
  %more = add i32 %count, %count
  %again = icmp ne i32 %fewer, 0
  br i1 %again, label %loop, label %exit
exit:
  store i32 %more, ptr %to
  ret void
}

; Vectors are not counted with.
; PASS-LABEL: @vectors(
; PASS-NOT: ctpop
define ptx_kernel void @vectors(i32 %x, ptr %to, <2 x i32> %step) {
entry:
  br label %loop
loop:
  %bits = phi i32 [ %x, %entry ], [ %fewer, %loop ]
  %count = phi <2 x i32> [ zeroinitializer, %entry ], [ %more, %loop ]
  %less = add i32 %bits, -1
  %fewer = and i32 %bits, %less
  %more = add <2 x i32> %count, %step
  %again = icmp ne i32 %fewer, 0
  br i1 %again, label %loop, label %exit
exit:
  store <2 x i32> %more, ptr %to
  ret void
}

; PASS: declare
