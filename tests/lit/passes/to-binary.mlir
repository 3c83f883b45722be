// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-to-binary{targets=sm_80,gfx942 format=isa})' | FileCheck %s

// One object for each target, in the order of the targets, in one gpu.binary.

// CHECK: gpu.binary @kernels [
// CHECK-SAME: #gpu.object<#nvvm.target<O = 3, chip = "sm_80">, properties = {O = 3 : i32}, assembly = "
// CHECK-SAME: .target sm_80
// CHECK-SAME: #gpu.object<#rocdl.target<O = 3, chip = "gfx942"
// CHECK-SAME: .amdgcn_target \22amdgcn-amd-amdhsa--gfx942\22
gpu.module @kernels {
  gpu.func @fill(%value: f32, %out: memref<?xf32>) kernel {
    %i = gpu.global_id x
    memref.store %value, %out[%i] : memref<?xf32>
    gpu.return
  }
}
