// W17: `section` is honoured for both vendors, and a word of `opts` that AMD's path has no use for is refused there. Upstream
// ignores both for AMD.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=bin section=.kernels" -o %t.amd
// RUN: FileCheck %s --input-file %t.amd
// RUN: mlir-translate --mlir-to-llvmir %t.amd | FileCheck %s --check-prefix=HOST
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=bin section=.kernels" -o %t.nvidia
// RUN: FileCheck %s --input-file %t.nvidia
// RUN: mlir-translate --mlir-to-llvmir %t.nvidia | FileCheck %s --check-prefix=HOST
// RUN: not gpulower-opt %s --gpulower-attach-targets=targets=gfx942 --gpulower-serialize="format=bin opts=--whatever" 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942 opts=-v" 2>&1 | FileCheck %s --check-prefix=OPTS

// CHECK: gpu.binary @m{{.*}}properties = {section = ".kernels"}
// HOST: @m_binary = internal constant [{{[0-9]+}} x i8] c"\7FELF{{.*}}", section ".kernels", align 8
// WORD: error: option 'opts' has the word '--whatever', which means nothing for AMD
// OPTS: error: plan, module m, target gfx942: option 'ptxas-options' cannot be honoured for gfx942: only NVIDIA's targets have it; leave the option out
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
