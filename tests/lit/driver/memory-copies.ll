; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s

; A structure of four words: all is read before anything is written. Aligned, it is one access; of memory that stays, by the
; read-only path.
target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry words(
; CHECK: ld.global.b32
; CHECK-NOT: st.
; CHECK: ld.global.b32
; CHECK-NOT: st.
; CHECK: ld.global.b32
; CHECK-NOT: st.
; CHECK: ld.global.b32
; CHECK: st.global.b32
; CHECK-NOT: ld.
; CHECK: st.global.b32
define ptx_kernel void @words(ptr %to, ptr %from) {
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %to, ptr align 4 %from, i64 16, i1 false)
  ret void
}

; CHECK-LABEL: .entry aligned(
; CHECK: ld.global.nc.v4.b32
; CHECK: ld.global.nc.b64
; CHECK: ld.global.nc.b8
; CHECK: st.global.v4.b32
; CHECK: st.global.b64
; CHECK: st.global.b8
define ptx_kernel void @aligned(ptr noalias %to, ptr noalias readonly %from) {
  call void @llvm.memcpy.p0.p0.i64(ptr align 16 %to, ptr align 16 %from, i64 25, i1 false)
  ret void
}

; What overlaps is read before as well.
; CHECK-LABEL: .entry overlapping(
; CHECK: ld.global.b64
; CHECK: ld.global.b64
; CHECK: st.global.b64
; CHECK: st.global.b64
define ptx_kernel void @overlapping(ptr %p) {
  %q = getelementptr i8, ptr %p, i64 8
  call void @llvm.memmove.p0.p0.i64(ptr align 8 %q, ptr align 8 %p, i64 16, i1 false)
  ret void
}

; Too many pieces for registers, and volatile.
; CHECK-LABEL: .entry long(
; CHECK: ld.global.b8
; CHECK-NEXT: st.global.b8
define ptx_kernel void @long(ptr %to, ptr %from) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 64, i1 false)
  ret void
}
