// AMD's triple as LLVM 23 writes it, with the chip in it (llvm/llvm-project#206480).
// RUN: gpulower-opt %s --gpulower-serialize=format=isa | %text | FileCheck %s
// CHECK: gpu.binary @m
// CHECK: .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
// RUN: sed 's/amdgpu9.42/amdgpu/' %s > %t.plain.mlir
// RUN: gpulower-opt %t.plain.mlir --gpulower-serialize=format=isa | %text | FileCheck %s
// RUN: sed 's/amdgpu9.42/amdgpu9.0a/' %s > %t.other.mlir
// RUN: not gpulower-opt %t.other.mlir --gpulower-serialize=format=isa 2>&1 | FileCheck --check-prefix=OTHER %s
// OTHER: option 'triple' cannot be honoured for gfx942: it would be 'amdgpu9.0a-amd-amdhsa'
gpu.module @m [#rocdl.target<chip = "gfx942", triple = "amdgpu9.42-amd-amdhsa">] {
  llvm.func @k(%p: !llvm.ptr<1>, %v: i32) attributes {gpu.kernel, rocdl.kernel} {
    llvm.store %v, %p : i32, !llvm.ptr<1>
    llvm.return
  }
}
