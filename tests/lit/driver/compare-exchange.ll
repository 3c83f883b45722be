; Loops of compare-and-swap whose parts are used otherwise than by the loop stay as they are.

; RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s
; RUN: gpulower compile %s --target sm_90 -O0 --emit ptx -o - | FileCheck %s
; RUN: sed 's/nvptx64-nvidia-cuda/amdgcn-amd-amdhsa/; s/ptx_kernel/amdgpu_kernel/; s/syncscope("device") //' %s > %t.amd.ll
; RUN: gpulower compile %t.amd.ll --target gfx942 --emit llvm -o - | FileCheck %s --check-prefix=AMD

target triple = "nvptx64-nvidia-cuda"

; CHECK-LABEL: .entry stores_both(
; CHECK: atom.{{.*}}cas
; CHECK: @%p{{[0-9]+}} bra
; CHECK-LABEL: .entry asks_again(
; CHECK: atom.{{.*}}cas
; CHECK: ret;
; AMD: cmpxchg
define ptx_kernel void @stores_both(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %k) {
entry:
  %first = load i32, ptr addrspace(1) %p
  br label %loop
loop:
  %current = phi i32 [ %first, %entry ], [ %old, %loop ]
  %free = icmp eq i32 %current, -1
  %new = select i1 %free, i32 %k, i32 %current
  %pair = cmpxchg ptr addrspace(1) %p, i32 %current, i32 %new syncscope("device") acq_rel monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %end, label %loop
end:
  store { i32, i1 } %pair, ptr addrspace(1) %q
  ret void
}

define ptx_kernel void @asks_again(ptr addrspace(1) %p, ptr addrspace(1) %q, i32 %k) {
entry:
  %first = load i32, ptr addrspace(1) %p
  br label %loop
loop:
  %current = phi i32 [ %first, %entry ], [ %old, %loop ]
  %free = icmp eq i32 %current, -1
  %new = select i1 %free, i32 %k, i32 %current
  %pair = cmpxchg ptr addrspace(1) %p, i32 %current, i32 %new syncscope("device") acq_rel monotonic
  %old = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %end, label %loop
end:
  %again = extractvalue { i32, i1 } %pair, 1
  %before = extractvalue { i32, i1 } %pair, 0
  %chosen = select i1 %again, i32 %before, i32 7
  store i32 %chosen, ptr addrspace(1) %q
  ret void
}
