// What no conversion knows is refused with its name, its place and, where there is one, advice.

// RUN: gpulower-opt %s --gpulower-to-binary="targets=gfx942 format=isa" --split-input-file --verify-diagnostics

gpu.module @heap {
  gpu.func @k(%n: index, %out: memref<?xf32>) kernel {
    // expected-error @+1 {{lower, module heap, target gfx942: cannot lower memref.alloc: the heap has generic addresses; leave out the memory space, or allocate private memory by memref.alloca}}
    %0 = memref.alloc(%n) : memref<?xf32, #gpu.address_space<private>>
    %c = arith.constant 1.0 : f32
    memref.store %c, %0[%n] : memref<?xf32, #gpu.address_space<private>>
    memref.copy %0, %out : memref<?xf32, #gpu.address_space<private>> to memref<?xf32>
    gpu.return
  }
}

// -----

gpu.module @tensors {
  // expected-error @+1 {{lower, module tensors, target gfx942: cannot lower gpu.func @k: its argument 1 has the type 'tensor<4xf32>', which no conversion to LLVM takes; bufferize tensors before}}
  gpu.func @k(%i: index, %x: tensor<4xf32>, %out: memref<f32>) kernel {
    %0 = tensor.extract %x[%i] : tensor<4xf32>
    memref.store %0, %out[] : memref<f32>
    gpu.return
  }
}
