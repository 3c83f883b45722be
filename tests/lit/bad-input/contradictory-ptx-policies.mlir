// Two targets of one module that ask for different PTX cannot be joined; both are named.

// RUN: not gpulower-opt %s --gpulower-serialize 2>&1 | FileCheck %s
// CHECK: error: plan, module m: target sm_80 was made with include-ptx=none and target sm_90 with include-ptx=all
gpu.module @m [#nvvm.target<chip = "sm_80", flags = {"include-ptx" = "none"}>,
               #nvvm.target<chip = "sm_90", flags = {"include-ptx" = "all"}>] {
  gpu.func @k() kernel {
    gpu.return
  }
}
