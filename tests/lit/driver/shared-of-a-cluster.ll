; Atomic operations in shared memory are of the block, unless its addresses may reach other blocks: the scope is what was written then.
; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: sed 's/mapa.shared::cluster.u64/add.u64/' %s > %t.ll
; RUN: gpulower compile %t.ll --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=BLOCK

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry swaps(
; CHECK: atom.acq_rel.gpu.shared.cas.b32
; CHECK: atom.acq_rel.gpu.shared.add.u32
; BLOCK-LABEL: .entry swaps(
; BLOCK: atom.acq_rel.cta.shared.cas.b32
; BLOCK: atom.acq_rel.cta.shared.add.u32
define ptx_kernel void @swaps(ptr addrspace(3) %p, ptr addrspace(1) %q, i32 %n) {
  %here = ptrtoint ptr addrspace(3) %p to i64
  %there = call i64 asm "mapa.shared::cluster.u64 $0, $1, 1;", "=l,l"(i64 %here)
  %other = inttoptr i64 %there to ptr addrspace(3)
  %pair = cmpxchg ptr addrspace(3) %other, i32 0, i32 %n syncscope("device") acq_rel monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  %added = atomicrmw add ptr addrspace(3) %other, i32 %n syncscope("device") acq_rel
  store i32 %old, ptr addrspace(1) %q
  %next = getelementptr i32, ptr addrspace(1) %q, i32 1
  store i32 %added, ptr addrspace(1) %next
  ret void
}
