; A text that states no data layout has that of its target: an i64 is stored at once.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; CHECK: st.global.b64

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr addrspace(1) %p, i64 %x) {
  store i64 %x, ptr addrspace(1) %p
  ret void
}
