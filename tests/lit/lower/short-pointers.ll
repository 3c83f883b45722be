; A module whose layout says that pointers into workgroup, constant and private memory have 32 bits gets such addresses:
; llc needs the switch -nvptx-short-ptr for it, and ignores the layout.
; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=SHORT
; RUN: sed 's/-p3:32:32-p4:32:32-p5:32:32//' %s > %t.ll
; RUN: gpulower compile %t.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=LONG
; RUN: gpulower compile %s --target sm_90 -o %t.cubin

; SHORT: mov.b32 [[BASE:%r[0-9]+]], table;
; SHORT: ld.shared.b32 {{%r[0-9]+}}, [%r
; LONG: ld.shared.b32 {{%r[0-9]+}}, [%rd

target datalayout = "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@table = internal addrspace(3) global [64 x i32] poison, align 4

define ptx_kernel void @pick(ptr addrspace(1) %out, i32 %i) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %mine = getelementptr inbounds i32, ptr addrspace(3) @table, i32 %thread
  store i32 %i, ptr addrspace(3) %mine
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  %other = getelementptr inbounds i32, ptr addrspace(3) @table, i32 %i
  %value = load i32, ptr addrspace(3) %other
  store i32 %value, ptr addrspace(1) %out
  ret void
}
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
