// W4: which device libraries are needed is decided after the user's are linked, to a fixpoint. Upstream looks before,
// and leaves __ocml_* undefined. The order of the libraries does not matter.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa l=%S/../Inputs/calls_ocml.ll,%S/../Inputs/calls_back.ll" | %text | FileCheck %s
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa l=%S/../Inputs/calls_back.ll,%S/../Inputs/calls_ocml.ll" | %text | FileCheck %s
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa l=%S/../Inputs/calls_libdevice.ll" | %text | FileCheck %s --check-prefix=NVIDIA
// Bitcode serves as well as text:
// RUN: llvm-as %S/../Inputs/calls_libdevice.ll -o %t.bc
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa l=%t.bc" | %text | FileCheck %s --check-prefix=NVIDIA

// CHECK: .amdgcn_target
// CHECK-NOT: __ocml_
// CHECK-NOT: __ockl_
// CHECK-NOT: middle

// NVIDIA: .visible .entry k(
// NVIDIA-NOT: .extern
// NVIDIA-NOT: __nv_
gpu.module @m {
  func.func private @outer(f32) -> f32
  gpu.func @k(%x: f32, %out: memref<f32>) kernel {
    %0 = func.call @outer(%x) : (f32) -> f32
    memref.store %0, %out[] : memref<f32>
    gpu.return
  }
}
