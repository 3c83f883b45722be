// An i64 in memory has the alignment that the target gives it, so that it is stored at once. MLIR translates to LLVM IR with
// LLVM's default layout where a module says none: 4 bytes.

// RUN: gpulower compile %s --target sm_90 --emit llvm -o - | FileCheck %s
// RUN: gpulower compile %s --target sm_90 --emit ptx -o - | FileCheck --check-prefix=PTX %s
// RUN: gpulower compile %s --target gfx942 --emit llvm -o - | FileCheck %s

// CHECK: load i64, {{.*}} align 8
// CHECK: store i64 {{.*}} align 8
// PTX: ld.global{{.*}}.b64
// PTX: st.global.b64

gpu.module @wide {
  gpu.func @twice(%a: memref<?xi64>) kernel {
    %i = gpu.thread_id x
    %x = memref.load %a[%i] : memref<?xi64>
    %y = arith.addi %x, %x : i64
    memref.store %y, %a[%i] : memref<?xi64>
    gpu.return
  }
}
