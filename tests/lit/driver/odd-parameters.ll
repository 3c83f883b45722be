; Integers of any width as parameters: LLVM declares `.param .u4`, which ptxas takes for a syntax error.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin

; CHECK: .param .u32 k_param_1,
; CHECK: .param .u64 k_param_2,
; CHECK: .param .u8 k_param_3,
; CHECK: .param .align 16 .b8 k_param_4[16]

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr %p, i24 %a, i48 %b, i4 %c, i100 %d) {
  %a1 = sext i24 %a to i64
  store volatile i64 %a1, ptr %p
  %b1 = sext i48 %b to i64
  store volatile i64 %b1, ptr %p
  %c1 = sext i4 %c to i64
  store volatile i64 %c1, ptr %p
  %d1 = trunc i100 %d to i64
  store volatile i64 %d1, ptr %p
  ret void
}
