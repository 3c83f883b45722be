; Remainders of a counter that are each other's next go from one iteration to the next without a division.

; RUN: gpulower compile %s --target sm_90 --emit llvm --interleave 1 -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit ptx --interleave 1 -o - | FileCheck %s --check-prefix=PTX
; RUN: gpulower compile %s --target sm_90 --emit llvm --llvm-passes 'always-inline,function(gpulower-rotate-remainders)' -o - \
; RUN:   | FileCheck %s --check-prefix=ALONE

target triple = "nvptx64-nvidia-cuda"

; Three buffers in turn: all that is left is which is which.
; CHECK-LABEL: define ptx_kernel void @three(
; CHECK-DAG: [[FIRST:%remainder[0-9]*]] = phi i32 [ 0, %{{.*}} ], [ [[SECOND:%remainder[0-9]*]], %{{.*}} ]
; CHECK-DAG: [[SECOND]] = phi i32 [ 1, %{{.*}} ], [ [[THIRD:%remainder[0-9]*]], %{{.*}} ]
; CHECK-DAG: [[THIRD]] = phi i32 [ 2, %{{.*}} ], [ [[FIRST]], %{{.*}} ]
; CHECK-NOT: urem
; CHECK: ret void
; PTX-LABEL: .entry three(
; PTX-NOT: mul.hi
; PTX: ret;
define ptx_kernel void @three(ptr addrspace(1) %p, i32 %n) {
entry:
  %some = icmp sgt i32 %n, 0
  br i1 %some, label %loop, label %end

loop:
  %k = phi i32 [ 0, %entry ], [ %k1, %loop ]
  %k1 = add nuw nsw i32 %k, 1
  %k2 = add nuw nsw i32 %k, 2
  %a = urem i32 %k, 3
  %b = urem i32 %k1, 3
  %c = urem i32 %k2, 3
  call void @turn(ptr addrspace(1) %p, i32 %a, i32 %b, i32 %c)
  %more = icmp slt i32 %k1, %n
  br i1 %more, label %loop, label %end

end:
  ret void
}

; Two of five, in steps of two from a number that is not known: the first of an iteration later is computed from this one's.
; What the loop begins with comes of the first number's remainder: a sum with it might come around.
; CHECK-LABEL: define ptx_kernel void @two(
; CHECK: [[BEGIN:%.*]] = urem i32 %from, 5
; CHECK: [[LATER:%.*]] = add nuw {{.*}}i32 [[BEGIN]], 2
; CHECK: urem i32 [[LATER]], 5
; CHECK: phi i32 [ %{{.*}}, %{{.*}} ], [ %{{.*}}, %{{.*}} ]
; CHECK: call i32 @llvm.umin.i32(
; CHECK: ret void
define ptx_kernel void @two(ptr addrspace(1) %p, i32 %n, i32 %from) {
entry:
  %some = icmp ult i32 %from, %n
  br i1 %some, label %loop, label %end

loop:
  %k = phi i32 [ %from, %entry ], [ %next, %loop ]
  %next = add nuw i32 %k, 2
  %a = urem i32 %k, 5
  %b = urem i32 %next, 5
  call void @turn(ptr addrspace(1) %p, i32 %a, i32 %b, i32 %a)
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %end

end:
  ret void
}

; A counter that may come around: what follows on 2^32 - 1 is 0, and the remainders begin anew.
; CHECK-LABEL: define ptx_kernel void @around(
; CHECK-NOT: %remainder
; CHECK: urem
; CHECK: urem
; CHECK: ret void
define ptx_kernel void @around(ptr addrspace(1) %p, i32 %n, i32 %from) {
entry:
  br label %loop

loop:
  %k = phi i32 [ %from, %entry ], [ %next, %loop ]
  %next = add i32 %k, 1
  %a = urem i32 %k, 3
  %b = urem i32 %next, 3
  call void @turn(ptr addrspace(1) %p, i32 %a, i32 %b, i32 %a)
  %more = icmp ne i32 %next, %n
  br i1 %more, label %loop, label %end

end:
  ret void
}

define internal void @turn(ptr addrspace(1) %p, i32 %a, i32 %b, i32 %c) alwaysinline {
  %x = getelementptr i32, ptr addrspace(1) %p, i32 %a
  %y = getelementptr i32, ptr addrspace(1) %p, i32 %b
  %z = getelementptr i32, ptr addrspace(1) %p, i32 %c
  %u = load i32, ptr addrspace(1) %x
  %v = load i32, ptr addrspace(1) %y
  %w = xor i32 %u, %v
  store i32 %w, ptr addrspace(1) %z
  ret void
}

; What two cases lead to has two edges from one block.
; ALONE-LABEL: define ptx_kernel void @cases(
; ALONE-NOT: %remainder
; ALONE: ret void
define ptx_kernel void @cases(ptr addrspace(1) %p, i32 %n, i32 %from) {
entry:
  switch i32 %from, label %end [
    i32 3, label %loop
    i32 9, label %loop
  ]

loop:
  %k = phi i32 [ 0, %entry ], [ 0, %entry ], [ %next, %loop ]
  %next = add nuw i32 %k, 1
  %a = urem i32 %k, 3
  %b = urem i32 %next, 3
  call void @turn(ptr addrspace(1) %p, i32 %a, i32 %b, i32 %a)
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %end

end:
  ret void
}
