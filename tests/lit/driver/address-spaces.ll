; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 -O2 --emit ptx -o - | FileCheck %s

; An address that may be outside of shared memory is not cast: the window of shared memory has 4 GiB, and what is added afterwards
; does not come back into it.
target triple = "nvptx64-nvidia-cuda"

@table = internal addrspace(3) global [2048 x i32] undef, align 4

; CHECK-LABEL: .entry passed_on(
; CHECK: add.s64 [[WHOLE:%rd[0-9]+]], %rd{{[0-9]+}}, 4096;
; CHECK-NEXT: cvta.shared.u64 %rd{{[0-9]+}}, [[WHOLE]];
define ptx_kernel void @passed_on(ptr %p, i32 %i) {
  %wide = sext i32 %i to i64
  %before = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @table to ptr), i64 %wide
  %at = getelementptr i8, ptr %before, i64 4096
  call void @keep(ptr %at, i32 %i)
  ret void
}

; CHECK-LABEL: .entry of_a_thread(
; CHECK: add.s64 [[WHOLE:%rd[0-9]+]], %rd{{[0-9]+}}, 4096;
; CHECK-NEXT: cvta.local.u64 %rd{{[0-9]+}}, [[WHOLE]];
define ptx_kernel void @of_a_thread(ptr %p, i32 %i) {
  %own = alloca [2048 x i32], align 4
  %wide = sext i32 %i to i64
  %before = getelementptr i32, ptr %own, i64 %wide
  %at = getelementptr i8, ptr %before, i64 4096
  call void @keep(ptr %at, i32 %i)
  %value = load i32, ptr %own
  store i32 %value, ptr %p
  ret void
}

; Within the variable, the parts may be cast.
; CHECK-LABEL: .entry within(
; CHECK: cvta.shared.u64
define ptx_kernel void @within(ptr %p, i32 %i) {
  %wide = sext i32 %i to i64
  %before = getelementptr inbounds i32, ptr addrspacecast (ptr addrspace(3) @table to ptr), i64 %wide
  %at = getelementptr inbounds i8, ptr %before, i64 4096
  call void @keep(ptr %at, i32 %i)
  ret void
}

; Atomic operations know the memory, too.
; CHECK-LABEL: .entry counts(
; CHECK-NOT: cvta.shared
; CHECK: atom.shared.add.u32 %r{{[0-9]+}}, [%rd{{[0-9]+}}+4096], 1;
; CHECK-NOT: cvta.shared
define ptx_kernel void @counts(ptr %p, i32 %i) {
  %wide = sext i32 %i to i64
  %before = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @table to ptr), i64 %wide
  %at = getelementptr i8, ptr %before, i64 4096
  %old = atomicrmw add ptr %at, i32 1 monotonic
  store i32 %old, ptr %p
  ret void
}

; CHECK-LABEL: .entry from_before(
; CHECK: add.s64 [[WHOLE:%rd[0-9]+]], %rd{{[0-9]+}}, -8192;
; CHECK-NEXT: cvta.shared.u64 %rd{{[0-9]+}}, [[WHOLE]];
define ptx_kernel void @from_before(ptr %p, i32 %i) {
  %wide = sext i32 %i to i64
  %at = getelementptr i32, ptr getelementptr (i8, ptr addrspacecast (ptr addrspace(3) @table to ptr), i64 -8192), i64 %wide
  call void @keep(ptr %at, i32 %i)
  ret void
}

; CHECK-LABEL: .entry of_either(
; CHECK: add.s64 [[WHOLE:%rd[0-9]+]], %rd{{[0-9]+}}, 4096;
; CHECK-NEXT: cvta.shared.u64 %rd{{[0-9]+}}, [[WHOLE]];
define ptx_kernel void @of_either(ptr %p, i32 %i, i1 %far) {
entry:
  %wide = sext i32 %i to i64
  %near.at = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @table to ptr), i64 %wide
  br i1 %far, label %more, label %end
more:
  %times = mul i64 %wide, 3
  %far.at = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @table to ptr), i64 %times
  store volatile i32 %i, ptr %p
  br label %end
end:
  %before = phi ptr [ %near.at, %entry ], [ %far.at, %more ]
  %at = getelementptr i8, ptr %before, i64 4096
  call void @keep(ptr %at, i32 %i)
  ret void
}

define internal void @keep(ptr %p, i32 %value) noinline {
  store volatile i32 %value, ptr %p
  ret void
}

