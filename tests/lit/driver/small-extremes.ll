; A maximum of 16 bits that is compared with its operand: ptxas makes one instruction of both, which compares the wrong half of a
; register (VIMNMX.U16x2 R0, P0, P0). With 32 bits it does not.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin
; RUN: %cuda/bin/nvdisasm -c %t.cubin | FileCheck --check-prefix=SASS %s

; CHECK: cvt.u32.u16 %wide0, [[X:%rs[0-9]+]];{{.*}} max.u32
; CHECK-NOT: max.u16
; SASS-NOT: 16x2

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr %p, i16 %x, i16 %y) {
  %most = call i16 @llvm.umax.i16(i16 %x, i16 %y)
  %is = icmp eq i16 %most, %y
  %chosen = select i1 %is, i16 77, i16 %most
  store i16 %chosen, ptr %p
  ret void
}

declare i16 @llvm.umax.i16(i16, i16)
