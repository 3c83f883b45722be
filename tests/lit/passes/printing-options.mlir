// What the command line has left out of printed text is not left out of what tells one module from another.

// RUN: gpulower-opt %s --mlir-elide-elementsattrs-if-larger=2 --mlir-print-local-scope \
// RUN:   --pass-pipeline='builtin.module(gpulower-attach-targets{targets=sm_90},gpulower-lower,gpulower-serialize{format=isa})' | FileCheck %s

// CHECK: gpu.binary @five
// CHECK-SAME: 160, 64}
// CHECK: gpu.binary @nine
// CHECK-SAME: 16, 65}
module attributes {gpu.container_module} {
  gpu.module @five {
    memref.global constant @table : memref<5xf32> = dense<[1.0, 2.0, 3.0, 4.0, 5.0]>
    gpu.func @kernel(%out: memref<5xf32>, %i: index) kernel {
      %table = memref.get_global @table : memref<5xf32>
      %value = memref.load %table[%i] : memref<5xf32>
      memref.store %value, %out[%i] : memref<5xf32>
      gpu.return
    }
  }
  gpu.module @nine {
    memref.global constant @table : memref<5xf32> = dense<[1.0, 2.0, 3.0, 4.0, 9.0]>
    gpu.func @kernel(%out: memref<5xf32>, %i: index) kernel {
      %table = memref.get_global @table : memref<5xf32>
      %value = memref.load %table[%i] : memref<5xf32>
      memref.store %value, %out[%i] : memref<5xf32>
      gpu.return
    }
  }
}
