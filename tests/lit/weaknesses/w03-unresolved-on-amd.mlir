// W3: a symbol that nothing defines is an error for AMD too, before lld, which upstream runs with options that accept it.

// RUN: not gpulower-opt %s --gpulower-serialize=format=bin 2>&1 | FileCheck %s
// RUN: not gpulower-opt %s --gpulower-serialize=format=isa 2>&1 | FileCheck %s
// RUN: rm -rf %t && mkdir -p %t/llvm/bin && ln -s %llvm/ld.lld %t/llvm/bin/ld.lld
// RUN: mlir-opt %s --gpu-module-to-binary="format=bin toolkit=%t" | FileCheck %s --check-prefix=UPSTREAM

// CHECK: error: link, module m, target gfx942: 2 unresolved symbols:
// CHECK-NEXT: helper (needed by kernel k) at
// CHECK-NEXT: table (needed by kernel k) at
// CHECK-NOT: gpu.binary

// UPSTREAM: gpu.binary @m
gpu.module @m [#rocdl.target<chip = "gfx942">] {
  llvm.mlir.global external @table() {addr_space = 1 : i32} : !llvm.array<4 x f32>
  llvm.func @helper(f32) -> f32
  llvm.func @k(%x: f32, %out: !llvm.ptr<1>) attributes {gpu.kernel, rocdl.kernel} {
    %0 = llvm.call @helper(%x) : (f32) -> f32
    %table = llvm.mlir.addressof @table : !llvm.ptr<1>
    %1 = llvm.load %table : !llvm.ptr<1> -> f32
    %2 = llvm.fadd %0, %1 : f32
    llvm.store %2, %out : f32, !llvm.ptr<1>
    llvm.return
  }
}
