// gpulower-serialize in the place of gpu-module-to-binary, on the inputs of upstream's own test
// (mlir/test/Dialect/GPU/module-to-binary-nvvm.mlir).

// RUN: gpulower-opt %s --gpulower-serialize="format=llvm" | FileCheck %s --check-prefixes=CHECK,LLVM
// RUN: gpulower-opt %s --gpulower-serialize="format=isa" | FileCheck %s --check-prefixes=CHECK,ISA
// RUN: gpulower-opt %s --gpulower-serialize="format=bin" | FileCheck %s --check-prefixes=CHECK,BIN
// RUN: gpulower-opt %s --gpulower-serialize | FileCheck %s --check-prefixes=CHECK,FATBIN
// RUN: mlir-opt %s --gpu-module-to-binary="format=llvm" | FileCheck %s --check-prefixes=CHECK,LLVM
// RUN: mlir-opt %s --gpu-module-to-binary="format=isa" | FileCheck %s --check-prefixes=CHECK,ISA

module attributes {gpu.container_module} {
  // CHECK-LABEL: gpu.binary @kernel_module1
  // LLVM-SAME: [#gpu.object<#nvvm.target<chip = "sm_80">, offload = "
  // ISA-SAME: [#gpu.object<#nvvm.target<chip = "sm_80">, properties = {{{.*}}O = 2 : i32{{.*}}}, assembly = "
  // BIN-SAME: [#gpu.object<#nvvm.target<chip = "sm_80">, {{.*}}bin = "\7FELF
  // FATBIN-SAME: [#gpu.object<#nvvm.target<chip = "sm_80">, {{.*}}"P\EDU\BA
  gpu.module @kernel_module1 [#nvvm.target<chip = "sm_80">] {
    llvm.func @kernel(%arg0: i32, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: i64, %arg4: i64, %arg5: i64) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }

  // CHECK-LABEL: gpu.binary @kernel_module2
  // LLVM-SAME: flags = {fast}>, offload = "
  gpu.module @kernel_module2 [#nvvm.target<chip = "sm_80", flags = {fast}>, #nvvm.target<O = 3, chip = "sm_90">] {
    llvm.func @kernel(%arg0: i32) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }

  // CHECK-LABEL: gpu.binary @kernel_module3 <#gpu.select_object<1 : i64>>
  gpu.module @kernel_module3 <#gpu.select_object<1>> [#nvvm.target<chip = "sm_80">, #nvvm.target<chip = "sm_90">] {
    llvm.func @kernel(%arg0: i32) attributes {gpu.kernel, nvvm.kernel} {
      llvm.return
    }
  }
}
