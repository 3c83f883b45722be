// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: gpulower compile %s --target sm_60 --emit ptx -o - | FileCheck %s --check-prefix=OLD

// LLVM 22 writes `atom.add` for all of these, which is relaxed and of the GPU.

gpu.module @kernels {
  // PTX-LABEL: .entry stated(
  // PTX: atom.acq_rel.sys.global.add.u32
  // PTX: fence.sc.gpu;
  // PTX: atom.acquire.gpu.global.exch.b32
  // PTX: atom.release.cta.global.max.s32
  // PTX: atom.relaxed.sys.global.add.f32
  // PTX: atom.global.add.u32
  // PTX: atom.acq_rel.gpu.global.cas.b64
  // OLD-LABEL: .entry stated(
  // OLD: membar.sys;
  // OLD: atom.global.add.u32
  // OLD: membar.sys;
  llvm.func @stated(%p: !llvm.ptr, %f: f32) attributes {gpu.kernel, nvvm.kernel} {
    %one = llvm.mlir.constant(1 : i32) : i32
    %long = llvm.mlir.constant(1 : i64) : i64
    %0 = llvm.atomicrmw add %p, %one acq_rel : !llvm.ptr, i32
    %1 = llvm.atomicrmw xchg %p, %one syncscope("device") seq_cst : !llvm.ptr, i32
    %2 = llvm.atomicrmw max %p, %one syncscope("block") release : !llvm.ptr, i32
    %3 = llvm.atomicrmw fadd %p, %f monotonic : !llvm.ptr, f32
    %4 = llvm.atomicrmw add %p, %one syncscope("device") monotonic : !llvm.ptr, i32
    %5 = llvm.cmpxchg %p, %long, %long syncscope("device") acq_rel monotonic : !llvm.ptr, i64
    llvm.return
  }

  // Of the device; ordered where the old value is used. Who sees shared memory is the block.
  // PTX-LABEL: .entry of_memrefs(
  // PTX: atom.acq_rel.gpu.global.add.u32
  // PTX: atom.global.add.f32
  // PTX: atom.acq_rel.cta.shared.add.u32
  gpu.func @of_memrefs(%a: memref<4xi32>, %f: memref<4xf32>, %s: memref<4xi32, 3>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : i32
    %one = arith.constant 1.0 : f32
    %0 = memref.atomic_rmw addi %c1, %a[%c0] : (i32, memref<4xi32>) -> i32
    memref.store %0, %a[%c0] : memref<4xi32>
    %1 = memref.atomic_rmw addf %one, %f[%c0] : (f32, memref<4xf32>) -> f32
    %2 = memref.atomic_rmw addi %c1, %s[%c0] : (i32, memref<4xi32, 3>) -> i32
    memref.store %2, %a[%c0] : memref<4xi32>
    gpu.return
  }

  // Compare-and-swap as well.
  // PTX-LABEL: .entry swaps(
  // PTX: atom.acq_rel.gpu.global.cas.b32
  // PTX: atom.acq_rel.cta.shared.cas.b32
  gpu.func @swaps(%a: memref<4xi32>, %s: memref<4xi32, 3>, %key: i32) kernel {
    %c0 = arith.constant 0 : index
    %empty = arith.constant -1 : i32
    %0 = memref.generic_atomic_rmw %a[%c0] : memref<4xi32> {
    ^bb0(%held: i32):
      %free = arith.cmpi eq, %held, %empty : i32
      %new = arith.select %free, %key, %held : i32
      memref.atomic_yield %new : i32
    }
    %1 = memref.generic_atomic_rmw %s[%c0] : memref<4xi32, 3> {
    ^bb0(%held: i32):
      %free = arith.cmpi eq, %held, %empty : i32
      %new = arith.select %free, %key, %held : i32
      memref.atomic_yield %new : i32
    }
    memref.store %0, %s[%c0] : memref<4xi32, 3>
    memref.store %1, %a[%c0] : memref<4xi32>
    gpu.return
  }

  // A place that something is stored to: nobody decides by it, and nobody reads there.
  // PTX-LABEL: .entry compacts(
  // PTX: atom.global.add.u32
  // PTX-LABEL: .entry last_block(
  // PTX: atom.acq_rel.gpu.global.add.u32
  // PTX-LABEL: .entry follows(
  // PTX: atom.acq_rel.gpu.global.add.u32
  gpu.func @compacts(%count: memref<1xi32>, %out: memref<?xf32>, %v: f32) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %place = memref.atomic_rmw addi %one, %count[%c0] : (i32, memref<1xi32>) -> i32
    %index = arith.index_cast %place : i32 to index
    memref.store %v, %out[%index] : memref<?xf32>
    gpu.return
  }
  gpu.func @last_block(%count: memref<1xi32>, %out: memref<?xf32>, %v: f32, %n: i32) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %before = memref.atomic_rmw addi %one, %count[%c0] : (i32, memref<1xi32>) -> i32
    %last = arith.cmpi eq, %before, %n : i32
    scf.if %last {
      memref.store %v, %out[%c0] : memref<?xf32>
    }
    gpu.return
  }
  gpu.func @follows(%count: memref<1xi32>, %out: memref<?xf32>) kernel {
    %c0 = arith.constant 0 : index
    %one = arith.constant 1 : i32
    %place = memref.atomic_rmw addi %one, %count[%c0] : (i32, memref<1xi32>) -> i32
    %index = arith.index_cast %place : i32 to index
    %there = memref.load %out[%index] : memref<?xf32>
    memref.store %there, %out[%c0] : memref<?xf32>
    gpu.return
  }
}
