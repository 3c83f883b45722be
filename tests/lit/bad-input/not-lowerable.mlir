// What no conversion knows is refused with its name, its place and, where there is one, advice.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=sm_80 format=isa" --split-input-file --verify-diagnostics

gpu.module @heap {
  gpu.func @k(%n: index, %out: memref<?xf32>) kernel {
    // expected-error @+1 {{lower, module heap, target sm_80: cannot lower memref.alloc for sm_80; a kernel has no heap: use a workgroup or private attribution, or memref.alloca}}
    %0 = memref.alloc(%n) : memref<?xf32>
    %c = arith.constant 1.0 : f32
    memref.store %c, %0[%n] : memref<?xf32>
    memref.store %c, %out[%n] : memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @tensors {
  gpu.func @k(%i: index, %x: tensor<4xf32>, %out: memref<f32>) kernel {
    // expected-error @+1 {{lower, module tensors, target sm_80}}
    %0 = tensor.extract %x[%i] : tensor<4xf32>
    memref.store %0, %out[] : memref<f32>
    gpu.return
  }
}
