// What is refused, and where: an assembler that does not exist for NVIDIA in one module, a symbol that nothing defines in the
// other.
module attributes {gpu.container_module} {
  gpu.module @undefined {
    llvm.func @nowhere(f32) -> f32
    gpu.func @k(%p: memref<?xf32>) kernel {
      %i = gpu.global_id x
      %x = memref.load %p[%i] : memref<?xf32>
      %y = llvm.call @nowhere(%x) : (f32) -> f32
      memref.store %y, %p[%i] : memref<?xf32>
      gpu.return
    }
  }
  gpu.module @foreign {
    gpu.func @k(%p: memref<?xi32>) kernel {
      %i = gpu.global_id x
      %l = nvvm.read.ptx.sreg.laneid : i32
      memref.store %l, %p[%i] : memref<?xi32>
      gpu.return
    }
  }
}
