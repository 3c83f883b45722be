; RUN: rm -rf %t && mkdir %t
; RUN: sed 's/TRIPLE/nvptx64-nvidia-cuda/; s/KERNEL/ptx_kernel/; s/SCOPE/device/' %s > %t/nvidia.ll
; RUN: gpulower compile %t/nvidia.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
; RUN: sed 's/TRIPLE/amdgcn-amd-amdhsa/; s/KERNEL/amdgpu_kernel/; s/SCOPE/agent/' %s > %t/amd.ll
; RUN: gpulower compile %t/amd.ll --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN

; What LLVM IR says of an operation or an access, for both vendors. The table is docs/semantics.md.

target triple = "TRIPLE"

; Exceptions: there are none. Operations without a mode are the plain ones; LLVM 22 has no code for some of them.
; PTX-LABEL: .entry exceptions(
; PTX-DAG: cvt.rzi.s32.f32
; PTX-DAG: cvt.rzi.u32.f32
; PTX-DAG: setp.lt.f32
; PTX-DAG: cvt.rmi.f32.f32
; GCN-LABEL: exceptions:
; GCN-DAG: v_cvt_i32_f32
; GCN-DAG: v_cvt_u32_f32
; GCN-DAG: v_cmp_{{.*}}_f32
; GCN-DAG: v_floor_f32
define KERNEL void @exceptions(ptr addrspace(1) %p, float %a, float %b) {
  %i = call i32 @llvm.experimental.constrained.fptosi.i32.f32(float %a, metadata !"fpexcept.strict")
  %n = call i32 @llvm.experimental.constrained.fptoui.i32.f32(float %b, metadata !"fpexcept.maytrap")
  %less = call i1 @llvm.experimental.constrained.fcmp.f32(float %a, float %b, metadata !"olt", metadata !"fpexcept.ignore")
  %f = call float @llvm.experimental.constrained.floor.f32(float %a, metadata !"fpexcept.strict")
  %sum = add i32 %i, %n
  %bits = bitcast float %f to i32
  %r = select i1 %less, i32 %sum, i32 %bits
  store i32 %r, ptr addrspace(1) %p
  ret void
}
declare i32 @llvm.experimental.constrained.fptosi.i32.f32(float, metadata)
declare i32 @llvm.experimental.constrained.fptoui.i32.f32(float, metadata)
declare i1 @llvm.experimental.constrained.fcmp.f32(float, float, metadata, metadata)
declare float @llvm.experimental.constrained.floor.f32(float, metadata)

; PTX-LABEL: .entry dynamic(
; PTX: add.rn.f32
; GCN-LABEL: dynamic:
; GCN: v_add_f32
define KERNEL void @dynamic(ptr addrspace(1) %p, float %a) {
  %r = call float @llvm.experimental.constrained.fadd.f32(float %a, float %a, metadata !"round.dynamic", metadata !"fpexcept.strict")
  store float %r, ptr addrspace(1) %p
  ret void
}
declare float @llvm.experimental.constrained.fadd.f32(float, float, metadata, metadata)

; `nsw`: a number and one is more than the number, always. Without it, the largest is the exception.
; PTX-LABEL: .entry never_wraps(
; PTX-NOT: 2147483647
; PTX-LABEL: .entry wraps(
; PTX: 2147483647
; GCN-LABEL: never_wraps:
; GCN-NOT: 0x7fffffff
; GCN-LABEL: {{^}}wraps:
; GCN: 0x7fffffff
define KERNEL void @never_wraps(ptr addrspace(1) %p, i32 %a) {
  %s = add nsw i32 %a, 1
  %t = icmp sgt i32 %s, %a
  %r = zext i1 %t to i32
  store i32 %r, ptr addrspace(1) %p
  ret void
}
define KERNEL void @wraps(ptr addrspace(1) %p, i32 %a) {
  %s = add i32 %a, 1
  %t = icmp sgt i32 %s, %a
  %r = zext i1 %t to i32
  store i32 %r, ptr addrspace(1) %p
  ret void
}

; Atomics without an instruction.
; PTX-LABEL: .entry loops(
; PTX: atom.acq_rel.gpu.global.cas.b32
; PTX: fence.sc.gpu;
; PTX: atom.acquire.gpu.global.cas.b32
; GCN-LABEL: loops:
; GCN: buffer_wbl2 sc1
; GCN: global_atomic_cmpswap
; GCN: buffer_inv sc1
; GCN: global_atomic_cmpswap
define KERNEL void @loops(ptr addrspace(1) %p, i32 %a, i8 %b) {
  %x = atomicrmw nand ptr addrspace(1) %p, i32 %a syncscope("SCOPE") acq_rel
  %y = atomicrmw add ptr addrspace(1) %p, i8 %b syncscope("SCOPE") seq_cst
  ret void
}

; PTX-LABEL: .entry invariant(
; PTX: ld.global.nc.b32
; GCN-LABEL: invariant:
; GCN: s_load_dword s
define KERNEL void @invariant(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %a = load i32, ptr addrspace(1) %p, !invariant.load !0
  store i32 %a, ptr addrspace(1) %q
  ret void
}

; What is apart is read once; what may be the same memory, twice.
; PTX-LABEL: .entry apart(
; PTX-COUNT-1: ld.global
; PTX-NOT: ld.global
; PTX-LABEL: .entry scoped(
; PTX-COUNT-1: ld.global
; PTX-NOT: ld.global
; PTX-LABEL: .entry together(
; PTX-COUNT-2: ld.global
define KERNEL void @apart(ptr addrspace(1) noalias %p, ptr addrspace(1) noalias %q) {
  %a = load i32, ptr addrspace(1) %p
  store i32 7, ptr addrspace(1) %q
  %b = load i32, ptr addrspace(1) %p
  %c = add i32 %a, %b
  store i32 %c, ptr addrspace(1) %q
  ret void
}
define KERNEL void @scoped(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %a = load i32, ptr addrspace(1) %p, !alias.scope !3, !noalias !4
  store i32 7, ptr addrspace(1) %q, !alias.scope !4, !noalias !3
  %b = load i32, ptr addrspace(1) %p, !alias.scope !3, !noalias !4
  %c = add i32 %a, %b
  store i32 %c, ptr addrspace(1) %q, !alias.scope !4, !noalias !3
  ret void
}
define KERNEL void @together(ptr addrspace(1) %p, ptr addrspace(1) %q) {
  %a = load i32, ptr addrspace(1) %p
  store i32 7, ptr addrspace(1) %q
  %b = load i32, ptr addrspace(1) %p
  %c = add i32 %a, %b
  store i32 %c, ptr addrspace(1) %q
  ret void
}

; A hint; dropped.
; PTX-LABEL: .entry prefetches(
; PTX-NOT: prefetch.
; PTX: st.global
; GCN-LABEL: prefetches:
; GCN-NOT: prefetch
; GCN: global_store
define KERNEL void @prefetches(ptr addrspace(1) %p) {
  call void @llvm.prefetch.p1(ptr addrspace(1) %p, i32 0, i32 3, i32 1)
  store i32 1, ptr addrspace(1) %p
  ret void
}
declare void @llvm.prefetch.p1(ptr addrspace(1), i32, i32, i32)

!0 = !{}
!1 = distinct !{!1}
!2 = distinct !{!2, !1}
!3 = !{!2}
!4 = !{!5}
!5 = distinct !{!5, !1}
