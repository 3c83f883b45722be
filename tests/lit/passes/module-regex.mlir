// `module` is a regular expression for the whole name.

// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_80 module=nv.*" | FileCheck %s
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_80 module=nv.*" --gpulower-attach-targets="targets=gfx942 module=amd" | FileCheck %s --check-prefix=BOTH
// RUN: gpulower-opt %s --gpulower-attach-targets="targets=sm_80 module=m" | FileCheck %s --check-prefix=NONE

// CHECK: gpu.module @amd {
// CHECK: gpu.module @nvidia [#nvvm.target<O = 3, chip = "sm_80">] {
// BOTH: gpu.module @amd [#rocdl.target<
// BOTH: gpu.module @nvidia [#nvvm.target<O = 3, chip = "sm_80">] {
// NONE-NOT: target
// The pass that does it all leaves the others alone:
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 module=nv.* format=isa" | FileCheck %s --check-prefix=BINARY
// BINARY: gpu.module @amd {
// BINARY: gpu.binary @nvidia
module {
  gpu.module @amd {
  }
  module {
    gpu.module @nvidia {
      gpu.func @k() kernel {
        gpu.return
      }
    }
  }
}
