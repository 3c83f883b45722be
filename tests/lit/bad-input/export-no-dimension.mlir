// RUN: not gpulower export %s -t sm_90 --finish-with clang-19,cuda-12.4 -o %t.o 2>&1 | FileCheck %s
// CHECK: export-no-dimension.mlir:[[#@LINE+8]]:13: error: export: memref.dim asks for dimension 7
// CHECK: E0301

module attributes {gpu.container_module} {
  func.func @main() {
    %four = arith.constant 4 : index
    %seven = arith.constant 7 : index
    %memory = memref.alloc(%four) : memref<?xf32>
    %size = memref.dim %memory, %seven : memref<?xf32>
    gpu.launch blocks(%a, %b, %c) in (%e = %size, %f = %size, %g = %size)
        threads(%h, %i, %j) in (%k = %size, %l = %size, %n = %size) {
      gpu.terminator
    }
    return
  }
}
