// RUN: gpulower compile %s --target sm_100a --emit ptx -o - | FileCheck %s
// RUN: not gpulower compile %s --target gfx942 --emit asm -o %t.s 2>&1 | FileCheck %s --check-prefix=AMD
// RUN: sed 's/approx, ftz/rn/' %s > %t.mlir
// RUN: not gpulower compile %t.mlir --target sm_100a --emit ptx -o %t.ptx 2>&1 | FileCheck %s --check-prefix=RCP

// Modes, hints, scopes and proxies of the nvvm and nvgpu dialects are those of the instructions. The table is docs/semantics.md.

// AMD: semantics-nvidia.mlir:[[#]]:[[#]]: error: {{.*}}nvvm
// RCP: error: {{.*}}'nvgpu.rcp' op
gpu.module @m {
  // CHECK-LABEL: .entry converts(
  // CHECK: cvt.rna.tf32.f32
  // CHECK: cvt.rz.relu.tf32.f32
  // CHECK: cvt.rn.satfinite.relu.e4m3x2.f32
  llvm.func @converts(%a: f32, %b: f32, %p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %r: !llvm.ptr<1>) attributes {gpu.kernel, nvvm.kernel} {
    %x = nvvm.convert.float.to.tf32 %a {rnd = #nvvm.fp_rnd_mode<rna>}
    llvm.store volatile %x, %p : i32, !llvm.ptr<1>
    %y = nvvm.convert.float.to.tf32 %a {rnd = #nvvm.fp_rnd_mode<rz>, relu = true}
    llvm.store volatile %y, %q : i32, !llvm.ptr<1>
    %z = nvvm.convert.f32x2.to.f8x2 %a, %b {rnd = #nvvm.fp_rnd_mode<rn>, sat = #nvvm.sat_mode<satfinite>, relu = true} : i16 (f8E4M3FN)
    llvm.store volatile %z, %r : i16, !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: .entry hints(
  // CHECK: cp.async.ca.shared.global
  // CHECK: cp.async.cg.shared.global
  // CHECK: cp.async.bulk.prefetch.L2.global.L2::cache_hint
  // CHECK: cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint
  // CHECK: prefetch.global.L2::evict_last
  llvm.func @hints(%s: !llvm.ptr<3>, %g: !llvm.ptr<1>, %n: i32, %h: i64, %b: !llvm.ptr<3>, %c: !llvm.ptr<7>) attributes {gpu.kernel, nvvm.kernel} {
    nvvm.cp.async.shared.global %s, %g, 16, cache = ca : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.shared.global %s, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>
    nvvm.cp.async.bulk.prefetch %g, %n l2_cache_hint = %h : !llvm.ptr<1>
    nvvm.cp.async.bulk.shared.cluster.global %c, %g, %b, %n l2_cache_hint = %h : !llvm.ptr<7>, !llvm.ptr<1>
    nvvm.prefetch level = L2, evict_priority = evict_last, %g : !llvm.ptr<1>
    llvm.return
  }

  // CHECK-LABEL: .entry fences(
  // CHECK: fence.proxy.async.global;
  // CHECK: fence.mbarrier_init.release.cluster;
  // CHECK: fence.sc.cluster;
  // CHECK: membar.gl;
  llvm.func @fences() attributes {gpu.kernel, nvvm.kernel} {
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.global>}
    nvvm.fence.mbarrier.init
    nvvm.fence.sc.cluster
    nvvm.memory.barrier #nvvm.mem_scope<gpu>
    llvm.return
  }

  // CHECK-LABEL: .entry approximates(
  // CHECK: rcp.approx.ftz.f32
  gpu.func @approximates(%m: memref<16xf32>) kernel {
    %c = arith.constant 0 : index
    %v = vector.load %m[%c] : memref<16xf32>, vector<16xf32>
    %r = nvgpu.rcp %v {rounding = approx, ftz} : vector<16xf32>
    vector.store %r, %m[%c] : memref<16xf32>, vector<16xf32>
    gpu.return
  }

  // Of all memory.
  // CHECK-LABEL: .entry waits(
  // CHECK: st.shared
  // CHECK: bar{{.*}}.sync 0;
  // CHECK: ld.shared
  gpu.func @waits(%m: memref<?xf32>) workgroup(%w: memref<256xf32, #gpu.address_space<workgroup>>) kernel {
    %i = gpu.thread_id x
    %v = memref.load %m[%i] : memref<?xf32>
    memref.store %v, %w[%i] : memref<256xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %c = arith.constant 255 : index
    %j = arith.subi %c, %i : index
    %x = memref.load %w[%j] : memref<256xf32, #gpu.address_space<workgroup>>
    memref.store %x, %m[%i] : memref<?xf32>
    gpu.return
  }
}
