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
