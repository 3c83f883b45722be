// What is chosen depends on the input, the options and the tools alone: not on threads, and not on the cache.
// RUN: rm -rf %t && mkdir %t
// RUN: gpulower compile %s --target sm_90 --emit cubin -o %t/one.cubin --speed best --no-cache -j1 -v 2>&1 \
// RUN:   | FileCheck %s --check-prefix=SAID
// RUN: gpulower compile %s --target sm_90 --emit cubin -o %t/four.cubin --speed best --no-cache -j4 --report=json \
// RUN:   | FileCheck %s --check-prefix=REPORT
// RUN: cmp %t/one.cubin %t/four.cubin
// RUN: gpulower compile %s --target sm_90 --emit cubin -o %t/cached.cubin --speed best --cache-dir %t/cache
// RUN: gpulower compile %s --target sm_90 --emit cubin -o %t/again.cubin --speed best --cache-dir %t/cache
// RUN: cmp %t/one.cubin %t/cached.cubin && cmp %t/one.cubin %t/again.cubin
//
// One kernel is as with balanced. The other has few threads at work, for the memory that its blocks share.
// RUN: gpulower compile %s --target sm_90 --emit ptx -o %t/best.ptx --speed best
// RUN: FileCheck %s --check-prefix=MIXED < %t/best.ptx
//
// What is asked for is kept to, and then nothing is left to choose.
// RUN: gpulower compile %s --target sm_90 --emit ptx -o %t/asked.ptx --speed best --interleave 2
// RUN: gpulower compile %s --target sm_90 --emit ptx -o %t/plain.ptx --interleave 2
// RUN: cmp %t/asked.ptx %t/plain.ptx
//
// AMD's modules are chosen as wholes.
// RUN: gpulower compile %s --target gfx942 -o %t/k.hsaco --speed best --report=json | FileCheck %s --check-prefix=AMD
//
// LLVM IR is none of what is chosen from; a listener that sees the stages sees those of what is chosen.
// RUN: gpulower compile %s --target sm_90 --emit llvm -o - --speed best > %t/best.ll
// RUN: gpulower compile %s --target sm_90 --emit llvm -o - > %t/balanced.ll
// RUN: cmp %t/best.ll %t/balanced.ll
// RUN: gpulower compile %s --target sm_90 -o %t/dumped.cubin --speed best --dump-dir %t/dump --report=json \
// RUN:   | FileCheck %s --check-prefix=WHOLE
//
// In the attribute of the target.
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_90 speed=best" \
// RUN:   | gpulower compile - --emit ptx -o %t/attribute.ptx
// RUN: cmp %t/attribute.ptx %t/best.ptx

// SAID: speed=best, kernel scale: interleave=8: {{[0-9]+}} registers for {{[0-9]+}}, occupancy 13% for 13%, estimated 0.{{[0-9]+}} of balanced
// SAID: speed=best, kernel sum: interleave=4: as balanced: no variant is estimated 0.9 of its time (interleave=1 {{.*}}, interleave=2 {{.*}}, interleave=8 {{.*}})
// REPORT: "speed=best, kernel scale"
// REPORT: "speed=best, kernel sum"
// MIXED-LABEL: .entry sum(
// MIXED-COUNT-5: ld.global.b32
// MIXED-NOT: ld.global
// MIXED-LABEL: .entry scale(
// MIXED-COUNT-9: ld.global.b32
// AMD: "speed=best, all kernels"
// WHOLE: "speed=best, all kernels"

gpu.module @kernels {
  gpu.func @sum(%x: memref<?xf32>, %out: memref<?xf32>, %n: index) kernel {
    %zero = arith.constant 0.0 : f32
    %t = gpu.thread_id x
    %d = gpu.block_dim x
    %sum = scf.for %i = %t to %n step %d iter_args(%before = %zero) -> (f32) {
      %v = memref.load %x[%i] : memref<?xf32>
      %s = arith.addf %before, %v : f32
      scf.yield %s : f32
    }
    memref.store %sum, %out[%t] : memref<?xf32>
    gpu.return
  }
  gpu.func @scale(%x: memref<?xf32>, %y: memref<?xf32>, %s: f32, %n: index)
      workgroup(%w: memref<12000xf32, #gpu.address_space<workgroup>>) kernel attributes {known_block_size = array<i32: 64, 1, 1>} {
    %t = gpu.thread_id x
    %d = gpu.block_dim x
    memref.store %s, %w[%t] : memref<12000xf32, #gpu.address_space<workgroup>>
    gpu.barrier
    %c63 = arith.constant 63 : index
    %other = arith.subi %c63, %t : index
    %f = memref.load %w[%other] : memref<12000xf32, #gpu.address_space<workgroup>>
    scf.for %i = %t to %n step %d {
      %v = memref.load %x[%i] : memref<?xf32>
      %p = arith.mulf %v, %f : f32
      memref.store %p, %y[%i] : memref<?xf32>
    }
    gpu.return
  }
}
