; A maximum of 16 bits that is compared with its operand: ptxas makes one instruction of both, which compares the wrong half of a
; register (VIMNMX.U16x2 R0, P0, P0).

; RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin
; RUN: %cuda/bin/nvdisasm -c %t.cubin | FileCheck --check-prefix=SASS %s

; SASS-NOT: 16x2

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr %p, i16 %x) {
  %low = and i16 %x, 3
  %most = call i16 @llvm.umax.i16(i16 %low, i16 2)
  %is = icmp eq i16 %most, 2
  %chosen = select i1 %is, i64 3244294144, i64 1119169205
  store i64 %chosen, ptr %p
  ret void
}

declare i16 @llvm.umax.i16(i16, i16)
