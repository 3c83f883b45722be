// All modules and targets report, not only the first, and the module is left as it was.

// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942 format=isa" 2>&1 | FileCheck %s
// RUN: not gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa" -o %t.out
// RUN: not test -e %t.out

// CHECK: error: link, module first, target sm_80: unresolved symbol:
// CHECK: error: link, module first, target gfx942: unresolved symbol:
// CHECK: error: link, module second, target sm_80: unresolved symbol:
// CHECK: error: link, module second, target gfx942: unresolved symbol:
gpu.module @first {
  func.func private @a()
  gpu.func @k() kernel {
    func.call @a() : () -> ()
    gpu.return
  }
}
gpu.module @second {
  func.func private @b()
  gpu.func @k() kernel {
    func.call @b() : () -> ()
    gpu.return
  }
}
