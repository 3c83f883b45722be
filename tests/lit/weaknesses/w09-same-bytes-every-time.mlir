// W9: two runs write the same bytes, whatever the number of threads. Upstream stores wall-clock times in #gpu.object.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942,sm_90,gfx1100 format=fatbin threads=1" -o %t.1
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942,sm_90,gfx1100 format=fatbin threads=8" -o %t.2
// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80,gfx942,sm_90,gfx1100 format=fatbin" --mlir-disable-threading -o %t.3
// RUN: cmp %t.1 %t.2
// RUN: cmp %t.1 %t.3
// RUN: FileCheck %s --input-file %t.1
// RUN: mlir-opt %s --pass-pipeline='builtin.module(nvvm-attach-target{chip=sm_80},gpu.module(convert-gpu-to-nvvm),gpu-module-to-binary{format=bin})' | FileCheck %s --check-prefix=UPSTREAM

// UPSTREAM: ISAToBinaryTimeInMs =

// CHECK-COUNT-2: gpu.binary
// CHECK-NOT: TimeInMs
gpu.module @first {
  gpu.func @k(%x: f32, %i: index, %out: memref<?xf32>) kernel {
    memref.store %x, %out[%i] : memref<?xf32>
    gpu.return
  }
}
gpu.module @second {
  gpu.func @k(%x: f32, %i: index, %out: memref<?xf32>) kernel {
    %0 = math.sqrt %x : f32
    memref.store %0, %out[%i] : memref<?xf32>
    gpu.return
  }
}
