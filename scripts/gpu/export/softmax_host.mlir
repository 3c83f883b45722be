func.func @run_softmax(%x: memref<?x?xf32>, %y: memref<?x?xf32>) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %threads = arith.constant 256 : index
  %rows = memref.dim %x, %zero : memref<?x?xf32>
  %columns = memref.dim %x, %one : memref<?x?xf32>
  %dx = gpu.alloc (%rows, %columns) : memref<?x?xf32>
  %dy = gpu.alloc (%rows, %columns) : memref<?x?xf32>
  gpu.memcpy %dx, %x : memref<?x?xf32>, memref<?x?xf32>
  gpu.launch_func @softmax::@softmax blocks in (%rows, %one, %one) threads in (%threads, %one, %one)
    args(%dx : memref<?x?xf32>, %dy : memref<?x?xf32>)
  gpu.memcpy %y, %dy : memref<?x?xf32>, memref<?x?xf32>
  gpu.dealloc %dx : memref<?x?xf32>
  gpu.dealloc %dy : memref<?x?xf32>
  return
}
