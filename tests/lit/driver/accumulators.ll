; RUN: gpulower compile %s --target sm_90 --emit llvm --interleave 1 -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit llvm --interleave 1 -O2 -o - | FileCheck %s --check-prefix=LATE
; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX

; Which values that a loop keeps in memory are in registers while it runs. (scripts/check_loops.py executes such loops, with
; buffers that overlap.)

; Nothing is known of the pointers: the addresses are compared, and what is compared is the whole range that is read.
; CHECK-LABEL: define ptx_kernel void @row(
; CHECK: [[APART:%.*]] = {{and|select}} i1
; CHECK: br i1 [[APART]], label %[[KEPT:.*]], label %[[MET:.*]]
; CHECK: [[MET]]:
; CHECK: load float
; CHECK: store float
; CHECK: br i1
; CHECK: [[KEPT]]:
; CHECK: load float
; CHECK-NOT: store
; CHECK: br i1
; CHECK: store float
; CHECK: ret void
; LLVM's own pipelines do so when they have unrolled what they unroll.
; LATE-LABEL: @row(
; LATE: loop.met:
; PTX-LABEL: .entry row(
; PTX: st.global
; PTX: st.global
; PTX-NOT: st.global
; PTX: ret;
define ptx_kernel void @row(ptr %x, ptr %y, i64 %n) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p, align 4
  %old = load float, ptr %y, align 4
  %new = fadd float %old, %v
  store float %new, ptr %y, align 4
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Two loops of known length: one comparison before both, and one store behind them.
; CHECK-LABEL: define ptx_kernel void @window(
; CHECK: [[MET:.*]]:
; CHECK: store float
; CHECK: store float
; CHECK-NOT: store
; CHECK: ret void
define ptx_kernel void @window(ptr %x, ptr %f, ptr %y, i64 %pitch) {
entry:
  br label %outer
outer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %outer.end ]
  %row = mul nsw i64 %i, %pitch
  %tap = mul nsw i64 %i, 3
  br label %inner
inner:
  %j = phi i64 [ 0, %outer ], [ %j.next, %inner ]
  %at = add nsw i64 %row, %j
  %p = getelementptr float, ptr %x, i64 %at
  %v = load float, ptr %p, align 4
  %of = add nsw i64 %tap, %j
  %q = getelementptr float, ptr %f, i64 %of
  %w = load float, ptr %q, align 4
  %old = load float, ptr %y, align 4
  %product = fmul float %v, %w
  %new = fadd float %old, %product
  store float %new, ptr %y, align 4
  %j.next = add nsw i64 %j, 1
  %j.more = icmp slt i64 %j.next, 3
  br i1 %j.more, label %inner, label %outer.end
outer.end:
  %i.next = add nsw i64 %i, 1
  %i.more = icmp slt i64 %i.next, 3
  br i1 %i.more, label %outer, label %end
end:
  ret void
}

; What the host passed is not in a workgroup's memory: nothing is compared.
; CHECK-LABEL: define ptx_kernel void @of_workgroup(
; CHECK: loop:
; CHECK-NOT: store
; CHECK: br i1
; CHECK: store float {{.*}}, ptr addrspace(3) @shared
; CHECK: ret void
@shared = internal addrspace(3) global float poison, align 4
define ptx_kernel void @of_workgroup(ptr %x, i64 %n) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p, align 4
  %old = load float, ptr addrspace(3) @shared, align 4
  %new = fadd float %old, %v
  store float %new, ptr addrspace(3) @shared, align 4
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  %kept = load float, ptr addrspace(3) @shared, align 4
  %out = getelementptr float, ptr %x, i64 -1
  store float %kept, ptr %out, align 4
  ret void
}

; Where the addresses that are read are not known before the loop, where a barrier lets others see the value, where it is written under
; a condition, and where accesses say that they are volatile, the loop stays.
; CHECK-LABEL: define ptx_kernel void @gather(
; CHECK-NOT: .met
; CHECK: store float
; CHECK-NOT: store float
; CHECK: ret void
define ptx_kernel void @gather(ptr %x, ptr %at, ptr %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %c = getelementptr i64, ptr %at, i64 %i
  %k = load i64, ptr %c, align 8
  %p = getelementptr float, ptr %x, i64 %k
  %v = load float, ptr %p, align 4
  %old = load float, ptr %y, align 4
  %new = fadd float %old, %v
  store float %new, ptr %y, align 4
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: define ptx_kernel void @barrier(
; CHECK-NOT: .met
; CHECK: store float
; CHECK-NOT: store float
; CHECK: ret void
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
define ptx_kernel void @barrier(ptr %x, ptr %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p, align 4
  %old = load float, ptr %y, align 4
  %new = fadd float %old, %v
  store float %new, ptr %y, align 4
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: define ptx_kernel void @sometimes(
; CHECK-NOT: .met
; CHECK: store float
; CHECK-NOT: store float
; CHECK: ret void
define ptx_kernel void @sometimes(ptr %x, ptr %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p, align 4
  %is = fcmp ogt float %v, 0.0
  br i1 %is, label %add, label %latch
add:
  %old = load float, ptr %y, align 4
  %new = fadd float %old, %v
  store float %new, ptr %y, align 4
  br label %latch
latch:
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; CHECK-LABEL: define ptx_kernel void @volatile(
; CHECK-NOT: .met
; CHECK: store volatile float
; CHECK-NOT: store
; CHECK: ret void
define ptx_kernel void @volatile(ptr %x, ptr %y, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p, align 4
  %old = load volatile float, ptr %y, align 4
  %new = fadd float %old, %v
  store volatile float %new, ptr %y, align 4
  %next = add nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
