// W10: an unknown format is refused when the pipeline is read, before the chip, say, is looked at. Upstream prints an error and goes on
// with a format that is none.

// RUN: not gpulower-opt %s --gpulower-serialize=format=elf 2>&1 | FileCheck %s
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=elf" 2>&1 | FileCheck %s
// RUN: not gpulower-opt %s --gpulower-serialize=format= 2>&1 | FileCheck %s --check-prefix=EMPTY

// CHECK: error: option 'format' cannot be 'elf': expected offloading|llvm, assembly|isa, binary|bin or fatbinary|fatbin
// CHECK-NOT: error
// EMPTY: error: option 'format' cannot be ''
gpu.module @m [#nvvm.target<chip = "sm_999">] {
  gpu.func @k() kernel {
    gpu.return
  }
}
