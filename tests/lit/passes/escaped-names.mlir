// What a name of the input would do to a terminal is escaped in messages of the passes.

// RUN: not gpulower-opt %s --gpulower-to-binary=targets=sm_90 2>&1 | FileCheck %s
// CHECK: error: {{.*}}module m\u{1b}[31m\r, target sm_90: unresolved symbol

gpu.module @"m\1B[31m\0D" {
  llvm.func @_nowhere()
  gpu.func @k() kernel {
    llvm.call @_nowhere() : () -> ()
    gpu.return
  }
}
