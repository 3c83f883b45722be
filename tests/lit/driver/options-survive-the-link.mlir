// lld runs inside the process, and resets LLVM's command line options when it starts: those of mlir-opt keep their values,
// and so do those that only act at the end.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=bin" --mlir-print-debuginfo --mlir-elide-elementsattrs-if-larger=2 --mlir-print-op-generic | FileCheck %s
// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=bin" | FileCheck %s --check-prefix=PLAIN
// A second link, options of passes in between:
// RUN: gpulower-opt %s --pass-pipeline="builtin.module(gpulower-to-binary{targets=gfx942 format=bin},gpulower-to-binary{targets=gfx1100 format=bin})" --mlir-print-debuginfo | FileCheck %s --check-prefix=TWICE

// CHECK: "func.func"()
// CHECK: dense_resource<__elided__>
// CHECK: "gpu.binary"()
// CHECK: #loc = loc(
// PLAIN: dense<[1, 2, 3, 4]>
// PLAIN-NOT: #loc
// TWICE: gpu.binary @m
// TWICE: #loc = loc(
func.func @f() -> vector<4xi32> {
  %c = arith.constant dense<[1, 2, 3, 4]> : vector<4xi32>
  return %c : vector<4xi32>
}
gpu.module @m {
  gpu.func @k() kernel {
    gpu.return
  }
}
