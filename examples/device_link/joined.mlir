// Two modules that become one image: a kernel calls a function and reads a variable of the other module.
//
// apply(data): data[i] = 3 * data[i] + table[1], which is 20, for every thread i of one block.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    func.func private @scale(f32) -> f32
    memref.global @table : memref<4xf32>

    gpu.func @apply(%data: memref<?xf32>) kernel {
      %i = gpu.thread_id x
      %one = arith.constant 1 : index
      %value = memref.load %data[%i] : memref<?xf32>
      %scaled = func.call @scale(%value) : (f32) -> f32
      %values = memref.get_global @table : memref<4xf32>
      %shift = memref.load %values[%one] : memref<4xf32>
      %result = arith.addf %scaled, %shift : f32
      memref.store %result, %data[%i] : memref<?xf32>
      gpu.return
    }
  }

  gpu.module @functions {
    memref.global @table : memref<4xf32> = dense<[10.0, 20.0, 30.0, 40.0]>

    func.func @scale(%value: f32) -> f32 {
      %three = arith.constant 3.0 : f32
      %scaled = arith.mulf %value, %three : f32
      return %scaled : f32
    }
  }
}
