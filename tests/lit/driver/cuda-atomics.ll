; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: sed 's/SDK Version/other/' %s > %t.bare.ll && gpulower compile %t.bare.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=BARE
; RUN: sed 's/wchar_size/other/' %s > %t.ll && gpulower compile %t.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=OTHER
; RUN: sed 's/SDK Version/openmp/' %s > %t.omp.ll && gpulower compile %t.omp.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=OTHER

; What is written of a module of C is not taken for CUDA's when it is read again.
; RUN: sed 's/nvvm-reflect-ftz/other/' %s > %t.c.ll && gpulower compile %t.c.ll --target sm_90 --emit llvm -o %t.again.ll
; RUN: gpulower compile %t.again.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=OTHER

; What clang 22 makes of CUDA's atomicAdd(p, v), atomicCAS(p, v, 3) and atomicMax(p, v): sequentially consistent, of the system.
; CUDA's are relaxed and of the device. What names a scope means it.
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry cuda(
; CHECK-NOT: fence
; CHECK-NOT: .sys
; CHECK: atom.global.add.u32
; CHECK-NOT: fence
; CHECK: atom.relaxed.gpu.global.cas.b32
; CHECK-NOT: fence
; CHECK: atom.global.max.s32
; CHECK: fence.sc.gpu;
; CHECK: atom.acquire.gpu.global.add.u32
; CHECK: atom.acq_rel.sys.global.add.u32
; CHECK: fence.sc.sys;
; CHECK: atom.acquire.sys.global.cas.b32
; OTHER-LABEL: .entry cuda(
; OTHER: fence.sc.sys;
; OTHER: atom.acquire.sys.global.add.u32
; OTHER: fence.sc.sys;
; OTHER: atom.acquire.sys.global.cas.b32
; Without CUDA's headers, a compare-and-swap is not taken for atomicCAS.
; BARE-LABEL: .entry cuda(
; BARE: atom.global.add.u32
; BARE: fence.sc.sys;
; BARE: atom.acquire.sys.global.cas.b32
; BARE: atom.global.max.s32
define ptx_kernel void @cuda(ptr %p, i32 %v) {
  %sum = atomicrmw add ptr %p, i32 %v seq_cst, align 4
  %swap = cmpxchg ptr %p, i32 %v, i32 3 seq_cst seq_cst, align 4
  %max = atomicrmw max ptr %p, i32 %v seq_cst, align 4
  %scoped = atomicrmw add ptr %p, i32 %v syncscope("device") seq_cst, align 4
  %stated = atomicrmw add ptr %p, i32 %v acq_rel, align 4
  %weak = cmpxchg weak ptr %p, i32 %v, i32 5 seq_cst seq_cst, align 4
  ret void
}

!llvm.module.flags = !{!0, !1, !2}
!0 = !{i32 2, !"SDK Version", i32 13}
!1 = !{i32 1, !"wchar_size", i32 4}
!2 = !{i32 4, !"nvvm-reflect-ftz", i32 0}
