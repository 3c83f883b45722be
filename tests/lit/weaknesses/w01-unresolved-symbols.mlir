// W1: symbols that no library defines are an error in every format, with kernels, location and advice. Upstream leaves
// them undefined in LLVM IR and PTX and reports success.

// RUN: not gpulower-opt %s --gpulower-serialize=format=llvm 2>&1 | FileCheck %s
// RUN: not gpulower-opt %s --gpulower-serialize=format=isa 2>&1 | FileCheck %s
// RUN: not gpulower-opt %s --gpulower-serialize=format=bin 2>&1 | FileCheck %s
// RUN: not gpulower-opt %s --gpulower-serialize=format=fatbin 2>&1 | FileCheck %s
// RUN: mlir-opt %s --gpu-module-to-binary=format=isa | %text | FileCheck %s --check-prefix=UPSTREAM

// CHECK: w01-unresolved-symbols.mlir:[[#@LINE+14]]:10: error: link, module m, target sm_80: 2 unresolved symbols:
// CHECK-NEXT: __nv_expff (needed by kernels first, second) at "{{.*}}w01-unresolved-symbols.mlir":[[#@LINE+13]]:10: NVIDIA's libdevice does not define it; check the spelling, or give a library that does
// CHECK-NEXT: helper (needed by kernel second) at "{{.*}}w01-unresolved-symbols.mlir":[[#@LINE+18]]:10: give the bitcode library that defines it (-l FILE, the pass option l=, or Options::libraries)
// CHECK-NOT: gpu.binary

// UPSTREAM: .extern .func{{.*}}__nv_expff
// UPSTREAM: .extern .func{{.*}}helper

gpu.module @m [#nvvm.target<chip = "sm_80">] {
  llvm.func @__nv_expff(f32) -> f32
  llvm.func @helper(f32) -> f32
  // Declared and not used: nobody's concern.
  llvm.func @unused(f32) -> f32
  llvm.func @first(%x: f32, %out: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %0 = llvm.call @__nv_expff(%x) : (f32) -> f32
    llvm.store %0, %out : f32, !llvm.ptr
    llvm.return
  }
  llvm.func @second(%x: f32, %out: !llvm.ptr) attributes {gpu.kernel, nvvm.kernel} {
    %0 = llvm.call @__nv_expff(%x) : (f32) -> f32
    %1 = llvm.call @helper(%0) : (f32) -> f32
    llvm.store %1, %out : f32, !llvm.ptr
    llvm.return
  }
}
