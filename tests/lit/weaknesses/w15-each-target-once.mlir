// W15: each target stands once, where it was first named. Upstream keeps all three of sm_80, sm_90, sm_80.

// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_80,sm_90,sm_80 | FileCheck %s --check-prefix=ONE-LIST
// RUN: gpulower-opt %s --gpulower-attach-targets=targets=sm_80 --gpulower-attach-targets=targets=sm_90 --gpulower-attach-targets=targets=sm_80 | FileCheck %s
// RUN: mlir-opt %s --nvvm-attach-target=chip=sm_80 --nvvm-attach-target=chip=sm_90 --nvvm-attach-target=chip=sm_80 | FileCheck %s --check-prefix=UPSTREAM
// A target that others attached twice becomes one object:
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80">, #nvvm.target<chip = "sm_90">, #nvvm.target<chip = "sm_80">] {/' %s | gpulower-opt --gpulower-serialize=format=isa | FileCheck %s --check-prefix=OBJECTS
// The same target in two spellings too, and each object keeps the attribute that asked for it:
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80", flags = {fast}>, #nvvm.target<chip = "sm_80", flags = {fast = "true"}>, #nvvm.target<chip = "sm_90">] {/' %s | gpulower-opt --gpulower-serialize=format=isa | FileCheck %s --check-prefix=SPELLINGS
// RUN: sed 's/@m {/@m [#nvvm.target<chip = "sm_80", flags = {fast}>, #nvvm.target<chip = "sm_80", flags = {fast = "true"}>, #nvvm.target<chip = "sm_90">] {/' %s | gpulower-opt --gpulower-lower --gpulower-serialize=format=isa | FileCheck %s --check-prefix=SPELLINGS

// ONE-LIST: gpu.module @m [#nvvm.target<O = 3, chip = "sm_80">, #nvvm.target<O = 3, chip = "sm_90">] {
// CHECK: gpu.module @m [#nvvm.target<O = 3, chip = "sm_80">, #nvvm.target<O = 3, chip = "sm_90">] {
// UPSTREAM: gpu.module @m [#nvvm.target<chip = "sm_{{[89]}}0">, #nvvm.target<chip = "sm_{{[89]}}0">, #nvvm.target<chip = "sm_{{[89]}}0">] {
// OBJECTS-COUNT-2: #gpu.object
// OBJECTS-NOT: #gpu.object
// SPELLINGS: #gpu.object<#nvvm.target<chip = "sm_80", flags = {fast}>{{.*}}.target sm_80{{.*}}#gpu.object<#nvvm.target<chip = "sm_90">{{.*}}.target sm_90
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
