; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: sed 's/%%base, 64/%%base, 72/' %s > %t.ll
; RUN: not gpulower compile %t.ll --target sm_90 --emit ptx -o - 2>&1 | FileCheck %s --check-prefix=REFUSED

; As Triton writes it: inline assembly, addresses as integers, memory whose size the launch gives.

; CHECK-DAG: .extern .shared .align 16 .b8 memory[];
; CHECK-DAG: .shared .align 16 .b8 tile[256];
; REFUSED: error: link, module {{.*}}: ldmatrix.sync.aligned.m8n8.x4.shared.b16 in kernel uses the address 72 bytes behind the start of tile, and the hardware wants a multiple of 16

target triple = "nvptx64-nvidia-cuda"

@memory = external addrspace(3) global [0 x i8], align 4
@tile = internal addrspace(3) global [128 x i16] undef, align 2

define ptx_kernel void @kernel(ptr addrspace(1) %from, ptr addrspace(1) %to) {
  %t = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %offset = shl i32 %t, 4
  %there = getelementptr i8, ptr addrspace(3) @memory, i32 %offset
  tail call void asm sideeffect "cp.async.cg.shared.global [ $0 + 0 ], [ $1 + 0 ], 0x10;", "r,l"(ptr addrspace(3) %there, ptr addrspace(1) %from)
  %base = ptrtoint ptr addrspace(3) @tile to i32
  %row = add i32 %base, 64
  %m = tail call { i32, i32, i32, i32 } asm sideeffect "ldmatrix.sync.aligned.m8n8.x4.shared.b16 { $0, $1, $2, $3 }, [ $4 + 0 ];", "=r,=r,=r,=r,r"(i32 %row)
  %v = extractvalue { i32, i32, i32, i32 } %m, 0
  %first = load i32, ptr addrspace(3) @memory, align 4
  %sum = add i32 %v, %first
  store i32 %sum, ptr addrspace(1) %to, align 4
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
