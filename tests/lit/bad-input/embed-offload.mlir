// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpulower-embed-offload{finish-with=clang-22 kind=sycl})' 2>&1 | FileCheck %s --check-prefix=KIND
// KIND: option 'kind' cannot be 'sycl': expected cuda, hip or openmp

// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpulower-embed-offload{finish-with=clang-14})' 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: clang 14 cannot finish the program

// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpulower-embed-offload{finish-with=clang-22 targets=gfx90a kind=cuda})' 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: error: export: kind 'cuda' was asked for, and the targets need 'hip'

// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpulower-embed-offload{targets=gfx90a})' 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: say which clang finishes the program on the other machine

// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(gpulower-attach-targets{targets=gfx90a},gpulower-serialize,gpulower-embed-offload{finish-with=clang-22})' 2>&1 | FileCheck %s --check-prefix=LINKED
// LINKED: error: export: the gpu.binary kernels: its linked code object for gfx90a cannot be embedded for clang 22
// LINKED-SAME: serialize it as bitcode (gpulower-serialize{format=offloading})

// RUN: not gpulower-opt %s --pass-pipeline='builtin.module(func.func(gpulower-embed-offload))' 2>&1 | FileCheck %s --check-prefix=ANCHOR
// ANCHOR: gpulower-embed-offload

// There is no target, and nothing to finish it with.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @k() kernel { gpu.return }
  }
  func.func @main() {
    %one = arith.constant 1 : index
    gpu.launch_func @kernels::@k blocks in (%one, %one, %one) threads in (%one, %one, %one)
    return
  }
}
