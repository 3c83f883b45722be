// gpulower-serialize in the place of gpu-module-to-binary, on the inputs of upstream's own test
// (mlir/test/Dialect/GPU/module-to-binary-rocdl.mlir).

// RUN: gpulower-opt %s --gpulower-serialize="format=llvm" | FileCheck %s --check-prefixes=CHECK,LLVM
// RUN: gpulower-opt %s --gpulower-serialize="format=isa" | FileCheck %s --check-prefixes=CHECK,ISA
// RUN: gpulower-opt %s --gpulower-serialize="format=bin" | FileCheck %s --check-prefixes=CHECK,BIN
// RUN: gpulower-opt %s --gpulower-serialize | FileCheck %s --check-prefixes=CHECK,FATBIN
// RUN: mlir-opt %s --gpu-module-to-binary="format=llvm" | FileCheck %s --check-prefixes=CHECK,LLVM

module attributes {gpu.container_module} {
  // CHECK-LABEL: gpu.binary @kernel_module1
  // LLVM-SAME: [#gpu.object<#rocdl.target<chip = "gfx90a">, offload = "
  // ISA-SAME: [#gpu.object<#rocdl.target<chip = "gfx90a">, {{.*}}assembly = "
  // BIN-SAME: [#gpu.object<#rocdl.target<chip = "gfx90a">, {{.*}}bin = "\7FELF
  // FATBIN-SAME: [#gpu.object<#rocdl.target<chip = "gfx90a">, {{.*}}"\7FELF
  gpu.module @kernel_module1 [#rocdl.target<chip = "gfx90a">] {
    llvm.func @kernel(%arg0: i32, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: i64, %arg4: i64, %arg5: i64) attributes {gpu.kernel, rocdl.kernel} {
      llvm.return
    }
  }

  // CHECK-LABEL: gpu.binary @kernel_module2
  // LLVM-SAME: #gpu.object<#rocdl.target<chip = "gfx90a", flags = {fast}>
  // LLVM-SAME: #gpu.object<#rocdl.target<chip = "gfx942">
  // ISA-SAME: #gpu.object<#rocdl.target<chip = "gfx90a", flags = {fast}>
  // ISA-SAME: #gpu.object<#rocdl.target<chip = "gfx942">
  // BIN-SAME: #gpu.object<#rocdl.target<chip = "gfx90a", flags = {fast}>
  // BIN-SAME: #gpu.object<#rocdl.target<chip = "gfx942">
  // Two targets are one bundle; upstream makes two objects.
  // FATBIN-SAME: [#gpu.object<#rocdl.target<chip = "gfx90a", flags = {fast}>, {{.*}}"__CLANG_OFFLOAD_BUNDLE__{{.*}}gfx90a{{.*}}gfx942
  // FATBIN-NOT: #gpu.object
  gpu.module @kernel_module2 [#rocdl.target<chip = "gfx90a", flags = {fast}>, #rocdl.target<chip = "gfx942">] {
    llvm.func @kernel(%arg0: i32) attributes {gpu.kernel, rocdl.kernel} {
      llvm.return
    }
  }
}
