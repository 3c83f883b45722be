// W19: gpu.modules are found at any depth, and a pass that is anchored on gpu.module says why it cannot work there.
// Upstream does nothing, silently, in both cases.

// RUN: gpulower-opt %s --gpulower-serialize=format=isa | FileCheck %s
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpulower-lower,gpulower-serialize{format=isa})' | FileCheck %s
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(builtin.module(gpulower-serialize{format=isa}))' | FileCheck %s --check-prefix=INNER
// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpu.module(gpulower-serialize))' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpu.module(gpulower-to-binary))' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpu.module(gpulower-lower))' 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: gpulower-opt %s --pass-pipeline='builtin.module(gpu.module(gpulower-attach-targets{targets=sm_90}))' | FileCheck %s --check-prefix=ATTACH
// RUN: mlir-opt %s --pass-pipeline='builtin.module(gpu.module(gpu-module-to-binary))' | FileCheck %s --check-prefix=UPSTREAM

// CHECK: module @outer
// CHECK: module @inner
// CHECK: gpu.binary @m{{.*}}.target sm_80
// CHECK: gpu.binary @m{{.*}}.target sm_75
// CHECK-NOT: gpu.module
// INNER: gpu.binary @m{{.*}}.target sm_80
// INNER: gpu.module @m
// ANCHOR: error: gpulower-{{serialize|to-binary}} cannot replace the operation it runs on: run it on the module around the gpu.module
// SCHEDULE: error: unable to schedule pass 'gpulower-lower' on a PassManager intended to run on 'gpu.module'!
// ATTACH: gpu.module @m [#nvvm.target<chip = "sm_80">]
// ATTACH: gpu.module @m [#nvvm.target<chip = "sm_75">, #nvvm.target<O = 3, chip = "sm_90">]
// UPSTREAM-COUNT-2: gpu.module @m
module @outer {
  module @inner {
    gpu.module @m [#nvvm.target<chip = "sm_80">] {
      gpu.func @k() kernel {
        gpu.return
      }
    }
  }
  gpu.module @m [#nvvm.target<chip = "sm_75">] {
    gpu.func @k() kernel {
      gpu.return
    }
  }
}
