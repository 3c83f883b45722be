; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; Loads of the host's memory pass atomic operations on workgroup memory that order nothing else, as those of a histogram.

target triple = "nvptx64-nvidia-cuda"

@bins = internal addrspace(3) global [16 x i32] zeroinitializer, align 4

; CHECK-LABEL: .entry histogram(
; CHECK-COUNT-4: ld.global.b32
; CHECK-NOT: ld.global
; CHECK-COUNT-4: atom.shared.add.u32
; CHECK: bra
; CHECK: .pragma "nounroll";
; CHECK: ld.global.b32
; CHECK: atom.shared.add.u32
; CHECK: ret;
define ptx_kernel void @histogram(ptr %x, i64 %n) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %p, align 4
  %bin = and i32 %v, 15
  %at = getelementptr i32, ptr addrspace(3) @bins, i32 %bin
  %old = atomicrmw add ptr addrspace(3) %at, i32 1 monotonic, align 4
  %next = add nuw nsw i64 %i, 256
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; What is read after an operation that acquires is not read before it.
; CHECK-LABEL: .entry acquires(
; CHECK: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: ret;
define ptx_kernel void @acquires(ptr %x, i64 %n) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %p, align 4
  %bin = and i32 %v, 15
  %at = getelementptr i32, ptr addrspace(3) @bins, i32 %bin
  %old = atomicrmw add ptr addrspace(3) %at, i32 1 acq_rel, align 4
  %next = add nuw nsw i64 %i, 256
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}

; Bins in the host's memory may be what is read.
; CHECK-LABEL: .entry of_the_host(
; CHECK: ld.global.b32
; CHECK-NOT: ld.global
; CHECK: ret;
define ptx_kernel void @of_the_host(ptr %x, ptr %bins, i64 %n) {
entry:
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %p, align 4
  %bin = and i32 %v, 15
  %at = getelementptr i32, ptr %bins, i32 %bin
  %old = atomicrmw add ptr %at, i32 1 monotonic, align 4
  %next = add nuw nsw i64 %i, 256
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}
