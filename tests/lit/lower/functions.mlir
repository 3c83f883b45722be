// RUN: gpulower compile %s --target sm_90 --emit mlir -o - | FileCheck %s
// RUN: gpulower compile %s --target gfx942 --emit mlir -o - | FileCheck %s
// RUN: gpulower compile %s --target sm_90 --index-bitwidth 32 --emit mlir -o - | FileCheck %s --check-prefix=INDEX32

// Device functions of the func dialect get no wrappers for a C caller, whatever their arguments; a declared one can be
// defined by a library. Indices are as wide as asked.

// CHECK-NOT: _mlir_ciface
// CHECK-DAG: llvm.func @elsewhere(f32) -> f32
// CHECK-DAG: llvm.func @into_shared(%{{.*}}: f32, %{{.*}}: !llvm.ptr<3>
// CHECK-DAG: llvm.call @elsewhere
// INDEX32: llvm.func @step(%{{.*}}: i32) -> i32
gpu.module @kernels {
  func.func private @elsewhere(f32) -> f32
  func.func @into_shared(%v: f32, %m: memref<64xf32, #gpu.address_space<workgroup>>) {
    %c0 = arith.constant 0 : index
    memref.store %v, %m[%c0] : memref<64xf32, #gpu.address_space<workgroup>>
    return
  }
  func.func @step(%i: index) -> index {
    %c2 = arith.constant 2 : index
    %j = math.ipowi %i, %c2 : index
    return %j : index
  }
  gpu.func @calls(%v: f32, %m: memref<?xf32>) workgroup(%w: memref<64xf32, #gpu.address_space<workgroup>>) kernel {
    %t = gpu.thread_id x
    %a = func.call @elsewhere(%v) : (f32) -> f32
    func.call @into_shared(%a, %w) : (f32, memref<64xf32, #gpu.address_space<workgroup>>) -> ()
    %i = func.call @step(%t) : (index) -> index
    memref.store %a, %m[%i] : memref<?xf32>
    gpu.return
  }
}
