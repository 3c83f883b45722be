; A weak reference to what nobody defines is null, as a linker has it. HIP's headers declare `threadIdx` so, and without
; optimisation its address is what a method is called on.

; RUN: sed -e 's/SPACE/addrspace(1)/g; s/KERNEL/amdgpu_kernel/; s/TRIPLE/amdgcn-amd-amdhsa/' %s > %t.amd.ll
; RUN: sed -e 's/SPACE/addrspace(1)/g; s/KERNEL/ptx_kernel/; s/TRIPLE/nvptx64-nvidia-cuda/' %s > %t.nvidia.ll
; RUN: gpulower compile %t.amd.ll --target gfx942 --emit llvm -o - | FileCheck %s --check-prefix=IR
; RUN: gpulower compile %t.nvidia.ll --target sm_90 --emit llvm -o - | FileCheck %s --check-prefix=IR
; RUN: gpulower compile %t.amd.ll --target gfx942 -o %t.hsaco
; RUN: gpulower compile %t.nvidia.ll --target sm_90 -o %t.cubin

; IR-NOT: threadIdx
; IR-NOT: hook
; IR: store i32 5

target triple = "TRIPLE"

@threadIdx = extern_weak protected SPACE global [1 x i8]

declare extern_weak void @hook()

define internal i32 @get(ptr %this) {
  ret i32 5
}

define KERNEL void @k(ptr SPACE %p) {
  %value = call i32 @get(ptr addrspacecast (ptr SPACE @threadIdx to ptr))
  store i32 %value, ptr SPACE %p
  %there = icmp ne ptr @hook, null
  br i1 %there, label %call, label %end
call:
  call void @hook()
  br label %end
end:
  ret void
}
