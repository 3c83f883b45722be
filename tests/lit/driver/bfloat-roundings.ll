; LLVM's passes fold no rounding of a bfloat. Its code generation does, and then folds a choice that depends on the quotient wrongly:
; 0 / 0 is not a number, so that 0 is chosen.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 -O0 --emit llvm -o - | FileCheck %s --check-prefix=IR

; IR-NOT: call {{.*}}@llvm.trunc.v2bf16(

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry chosen(
; CHECK-NOT: 7FC0
; CHECK-NOT: 7fc0
; CHECK: st.global.b32 [%rd{{[0-9]+}}], 1065353216;
define ptx_kernel void @chosen(ptr addrspace(1) %p) {
  %none = call <2 x bfloat> @llvm.trunc.v2bf16(<2 x bfloat> splat (bfloat 0xR21A7))
  %one = insertelement <2 x bfloat> %none, bfloat 0xR41A0, i64 1
  %quotient = fdiv <2 x bfloat> %one, %one
  %is.number = fcmp ord <2 x bfloat> %quotient, zeroinitializer
  %chosen = select <2 x i1> %is.number, <2 x bfloat> %quotient, <2 x bfloat> zeroinitializer
  store <2 x bfloat> %chosen, ptr addrspace(1) %p
  ret void
}

; CHECK-LABEL: .entry rounded(
; 2.5 and -2.5 become 2 and -3, 2 and -2, 3 and -2, 3 and -3.
; CHECK-DAG: -1069531136
; CHECK-DAG: -1073725440
; CHECK-DAG: -1073725376
; CHECK-DAG: -1069531072
define ptx_kernel void @rounded(ptr addrspace(1) %p) {
  %a = call <2 x bfloat> @llvm.floor.v2bf16(<2 x bfloat> <bfloat 0xR4020, bfloat 0xRC020>)
  store <2 x bfloat> %a, ptr addrspace(1) %p
  %b = call <2 x bfloat> @llvm.rint.v2bf16(<2 x bfloat> <bfloat 0xR4020, bfloat 0xRC020>)
  %p1 = getelementptr i32, ptr addrspace(1) %p, i64 1
  store <2 x bfloat> %b, ptr addrspace(1) %p1
  %c = call <2 x bfloat> @llvm.ceil.v2bf16(<2 x bfloat> <bfloat 0xR4020, bfloat 0xRC020>)
  %p2 = getelementptr i32, ptr addrspace(1) %p, i64 2
  store <2 x bfloat> %c, ptr addrspace(1) %p2
  %d = call <2 x bfloat> @llvm.round.v2bf16(<2 x bfloat> <bfloat 0xR4020, bfloat 0xRC020>)
  %p3 = getelementptr i32, ptr addrspace(1) %p, i64 3
  store <2 x bfloat> %d, ptr addrspace(1) %p3
  ret void
}
