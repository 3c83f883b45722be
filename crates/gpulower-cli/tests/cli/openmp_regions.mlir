// The kernel of gpulower beside the regions of openmp_regions.c.
module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @saxpy(%n: index, %a: f32, %x: memref<?xf32>, %y: memref<?xf32>) kernel {
      %i = gpu.global_id x
      %inside = arith.cmpi ult, %i, %n : index
      scf.if %inside {
        %xi = memref.load %x[%i] : memref<?xf32>
        %yi = memref.load %y[%i] : memref<?xf32>
        %ax = arith.mulf %a, %xi : f32
        %sum = arith.addf %ax, %yi : f32
        memref.store %sum, %y[%i] : memref<?xf32>
      }
      gpu.return
    }
  }
  func.func @add_scaled(%n: index, %a: f32, %x: memref<?xf32>, %y: memref<?xf32>) {
    %one = arith.constant 1 : index
    %threads = arith.constant 256 : index
    %blocks = arith.ceildivui %n, %threads : index
    gpu.launch_func @kernels::@saxpy blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
        args(%n : index, %a : f32, %x : memref<?xf32>, %y : memref<?xf32>)
    return
  }
}
