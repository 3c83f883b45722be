; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; A loop of eight iterations with a branch in it, which ptxas does not unroll: more than LLVM's limit of 300 instructions, less
; than nvcc's of 400.
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry eight(
; CHECK-COUNT-16: ld.global.b64
; CHECK-NOT: bra{{.*}}_1;
define ptx_kernel void @eight(ptr %p, ptr %w, ptr %q) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %next ]
  %at = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %at
  %a0 = lshr i64 %v, 8
  %a1 = and i64 %v, 255
  %a2 = lshr i64 %v, 21
  %a3 = xor i64 %a2, %a0
  %a4 = mul i64 %a3, 1640531527
  %a5 = lshr i64 %a4, 13
  %a6 = xor i64 %a5, %a4
  %a7 = mul i64 %a6, %a3
  %a8 = lshr i64 %a7, 17
  %a9 = xor i64 %a8, %a7
  %a10 = mul i64 %a9, %a4
  %a11 = lshr i64 %a10, 19
  %a12 = xor i64 %a11, %a10
  %a13 = mul i64 %a12, %a9
  %a14 = xor i64 %a13, %a5
  %a15 = mul i64 %a14, %a12
  %a16 = lshr i64 %a15, 23
  %a17 = xor i64 %a16, %a13
  %bit = and i64 %a17, 1
  %set = icmp ne i64 %bit, 0
  br i1 %set, label %take, label %next

take:
  %index = and i64 %a17, 1023
  %weight.at = getelementptr i64, ptr %w, i64 %index
  %weight = load i64, ptr %weight.at
  %product = mul i64 %weight, %a1
  %more = add i64 %sum, %product
  br label %next

next:
  %sum.next = phi i64 [ %sum, %loop ], [ %more, %take ]
  %i.next = add nuw nsw i64 %i, 1
  %again = icmp ne i64 %i.next, 8
  br i1 %again, label %loop, label %end

end:
  store i64 %sum.next, ptr %q
  ret void
}

; Seven iterations without a branch: ptxas unrolls loops of more, and bodies of less.
; CHECK-LABEL: .entry seven(
; CHECK-COUNT-7: ld.global.b64
; CHECK-NOT: bra
; CHECK: ret;
define ptx_kernel void @seven(ptr %p, ptr %q) {
entry:
  br label %loop

loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %sum.next, %loop ]
  %at = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %at
  %a0 = xor i64 %v, %sum
  %a1 = mul i64 %a0, 1640531527
  %a2 = lshr i64 %a1, 9
  %a3 = xor i64 %a2, %sum
  %a4 = mul i64 %a3, 1640531527
  %a5 = lshr i64 %a4, 12
  %a6 = xor i64 %a5, %sum
  %a7 = mul i64 %a6, 1640531527
  %a8 = lshr i64 %a7, 15
  %a9 = xor i64 %a8, %sum
  %a10 = mul i64 %a9, 1640531527
  %a11 = lshr i64 %a10, 18
  %a12 = xor i64 %a11, %sum
  %a13 = mul i64 %a12, 1640531527
  %a14 = lshr i64 %a13, 21
  %a15 = xor i64 %a14, %sum
  %a16 = mul i64 %a15, 1640531527
  %a17 = lshr i64 %a16, 24
  %a18 = xor i64 %a17, %sum
  %a19 = mul i64 %a18, 1640531527
  %a20 = lshr i64 %a19, 7
  %a21 = xor i64 %a20, %sum
  %a22 = mul i64 %a21, 1640531527
  %a23 = lshr i64 %a22, 10
  %a24 = xor i64 %a23, %sum
  %a25 = mul i64 %a24, 1640531527
  %a26 = lshr i64 %a25, 13
  %a27 = xor i64 %a26, %sum
  %a28 = mul i64 %a27, 1640531527
  %a29 = lshr i64 %a28, 16
  %sum.next = add i64 %sum, %a29
  %i.next = add nuw nsw i64 %i, 1
  %again = icmp ne i64 %i.next, 7
  br i1 %again, label %loop, label %end

end:
  store i64 %sum.next, ptr %q
  ret void
}
