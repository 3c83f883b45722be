; RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s

; As for NVIDIA: what may be outside of LDS is not cast.
target triple = "amdgcn-amd-amdhsa"

@table = internal addrspace(3) global [2048 x i32] undef, align 4

; CHECK-LABEL: @passed_on(
; CHECK: getelementptr i32, ptr addrspace(3) @table
; CHECK: getelementptr i8, ptr addrspace(3) %{{.*}}, i{{32|64}} 4096
; CHECK: addrspacecast ptr addrspace(3)
define amdgpu_kernel void @passed_on(ptr %p, i32 %i) {
  %wide = sext i32 %i to i64
  %before = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @table to ptr), i64 %wide
  %at = getelementptr i8, ptr %before, i64 4096
  call void @keep(ptr %at, i32 %i)
  ret void
}

define internal void @keep(ptr %p, i32 %value) noinline {
  store volatile i32 %value, ptr %p
  ret void
}
