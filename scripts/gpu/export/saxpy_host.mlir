func.func @run_saxpy(%a: f32, %x: memref<?xf32>, %y: memref<?xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %threads = arith.constant 256 : index
  %n = memref.dim %x, %zero : memref<?xf32>
  %start = gpu.wait async
  %dx, %a0 = gpu.alloc async [%start] (%n) : memref<?xf32>
  %dy, %a1 = gpu.alloc async [%a0] (%n) : memref<?xf32>
  %c0 = gpu.memcpy async [%a1] %dx, %x : memref<?xf32>, memref<?xf32>
  %c1 = gpu.memcpy async [%c0] %dy, %y : memref<?xf32>, memref<?xf32>
  %blocks = arith.ceildivui %n, %threads : index
  %k = gpu.launch_func async [%c1] @saxpy::@saxpy blocks in (%blocks, %one, %one) threads in (%threads, %one, %one)
    args(%a : f32, %dx : memref<?xf32>, %dy : memref<?xf32>)
  %c2 = gpu.memcpy async [%k] %y, %dy : memref<?xf32>, memref<?xf32>
  %f0 = gpu.dealloc async [%c2] %dx : memref<?xf32>
  %f1 = gpu.dealloc async [%f0] %dy : memref<?xf32>
  gpu.wait [%f1]
  return
}
