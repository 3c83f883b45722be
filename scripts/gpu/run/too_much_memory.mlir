// More memory than any GPU has.
func.func @main() {
  %n = arith.constant 1125899906842624 : index
  %v = arith.constant 1 : i8
  %m = gpu.alloc (%n) : memref<?xi8>
  gpu.memset %m, %v : memref<?xi8>, i8
  gpu.dealloc %m : memref<?xi8>
  return
}
