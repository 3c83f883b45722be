; A store of the low part of a register that an instruction on floats made: ptxas converts the float (F2I) where the store
; takes the register itself. It has to be moved to one without a type first.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 --emit cubin -o %t.cubin
; RUN: %cuda/bin/nvdisasm -c %t.cubin | FileCheck --check-prefix=SASS %s

; CHECK: add.rn.f64 [[Y:%rd[0-9]+]]
; CHECK: mov.b64 %low0, [[Y]]; st.global.b32 [%{{rd[0-9]+}}], %low0;
; CHECK: mov.b64 %low0, [[Y]]; st.global.b16 [%{{rd[0-9]+}}+8], %low0;
; CHECK: mul.rn.f32 [[G:%r[0-9]+]]
; CHECK: mov.b32 %low0, [[G]]; st.global.b8 [%{{rd[0-9]+}}+16], %low0;

; SASS-NOT: F2I

target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr addrspace(1) %p, double %x, float %f) {
  %y = fadd double %x, 1.0
  store double %y, ptr addrspace(1) %p, align 4
  %b = bitcast double %y to i64
  %t = trunc i64 %b to i16
  %q = getelementptr i8, ptr addrspace(1) %p, i64 8
  store i16 %t, ptr addrspace(1) %q
  %g = fmul float %f, %f
  %gb = bitcast float %g to i32
  %gt = trunc i32 %gb to i8
  %q2 = getelementptr i8, ptr addrspace(1) %p, i64 16
  store i8 %gt, ptr addrspace(1) %q2
  ret void
}
