// W11: there is no default chip. Upstream's is sm_50, which CUDA 13 refuses.

// RUN: not gpulower-opt %s --gpulower-attach-targets 2>&1 | FileCheck %s --check-prefix=ATTACH
// RUN: not gpulower-opt %s --gpulower-to-binary 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not gpulower-opt %s --gpulower-lower 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not gpulower-opt %s --gpulower-serialize 2>&1 | FileCheck %s --check-prefix=NONE
// A chip that the PTX compilers at hand have dropped can still become PTX:
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_50 format=bin" 2>&1 | FileCheck %s --check-prefix=DROPPED
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_50 format=isa" | FileCheck %s --check-prefix=OLD

// ATTACH: error: option 'targets' is missing: name the chips to compile for, such as targets=sm_90,gfx942; there is no default
// NONE: w11-no-default-chip.mlir:[[#@LINE+4]]:1: error: plan, module m: no target: the module has no target attribute and none was given
// NONE-NOT: gpu.binary
// DROPPED: error: ptx-to-cubin, module m, target sm_50: no PTX compiler at hand knows sm_50: {{.*}}CUDA 13 dropped the chips before sm_75: use a CUDA 12 toolkit, or emit PTX, which the driver compiles
// OLD: .target sm_50
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
