// RUN: gpulower compile %s --target gfx942 --emit asm -o - | FileCheck %s --check-prefixes=CHECK,NATIVE,CDNA,PACKED,SYSTEM
// RUN: gpulower compile %s --target gfx950 --emit asm -o - | FileCheck %s --check-prefixes=CHECK,NATIVE,CDNA,PACKED,SYSTEM
// RUN: gpulower compile %s --target gfx1201 --emit asm -o - | FileCheck %s --check-prefixes=CHECK,NATIVE,PACKED,SYSTEM
// RUN: gpulower compile %s --target gfx90a --emit asm -o - | FileCheck %s --check-prefixes=CHECK,LOOP,SYSTEM
// RUN: gpulower compile %s --target gfx1100 --emit asm -o - | FileCheck %s --check-prefixes=CHECK,LOOP,SYSTEM
// RUN: gpulower compile %s --target gfx90a --ftz --coarse-grained-memory --emit asm -o - | FileCheck %s --check-prefixes=CHECK,NATIVE,CDNA,PACKED
// RUN: gpulower compile %s --target gfx1100 --coarse-grained-memory --emit asm -o - | FileCheck %s --check-prefixes=CHECK,NATIVE
// RUN: not gpulower compile %s --target sm_90 --coarse-grained-memory -o %t.out 2>&1 | FileCheck %s --check-prefix=REFUSED

// mlir-opt 22 makes atomics of the whole system out of them, and LLVM loops of compare-and-swap out of these.

// REFUSED: NVIDIA's atomic instructions reach all memory

gpu.module @kernels {
  // CHECK-LABEL: f32:
  // NATIVE-NOT: cmpswap
  // NATIVE: global_atomic_add_f32
  // LOOP: global_atomic_cmpswap
  gpu.func @f32(%v: f32, %m: memref<4xf32>) kernel {
    %0 = arith.constant 0 : index
    %1 = memref.atomic_rmw addf %v, %m[%0] : (f32, memref<4xf32>) -> f32
    gpu.return
  }

  // CHECK-LABEL: f64:
  // CDNA-NOT: cmpswap
  // CDNA: global_atomic_add_f64
  gpu.func @f64(%v: f64, %m: memref<4xf64>) kernel {
    %0 = arith.constant 0 : index
    %1 = memref.atomic_rmw addf %v, %m[%0] : (f64, memref<4xf64>) -> f64
    gpu.return
  }

  // CHECK-LABEL: shared:
  // CHECK-NOT: ds_cmp
  // CHECK: ds_add_f32
  gpu.func @shared(%v: f32) workgroup(%m: memref<4xf32, #gpu.address_space<workgroup>>) kernel {
    %0 = arith.constant 0 : index
    %1 = memref.atomic_rmw addf %v, %m[%0] : (f32, memref<4xf32, #gpu.address_space<workgroup>>) -> f32
    gpu.return
  }

  // What states a scope keeps it, the system here. Which memory there is, the option says of all of them.
  // CHECK-LABEL: stated:
  // SYSTEM: global_atomic_cmpswap
  llvm.func @stated(%v: f32, %m: !llvm.ptr<1>) attributes {gpu.kernel, rocdl.kernel} {
    %1 = llvm.atomicrmw fadd %m, %v monotonic : !llvm.ptr<1>, f32
    llvm.return
  }

  // PACKED-LABEL: packed:
  // PACKED-NOT: cmpswap
  // PACKED: global_atomic_pk_add_f16
  // LOOP-LABEL: packed:
  // LOOP: global_atomic_cmpswap
  llvm.func @packed(%v: vector<2xf16>, %m: !llvm.ptr<1>) attributes {gpu.kernel, rocdl.kernel} {
    %1 = llvm.atomicrmw fadd %m, %v syncscope("agent") monotonic : !llvm.ptr<1>, vector<2xf16>
    llvm.return
  }
}
