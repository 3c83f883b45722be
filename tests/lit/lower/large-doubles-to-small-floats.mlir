// A double that f32 has no room for becomes the largest f32 on its way to eight bits: as an infinity, it would be no value at all
// where `fast` says that there are none.

// RUN: gpulower compile %s --target sm_90 --fast --emit llvm -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --fast --emit llvm -o - | FileCheck %s

// 5183643170566569984 are the bits of the largest f32, as a double.
// CHECK: or disjoint i64 %{{.*}}, 5183643170566569984
// CHECK: select
// CHECK: fptrunc fast double
gpu.module @kernels {
  gpu.func @narrow(%x: f64, %out: memref<4xi8>) kernel {
    %0 = arith.constant 0 : index
    %small = arith.truncf %x : f64 to f8E4M3FN
    %byte = arith.bitcast %small : f8E4M3FN to i8
    memref.store %byte, %out[%0] : memref<4xi8>
    gpu.return
  }
}
