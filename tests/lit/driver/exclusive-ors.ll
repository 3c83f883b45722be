; RUN: gpulower compile %s --target sm_90 --emit llvm --llvm-passes 'function(gpulower-separate-exclusive-ors)' -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit llvm -o - | FileCheck %s

; The address in one of two buffers that take turns: what stays in the loop is computed before it.
target triple = "nvptx64-nvidia-cuda"

@buffers = internal addrspace(3) global [2 x [64 x i32]] undef, align 4

; CHECK-LABEL: @other_side(
; CHECK: loop:
; CHECK-NOT: xor {{.*}}%j
; CHECK: or disjoint i64
; CHECK-LABEL: @carries(
; CHECK: [[SUM:%.*]] = add {{.*}}%j
; CHECK: xor i64 [[SUM]], 64
define ptx_kernel void @other_side(ptr %p, i64 %t) {
entry:
  %odd = and i64 %t, 1
  %side = shl nuw nsw i64 %odd, 6
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %j.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %here = add nuw nsw i64 %j, %side
  %there = xor i64 %here, 64
  %at = getelementptr inbounds nuw i32, ptr addrspace(3) @buffers, i64 %there
  %value = load i32, ptr addrspace(3) %at
  %scaled = mul i32 %value, %sum
  %sum.next = add i32 %scaled, 1
  store i32 %sum.next, ptr addrspace(3) %at
  %j.next = add nuw nsw i64 %j, 1
  %more = icmp ult i64 %j.next, 64
  br i1 %more, label %loop, label %end
end:
  store i32 %sum.next, ptr %p
  ret void
}

; Up to 70, the sum has other bits than the two together.
define ptx_kernel void @carries(ptr %p, i64 %t) {
entry:
  %odd = and i64 %t, 1
  %side = shl nuw nsw i64 %odd, 6
  br label %loop
loop:
  %j = phi i64 [ 0, %entry ], [ %j.next, %loop ]
  %sum = phi i32 [ 0, %entry ], [ %sum.next, %loop ]
  %here = add nuw nsw i64 %j, %side
  %there = xor i64 %here, 64
  %at = getelementptr i32, ptr %p, i64 %there
  %value = load i32, ptr %at
  %scaled = mul i32 %value, %sum
  %sum.next = add i32 %scaled, 1
  store i32 %sum.next, ptr %at
  %j.next = add nuw nsw i64 %j, 1
  %more = icmp ult i64 %j.next, 70
  br i1 %more, label %loop, label %end
end:
  store i32 %sum.next, ptr %p
  ret void
}

; Vectors are not looked at.
; CHECK-LABEL: @of_vectors(
; CHECK: add
; CHECK: xor
define ptx_kernel void @of_vectors(ptr %p, <4 x i32> %a, <4 x i32> %b) {
  %x = and <4 x i32> %a, splat (i32 15)
  %y = and <4 x i32> %b, splat (i32 15)
  %sum = add <4 x i32> %x, %y
  %result = xor <4 x i32> %sum, splat (i32 1)
  store <4 x i32> %result, ptr %p
  ret void
}
