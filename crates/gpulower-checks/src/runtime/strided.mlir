// saxpy on memrefs whose offset and strides come with the arguments: memref<?xf32> has them in its type, 0 and 1, and its
// kernel reads neither. Launch as examples/saxpy.mlir.
gpu.module @strided {
  gpu.func @saxpy(%a: f32, %x: memref<?xf32, strided<[?], offset: ?>>, %y: memref<?xf32, strided<[?], offset: ?>>) kernel {
    %c0 = arith.constant 0 : index
    %n = memref.dim %y, %c0 : memref<?xf32, strided<[?], offset: ?>>
    %i = gpu.global_id x
    %in_bounds = arith.cmpi ult, %i, %n : index
    scf.if %in_bounds {
      %xi = memref.load %x[%i] : memref<?xf32, strided<[?], offset: ?>>
      %yi = memref.load %y[%i] : memref<?xf32, strided<[?], offset: ?>>
      %r = math.fma %a, %xi, %yi : f32
      memref.store %r, %y[%i] : memref<?xf32, strided<[?], offset: ?>>
    }
    gpu.return
  }
}
