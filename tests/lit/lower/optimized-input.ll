; LLVM IR that its producer has optimised, as Triton's, is left as it is: another round of LLVM's passes can make it worse
; (registers of one kernel of Triton's: 56 for 45). Code generation and the PTX compiler keep their level.
; RUN: gpulower compile %s --target sm_90 --emit llvm -o - | FileCheck %s --check-prefix=AGAIN
; RUN: gpulower compile %s --target sm_90 --emit llvm --input-optimized -o - | FileCheck %s --check-prefix=ONCE
; RUN: gpulower compile %s --target gfx942 --emit llvm --input-optimized -o - | FileCheck %s --check-prefix=ONCE

; AGAIN: define {{.*}} @twice
; AGAIN-NEXT: shl {{.*}} 2
; ONCE: @twice
; ONCE: mul {{.*}} 2
; ONCE: mul {{.*}} 2

; What comes from a library is optimised, and so is all of it.
; RUN: echo 'declare float @__nv_sinf(float)' > %t.ll
; RUN: echo 'define ptx_kernel void @k(ptr addrspace(1) %%p) {' >> %t.ll
; RUN: echo '  %%x = load float, ptr addrspace(1) %%p' >> %t.ll
; RUN: echo '  %%y = call float @__nv_sinf(float %%x)' >> %t.ll
; RUN: echo '  store float %%y, ptr addrspace(1) %%p' >> %t.ll
; RUN: echo '  ret void' >> %t.ll
; RUN: echo '}' >> %t.ll
; RUN: gpulower compile %t.ll --target sm_90 --emit llvm --input-optimized -o - | FileCheck %s --check-prefix=LIBRARY
; LIBRARY-NOT: call {{.*}}__nv_sinf
; LIBRARY: @k

; RUN: echo 'gpu.module @m {}' > %t.mlir
; RUN: not gpulower compile %t.mlir --target sm_90 --input-optimized -o %t.cubin 2>&1 | FileCheck %s --check-prefix=MLIR
; MLIR: option 'input-optimized' cannot be honoured for sm_90: it is for LLVM IR, and this is MLIR; leave the option out

define i32 @twice(i32 %x) noinline {
  %a = mul i32 %x, 2
  %b = mul i32 %a, 2
  ret i32 %b
}
