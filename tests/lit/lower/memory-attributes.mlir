// RUN: sed 's/SCOPE/block/; s/KERNEL/nvvm/' %s | gpulower compile - --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: sed 's/SCOPE/workgroup/; s/KERNEL/rocdl/' %s | gpulower compile - --target gfx942 --emit asm -o - | FileCheck %s --check-prefix=GCN

// What is said of an access is in the instruction. The table is docs/semantics.md.

gpu.module @m {
  // Alignment: no access is wider than what was promised.
  // PTX-LABEL: .entry aligned(
  // PTX-COUNT-4: ld.global.b32
  // PTX-COUNT-2: st.global.v2.b32
  // PTX: st.global.v4.b32
  // A hint, which AMD's instructions have, and NVIDIA's do not by this name.
  // GCN-LABEL: aligned:
  // GCN: global_store_dwordx4 {{.*}} nt
  gpu.func @aligned(%m: memref<?xf32>, %v: memref<?xf32>, %i: index) kernel {
    %b = vector.load %v[%i] {nontemporal = true, alignment = 4} : memref<?xf32>, vector<4xf32>
    vector.store %b, %m[%i] {nontemporal = true, alignment = 8} : memref<?xf32>, vector<4xf32>
    %c = vector.load %v[%i] {alignment = 16} : memref<?xf32>, vector<4xf32>
    vector.store %c, %m[%i] {alignment = 16} : memref<?xf32>, vector<4xf32>
    gpu.return
  }

  // PTX-LABEL: .entry ordered(
  // PTX: ld.volatile.global.b32
  // PTX: st.volatile.global.b32
  // PTX: ld.acquire.cta.global.b32
  // PTX: st.release.cta.global.b32
  // PTX: fence.sc.cta;
  // GCN-LABEL: ordered:
  // GCN: {{flat|global}}_load_dword {{.*}} sc0 sc1
  // GCN: {{flat|global}}_store_dword {{.*}} sc0 sc1
  // GCN: {{flat|global}}_load_dword {{.*}} sc0
  // GCN: {{flat|global}}_store_dword {{.*}} sc0
  llvm.func @ordered(%p: !llvm.ptr, %i: i32) attributes {gpu.kernel, KERNEL.kernel} {
    %a = llvm.load volatile %p : !llvm.ptr -> f32
    llvm.store volatile %a, %p : f32, !llvm.ptr
    %d = llvm.load %p atomic syncscope("SCOPE") acquire {alignment = 4 : i64} : !llvm.ptr -> f32
    llvm.store %d, %p atomic syncscope("SCOPE") release {alignment = 4 : i64} : f32, !llvm.ptr
    llvm.fence syncscope("SCOPE") seq_cst
    llvm.return
  }
}
