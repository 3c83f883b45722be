; Constructors of variables that LLVM cannot carry out. For AMD they are a kernel that the loader runs, over bounds that lld defines;
; CUDA runs none, and with llc the variable stays as it is without a word.

; RUN: split-file %s %t
; RUN: sed 's/TRIPLE/amdgcn-amd-amdhsa/; s/KERNEL/amdgpu_kernel/' %t/late.ll > %t/amd.ll
; RUN: gpulower compile %t/amd.ll --target gfx942 -o %t/k.hsaco
; RUN: llvm-readelf --notes %t/k.hsaco | FileCheck %s --check-prefix=AMD
; AMD: .kind: init
; AMD: .name: amdgcn.device.init

; RUN: sed 's/TRIPLE/nvptx64-nvidia-cuda/; s/KERNEL/ptx_kernel/' %t/late.ll > %t/nvidia.ll
; RUN: not gpulower compile %t/nvidia.ll --target sm_90 -e ptx -o %t/k.ptx 2>&1 | FileCheck %s --check-prefix=NVIDIA
; NVIDIA: a constructor or destructor (llvm.global_ctors, llvm.global_dtors) in a module for sm_90: CUDA runs none

; What LLVM can carry out is a constant value.
; RUN: gpulower compile %t/early.ll --target sm_90 -e ptx -o - | FileCheck %s --check-prefix=EARLY
; EARLY-NOT: init_array
; EARLY: .global .align 4 .u32 x = 7;

; A constructor that is none.
; RUN: gpulower compile %t/none.ll --target sm_90 -e ptx -o - | FileCheck %s --check-prefix=NONE
; NONE: .entry k

;--- none.ll
target triple = "nvptx64-nvidia-cuda"
@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 65535, ptr null, ptr null }]
define ptx_kernel void @k() {
  ret void
}

;--- late.ll
target triple = "TRIPLE"
@x = addrspace(1) global i32 0
@llvm.global_ctors = appending addrspace(1) global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @set, ptr null }]
define internal void @set() {
  store volatile i32 7, ptr addrspace(1) @x
  ret void
}
define KERNEL void @k(ptr addrspace(1) %p) {
  %v = load i32, ptr addrspace(1) @x
  store i32 %v, ptr addrspace(1) %p
  ret void
}

;--- early.ll
target triple = "nvptx64-nvidia-cuda"
@x = addrspace(1) global i32 0
@llvm.global_ctors = appending addrspace(1) global [1 x { i32, ptr, ptr }] [{ i32, ptr, ptr } { i32 1, ptr @set, ptr null }]
define internal void @set() {
  store i32 7, ptr addrspace(1) @x
  ret void
}
define ptx_kernel void @k(ptr addrspace(1) %p) {
  %v = load i32, ptr addrspace(1) @x
  store i32 %v, ptr addrspace(1) %p
  ret void
}
