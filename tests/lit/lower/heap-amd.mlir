// `malloc` and `free`, and what MLIR makes of memref.alloc, are ockl's heap on AMD's chips, as in HIP's headers.

// RUN: rm -rf %t
// RUN: split-file %s %t
// RUN: gpulower compile %t/kernels.mlir --target gfx942 --emit llvm -o - | FileCheck %t/kernels.mlir
// RUN: gpulower compile %t/kernels.mlir --target gfx942,gfx1100,gfx1201 -o %t/out/
// RUN: llvm-readelf --notes %t/out/kernels.gfx942.hsaco | FileCheck %s --check-prefix=NOTES
// RUN: gpulower compile %t/kernels.mlir --target gfx1100 --emit asm -o - | FileCheck %s --check-prefix=CLOCK
// RUN: not gpulower compile %t/types.ll --target gfx942 -o %t/none 2>&1 | FileCheck %t/types.ll
// RUN: gpulower compile %t/kernels.mlir --target gfx942 -l %t/own.ll --emit llvm -o - | FileCheck %t/own.ll

// NOTES: hidden_hostcall_buffer
// NOTES: hidden_heap_v1

// Debian's ockl reads the clock by an instruction that gfx11 does not have; LLVM would drop its functions.
// CLOCK: s_sendmsg_rtn_b64 {{.*}}sendmsg(MSG_RTN_GET_REALTIME)

//--- kernels.mlir
gpu.module @kernels {
  // CHECK-LABEL: amdgpu_kernel void @kernel(
  // CHECK: call {{.*}}@__ockl_dm_alloc(i64
  // CHECK: call {{.*}}@__ockl_dm_dealloc(i64
  gpu.func @kernel(%n: index, %v: f32, %y: memref<f32>) kernel {
    %a = memref.alloc(%n) : memref<?xf32>
    memref.store %v, %a[%n] : memref<?xf32>
    %b = memref.load %a[%n] : memref<?xf32>
    memref.store %b, %y[] : memref<f32>
    memref.dealloc %a : memref<?xf32>
    gpu.return
  }
}

//--- types.ll
; Of other types than C's, they are somebody else's.
; CHECK: malloc
; CHECK-SAME: the heap of AMD's chips is `ptr malloc(i64)` and `void free(ptr)`; declare it so, or define it in a library of yours
declare ptr @malloc(i32)
define amdgpu_kernel void @k(ptr addrspace(1) %x) {
  %m = call ptr @malloc(i32 4)
  store ptr %m, ptr addrspace(1) %x
  ret void
}

//--- own.ll
; A library of the user's comes first.
; CHECK-NOT: __ockl_dm
; CHECK: amdgpu_kernel void @kernel(
; CHECK-NOT: __ockl_dm
@pool = addrspace(1) global [1024 x i8] zeroinitializer
define ptr @malloc(i64 %size) noinline {
  ret ptr addrspacecast (ptr addrspace(1) @pool to ptr)
}
define void @free(ptr %memory) {
  ret void
}
